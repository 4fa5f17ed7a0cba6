// SPDX-License-Identifier: BSD-3-Clause
// Who has a vote in a count of the reachable. Two parts may each hold more than half of the view
// that they know: one that was declared dead by one of them, or joined one beside a gap, is a
// member to one and not to the other. So such a one has none, until nobody was missed for a while.
#pragma once

#include "live/liveness.h"

// The votes of a count are of use to those with a vote if its origin, as far as is known here, has
// one, too.
bool votes_are_of_voter(const struct ras *ras, uint64_t origin);
// Of how many the votes of this count are: `members`, `reached` and `voters` are known.
uint32_t votes_electorate(const struct ras *ras, const struct census_result *result);
// They have one again after a time in which the view was whole.
void votes_tick(struct ras *ras);

// Whether a start of it that joins now has one; RAS_NO_SLOT is a stranger. Where the view is not
// whole only who is a member still, and as long as no more than one is missed: beside a gap one who
// joins on either side, or comes back there after the other one declared it dead, would make a
// majority of both.
bool votes_joiner_has_one(const struct ras *ras, uint32_t slot);
// One joined who has none. Whether it does in another part we do not know: it may have joined there
// before anybody noticed a gap. So it votes for nobody here, and is an opponent where it is missed;
// but for one whose vote was taken before it started anew.
void votes_joined_beside(struct ras *ras, uint32_t slot, bool taken_back);
// One joined, or a member started anew, and has one.
void votes_joined(struct ras *ras, uint32_t slot, bool was_member);
// More than one is missed: who joined after the last word of any of them may have joined beside a
// gap that nobody had noticed, and does not vote either, if it is reached. One that is missed
// itself may be of the other part, and a member there: it still counts as an opponent. Whoever is
// reached may know better, see votes_told_late(). True if that took a vote from somebody.
bool votes_withdraw_late(struct ras *ras);
// A count is at hand: those who are late are weighed anew, by who is missed now. Who joined before
// the last word of each of them in which it had our view is known to all who might be beyond a gap,
// if all who are reached have our view, too. True if that gave a vote to somebody.
bool votes_weigh_late(struct ras *ras);
// It was held for dead and is back, or we are; or we joined, and have none yet.
void votes_withdraw(struct ras *ras, uint32_t slot);
// Another one says that we have none. It is believed if we are new: who founded a ring beside a gap
// is not told by those whose ring becomes one with it. Later it may be a lie; and of one who has
// none itself here, with fewer than half of the members, it is the view of the ring that came.
void votes_told_none(struct ras *ras, uint64_t origin);
// Another one says that we joined late, as its view of this digest is. True if we count all the
// same: we have met all members of that view since we joined, so whoever is beyond a gap knows us
// and counts us as an opponent. Else it is believed as votes_told_none() is, until we have.
bool votes_told_late(struct ras *ras, uint64_t origin, uint64_t view_digest);
// A count of another one says nothing of us: if it held us for late before, it does not any more.
void votes_told_nothing(struct ras *ras, uint64_t origin, const struct collect_request *request);
// We count for no majority yet.
bool votes_has_none(const struct ras *ras);
// Nor does this member.
bool votes_lacks_one(const struct ras *ras, uint32_t slot);
// A new member of a small ring calls each whom it has not met, so that it is late for nobody.
void votes_meet(struct ras *ras);
