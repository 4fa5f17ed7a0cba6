// SPDX-License-Identifier: BSD-3-Clause
// Matches the rails of a peer with our own rails. Pure.
//
// A rail is a port of a device. Two rails are on one network if they are in the same subnet: the
// prefix of InfiniBand, or the IP block of a RoCE port. Rails of one subnet are matched in order,
// the first with the first. If the peer has fewer rails there, its rails are used again from the
// first on.
//
// A rail with an unknown subnet may be on any network. It is matched with a rail of the peer that
// no subnet has claimed: by name, then by order, known subnets first. Two nodes without a common
// subnet reach each other only through routers, so all their rails are matched by order. The
// remaining rails have no common fabric.
//
// Both sides match the same two lists and get the same pairs. If our rail A is matched with the
// peer's rail B, the peer matches B with A. If several of our rails share B, the peer matches B
// with one of these.
#pragma once

#include <dataplane/device.h>

#define RAILS_MAX 16
#define RAIL_NONE UINT32_MAX

struct rail {
	char name[DEVICE_NAME_MAX + 1];
	enum device_link link;
	struct device_subnet subnet;
};

struct rail_list {
	uint32_t count;
	struct rail rails[RAILS_MAX];
};

// Match each own rail. ret_places[n] is the index of the peer's rail, or RAIL_NONE.
void rail_match(
	const struct rail_list *own,
	const struct rail_list *theirs,
	uint32_t ret_places[static RAILS_MAX]
);
// Return the nth rail of the peer, beside the matched one, that is in the subnet of own rail
// `rail`. Returns RAIL_NONE if there are fewer.
uint32_t rail_other_in_subnet(
	const struct rail_list *own, const struct rail_list *theirs, uint32_t rail, uint32_t nth
);
// Return whether both lists have the same facts in the same order.
bool rail_list_same(const struct rail_list *a, const struct rail_list *b);
