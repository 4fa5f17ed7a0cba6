// SPDX-License-Identifier: BSD-3-Clause
// The list that goes with a count of the reachable.
#pragma once

#include "live/liveness.h"

struct census_list {
	struct ras_comm_id entries[COLLECT_CENSUS_MAX];
	uint32_t count;
};

// Of a count of ours that begins now: who hears those who refuse us or are suspected, who has no
// vote, who is not to be counted.
void census_list_ask(struct ras *ras, struct census_list *ret_list);
// A count of another one that begins is of use to those with a vote: its origin has one, too, and
// it asks nobody for a vote who has none here. Else it may be of an old view: it lets those vote
// who were declared dead and do not know it yet, or who joined beside a gap, and knows of none of
// those who joined meanwhile as opponents.
bool census_list_serves_us(const struct ras *ras, const struct collect_request *request);
// It names all who have no vote where it comes from, and not this one.
bool census_list_lets_vote(const struct collect_request *request, uint64_t id);
