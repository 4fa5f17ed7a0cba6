// SPDX-License-Identifier: BSD-3-Clause
// Where on the link an address is: what ARP and Neighbour Discovery brought. Pure.
//
// Bounded: four places for each of 128 sets by address, of which the one heard of least recently
// gives way. What is learnt unasked only corrects what is known, so that strangers fill nothing.
#pragma once

#include "wire/link.h"

#define NEIGHBOUR_WAYS 4
#define NEIGHBOUR_SETS 128
// A place that was told of so long ago is asked for again while it is still used, and not used
// any more if nobody answers.
#define NEIGHBOUR_FRESH_NS UINT64_C(30000000000)
#define NEIGHBOUR_LOST_NS UINT64_C(5000000000)
#define NEIGHBOUR_ASK_NS UINT64_C(100000000) // between questions

struct neighbour {
	union ibv_gid gid;
	bool used, known;
	uint8_t mac[LINK_MAC_BYTES];
	uint64_t heard_ns, asked_ns;
	void *held; // one packet that waits for the answer, the table's user's
};

struct neighbour_table {
	struct neighbour places[NEIGHBOUR_SETS][NEIGHBOUR_WAYS];
};

// The place of this address, made if there is none. *ret_held: what the one that gave way held.
struct neighbour *neighbour_seek(
	struct neighbour_table *table, const union ibv_gid *gid, uint64_t now_ns, void **ret_held
);
// Whether frames may go to ->mac, and whether a question is due, which then counts as asked.
bool neighbour_usable(struct neighbour *neighbour, uint64_t now_ns, bool *ret_ask);
// Someone told where an address is. The place, whose held packet may go now; NULL if it is none
// of ours. wanted: make a place, as for one that asks us.
struct neighbour *neighbour_learn(
	struct neighbour_table *table,
	const struct link_talk *talk,
	bool wanted,
	uint64_t now_ns,
	void **ret_held
);
// Nothing is known any more; what is held stays.
void neighbour_forget(struct neighbour_table *table);
