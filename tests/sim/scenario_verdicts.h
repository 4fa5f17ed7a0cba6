// SPDX-License-Identifier: BSD-3-Clause
// What the scenarios of verdicts share.
#pragma once

#include "verdict_matrix.h"

#include <stdint.h>

struct run;
struct world;

enum verdict verdicts_held_by(const struct world *world, uint32_t observer, uint32_t node);
// Until then, looking each five seconds for healthy nodes that somebody would drain.
void verdicts_audit_to(struct run *run, uint64_t until_ns);
void verdicts_result(struct run *run, uint64_t begin_ns);
void play_splits(struct run *run);
