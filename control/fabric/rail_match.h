// SPDX-License-Identifier: BSD-3-Clause
// Which rail of a peer belongs to which of ours. Pure.
//
// A rail is a port of a device. Two rails are on one network if they are in the same subnet: the
// prefix of InfiniBand, or the IP block of a RoCE port. Of several in one subnet the first here is
// that of the first there, and so on; where there are fewer there, they are taken again from the
// first on. A rail whose subnet is not known may be on any network: it goes with one of theirs that
// no subnet has claimed, by name, then by order, those first whose subnet is known. Two nodes that
// have no subnet in common can only be reached through routers: then all are matched by order. What
// is left has no common fabric.
//
// Both sides do this with the same two lists, and come to the same pairs: the rail that one takes
// takes back that one, or another one that takes it too.
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

// For each own rail the place of theirs, or RAIL_NONE.
void rail_match(
	const struct rail_list *own,
	const struct rail_list *theirs,
	uint32_t ret_places[static RAILS_MAX]
);
// The nth other rail of theirs, besides the one it is matched with, that is in the subnet of this
// own one; RAIL_NONE: there are not so many.
uint32_t rail_across(
	const struct rail_list *own, const struct rail_list *theirs, uint32_t rail, uint32_t nth
);
// The same facts, in the same order.
bool rail_list_same(const struct rail_list *a, const struct rail_list *b);
