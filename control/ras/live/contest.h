// SPDX-License-Identifier: BSD-3-Clause
// Deaths that others tell of: whether they weigh enough here, and whether the subject lives.
//
// A death is taken over if as many saw it as our own verdict would need; one that fewer saw is a
// suspicion, whichever way it came. And whoever hears the subject on a good link does not take
// its death over: it tells the subject, which refutes with a higher incarnation if it hears that,
// and passes the refutation on to those who believed the death. What was on its way before proves
// nothing, so a word of the subject is not enough: if no refutation is there in time, or the link
// turns silent, the death is taken over as it was told.
#pragma once

#include "member/peers.h"

#include <stdbool.h>
#include <stdint.h>

struct ras;

#define CONTESTS_MAX 256

struct contest {
	struct peer_news news; // without a record
	uint64_t due_ns;
};

struct contests {
	struct contest *list;
	uint32_t count, capacity;
};

void contests_fini(struct ras *ras);
void contests_tick(struct ras *ras);

// Of news of a death by others: true if it may be taken over now. Else it was taken for a
// suspicion, or its subject was asked.
bool contest_pass(struct ras *ras, uint32_t slot, const struct peer_news *news);
// The peer lives in this incarnation: true if that refutes a death that was contested here.
bool contest_won(struct ras *ras, uint32_t slot);
// The peer is no member any more, or another start.
void contest_forget(struct ras *ras, uint32_t slot);
