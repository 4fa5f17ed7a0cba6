// SPDX-License-Identifier: BSD-3-Clause
// The list sent with a census of the reachable members.
#pragma once

#include "live/liveness.h"

struct census_list {
	struct ras_comm_id entries[COLLECT_CENSUS_MAX];
	uint32_t count;
};

// Build the list for our own census that begins now. It asks who hears the peers that refuse this
// agent or are suspected. It also names the members without a vote and those that are not to be
// counted.
void census_list_build(struct ras *ras, struct census_list *ret_list);
// Return true if members with a vote may use a census of another origin. The origin must have a
// vote, and must ask no member for a vote that has none here. Otherwise the census may rest on an
// old view. Such a view gives votes to dead members that do not know their death, and to joiners in
// a partition. It also misses recently joined members as opponents.
bool census_list_is_usable(const struct ras *ras, const struct collect_request *request);
// Return true if the list names all members without a vote at its origin, and `id` is not among
// them.
bool census_list_grants_vote(const struct collect_request *request, uint64_t id);
