// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts of the grants.
#pragma once

#include "inside.h"

#include <verdict/grants.h>

struct granted {
	uint64_t id, start;
	uint64_t first_ns, until_ns;
	uint64_t told_ns; // last notice about it, by any member
};

// Member that has been alive for less than GRANTS_MEMBER_MIN_AGE_NS.
struct young {
	uint64_t id, since_ns;
};

// State of the cluster by this agent's table.
struct service {
	uint32_t nodes, alive;
	uint32_t out;	  // nodes dead, unreachable, or granted and not healthy again
	uint32_t granted; // granted in the last interval
	// Key of the cached counts: thousands of nodes may ask in one turn of the loop.
	uint64_t now_ns, changes;
	uint32_t of_state[RAS_LEFT + 1];
	bool is_old; // a grant was added or removed
};

struct grants {
	const struct verdict_engine *engine;
	struct grants_config config;
	struct ras_memory memory;
	struct grants_ops ops;
	void *ops_ctx;
	struct granted *rows; // sorted by id
	uint32_t count, capacity;
	struct young *young; // sorted by id
	uint32_t young_count, young_capacity;
	uint64_t young_swept_ns; // when old entries were last dropped
	struct service *service;
	uint32_t expected;
	bool alone;
	uint64_t next_ns; // requested wake-up
	bool joiner;	  // a member joined that may not know the grants
	struct grants_counters counters;
};

// grants_table.c: the table of grants.

void grants_wake(struct grants *grants, uint64_t at_ns);
struct granted *grants_find(const struct grants *grants, uint64_t id);
// Add a row. Returns 0, -ENOSPC or -ENOMEM.
int grants_add(struct grants *grants, uint64_t id, struct granted **ret_row);
static inline bool state_is_out_of_service(uint8_t state) {
	return state == RAS_DEAD || state == RAS_UNREACHABLE;
}

// Return this share of the nodes, at least one.
uint32_t grants_share(uint32_t nodes, uint32_t percent);
const struct service *grants_service(const struct grants *grants, uint64_t now_ns);
// Return whether the grant is in force, for the current start of its node.
bool grant_is_in_force(const struct grants *grants, const struct granted *row, uint64_t now_ns);
// Drop grants that no longer count and whose node is healthy again.
void grants_expire(struct grants *grants, uint64_t now_ns);
// Publish grants to all members: each one if `all` is set, else those due.
void grants_publish(struct grants *grants, uint64_t now_ns, bool all);
