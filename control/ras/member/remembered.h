// SPDX-License-Identifier: BSD-3-Clause
// Remembered addresses: members of an earlier run, asked beside the seeds at start.
//
// Another agent may use such an address today. So no answer from it stops this agent: an address
// that refuses us is dropped, with one JOIN_DROPPED event. A remembered address is no seed either.
// An agent that has only remembered addresses asks them for JOIN_ALONE_NS before it founds a ring.
// After the join, the search (search.h) goes on for addresses that no entry of the table has.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

struct ras;

struct remembered {
	struct sock_addr *addresses; // array of `capacity`, NULL if empty
	uint32_t count, capacity;
	uint32_t next;	 // index of the next address in the current round
	bool name_taken; // a remembered member refused us: a living agent holds our name
};

void remembered_fini(struct ras *ras);
// Return the next address to ask that is neither a seed nor our own. False at the end of a round.
bool remembered_next_address(struct ras *ras, struct sock_addr *ret_address);
// Drop an address that refused us, if it is remembered and no seed. Returns true in that case: the
// refusal must not stop this agent.
bool remembered_drop_refused(
	struct ras *ras, const struct sock_addr *address, enum ras_cause cause, uint64_t value
);
// Drop an address that is our own, or whose agent is known.
void remembered_drop(struct ras *ras, const struct sock_addr *address);
// Connect to address `n`; if an entry of the table has that address, drop it instead.
void remembered_try_address(struct ras *ras, uint32_t n);
