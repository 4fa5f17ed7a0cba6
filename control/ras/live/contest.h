// SPDX-License-Identifier: BSD-3-Clause
// Deaths reported by other agents: whether they have enough witnesses, and whether the subject
// lives.
//
// A death is merged if it has as many witnesses as a death declared here would need. With fewer
// witnesses it becomes a suspicion, whichever way it arrived. If this agent hears the subject on a
// good link, the death is contested: the subject is notified. A living subject refutes with a
// higher incarnation. The refutation is passed on to the agents that believed the death. Messages
// that were already in flight prove nothing, so an ordinary message of the subject is not enough.
// If no refutation arrives in time, or the link turns silent, the death is merged as reported.
#pragma once

#include "member/peers.h"

#include <stdbool.h>
#include <stdint.h>

struct ras;

#define CONTESTS_MAX 256

struct contest {
	struct peer_news news; // the reported death, without a record
	uint64_t due_ns;
};

struct contests {
	struct contest *list;
	uint32_t count, capacity;
};

void contests_fini(struct ras *ras);
void contests_tick(struct ras *ras);

// Judge a death reported by others. Returns true if it may be merged now. Otherwise it became a
// suspicion, or its subject was asked to refute.
bool contest_death_is_accepted(struct ras *ras, uint32_t slot, const struct peer_news *news);
// End the contest of a peer that lives in this incarnation. Returns true if that refutes a death
// that was contested here.
bool contest_end_if_refuted(struct ras *ras, uint32_t slot);
// Drop the contest of a peer that is no member any more, or another start.
void contest_forget_peer(struct ras *ras, uint32_t slot);
