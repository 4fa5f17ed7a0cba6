// SPDX-License-Identifier: BSD-3-Clause
// Those of the roster ([overlay] expect) that no table knows: they have no place in the core, and
// are listed behind the peers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ABSENT_STATE "missing" // where peers have a state

struct overlay;

// Copies: the roster may be another one before the last row is said.
struct absent {
	char **names;
	uint32_t count;
};

// -ENOMEM.
int absent_find(const struct overlay *overlay, struct absent *ret_absent);
// As if this one were all. -ENOMEM.
int absent_only(const char *name, struct absent *ret_absent);
void absent_fini(struct absent *absent);

// Whether the roster has this name, and no table.
bool absent_is(const struct overlay *overlay, const char *name);
