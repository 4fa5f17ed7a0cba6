// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the grants share.
#pragma once

#include "inside.h"

#include <verdict/grants.h>

struct granted {
	uint64_t id, start;
	uint64_t first_ns, until_ns;
	uint64_t told_ns; // by anybody
};

// Alive for less than GRANTS_KNOWN_NS.
struct young {
	uint64_t id, since_ns;
};

// How the cluster is, by our table.
struct service {
	uint32_t nodes, alive;
	uint32_t out;	  // dead, unreachable, or granted and not healthy again
	uint32_t granted; // in the last interval
	// Of when this is: asked about thousands of nodes in one turn it is counted once.
	uint64_t now_ns, changes;
	uint32_t of_state[RAS_LEFT + 1];
	bool is_old; // grants came or went
};

struct grants {
	const struct verdict_engine *engine;
	struct grants_config config;
	struct ras_memory memory;
	struct grants_ops ops;
	void *ops_ctx;
	struct granted *rows; // by id
	uint32_t count, capacity;
	struct young *young; // by id
	uint32_t young_count, young_capacity;
	uint64_t young_swept_ns; // those who are known by now were dropped then
	struct service *service;
	uint32_t expected;
	bool alone;
	uint64_t next_ns; // asked for
	bool joiner;	  // somebody came who may not know the grants
	struct grants_counters counters;
};

// grants_table.c: what is known of grants.

void grants_wake(struct grants *grants, uint64_t at_ns);
struct granted *grants_find(const struct grants *grants, uint64_t id);
// -ENOSPC, -ENOMEM.
int grants_add(struct grants *grants, uint64_t id, struct granted **ret_row);
// The share of so many nodes, one at least.
uint32_t grants_share(uint32_t nodes, uint32_t percent);
const struct service *grants_service(const struct grants *grants, uint64_t now_ns);
// It lets its node be drained: of the start that the node has now.
bool grants_hold(const struct grants *grants, const struct granted *row, uint64_t now_ns);
// Drops what does not count any more, and whose node is healthy again.
void grants_expire(struct grants *grants, uint64_t now_ns);
// To all: those that are due, or each.
void grants_tell(struct grants *grants, uint64_t now_ns, bool all);
