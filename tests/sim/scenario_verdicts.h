// SPDX-License-Identifier: BSD-3-Clause
// Shared parts of the verdict scenarios.
#pragma once

#include "verdict_matrix.h"

#include <stdint.h>

struct run;
struct world;

enum verdict verdicts_held_by(const struct world *world, uint32_t observer, uint32_t node);
// Advance until `until_ns` and check every five seconds that no healthy node would be drained.
void verdicts_audit_to(struct run *run, uint64_t until_ns);
void verdicts_result(struct run *run, uint64_t begin_ns);
void play_splits(struct run *run);
