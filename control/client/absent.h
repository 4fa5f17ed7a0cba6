// SPDX-License-Identifier: BSD-3-Clause
// Absent nodes: nodes of the roster ([overlay] expect) that are in no table. The core has no entry
// for an absent node, so it is listed after the peers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ABSENT_STATE "missing" // shown where a peer has a state

struct overlay;

// Copies of the names, because the roster may change before the last row is written.
struct absent {
	char **names;
	uint32_t count;
};

// Collect all absent nodes. Returns 0 or -ENOMEM.
int absent_collect_all(const struct overlay *overlay, struct absent *ret_absent);
// Make a list of this one name. Returns 0 or -ENOMEM.
int absent_make_single(const char *name, struct absent *ret_absent);
void absent_fini(struct absent *absent);

// Return whether a name is in the roster and in no table.
bool absent_has_node(const struct overlay *overlay, const char *name);
