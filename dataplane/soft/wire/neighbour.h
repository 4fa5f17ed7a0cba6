// SPDX-License-Identifier: BSD-3-Clause
// Table of neighbours: hardware addresses learnt by ARP and Neighbour Discovery. Pure functions.
//
// Bounded: 128 sets by address with four entries each; the entry heard least recently is evicted.
// Unsolicited messages only update known entries, so that strangers cannot fill the table.
#pragma once

#include "wire/link.h"

#define NEIGHBOUR_WAYS 4
#define NEIGHBOUR_SETS 128
// Age after which a used entry is requested again, and additional time after which it is unusable
// without an answer.
#define NEIGHBOUR_FRESH_NS UINT64_C(30000000000)
#define NEIGHBOUR_GRACE_NS UINT64_C(5000000000)
#define NEIGHBOUR_REQUEST_NS UINT64_C(100000000) // minimum time between requests

struct neighbour {
	union ibv_gid gid;
	bool used, known;
	uint8_t mac[LINK_MAC_BYTES];
	uint64_t heard_ns, asked_ns;
	void *held; // one packet that waits for the answer; owned by the table's user
};

struct neighbour_table {
	struct neighbour places[NEIGHBOUR_SETS][NEIGHBOUR_WAYS];
};

// Return the entry of this address, created if missing. *ret_held: the held packet of an evicted
// entry.
struct neighbour *neighbour_get(
	struct neighbour_table *table, const union ibv_gid *gid, uint64_t now_ns, void **ret_held
);
// Return true if frames may go to ->mac. *ret_ask: a request is due; the entry counts it as sent.
bool neighbour_is_usable(struct neighbour *neighbour, uint64_t now_ns, bool *ret_ask);
// Learn an address from a message. Returns the entry, whose held packet may now be sent, or NULL if
// none exists. wanted: create a missing entry, as for a host that asks for this one.
struct neighbour *neighbour_learn(
	struct neighbour_table *table,
	const struct link_message *talk,
	bool wanted,
	uint64_t now_ns,
	void **ret_held
);
// Invalidate all entries; held packets stay.
void neighbour_invalidate_all(struct neighbour_table *table);
