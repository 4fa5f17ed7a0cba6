// SPDX-License-Identifier: BSD-3-Clause
// Votes: which members count for a majority in a census. In a partition both sides may hold more
// than half of the view that each knows. An agent that one side declared dead, or that joined one
// side, is a member on one side only. Such a member has no vote until no member was missed for some
// time.
//
// An opponent is a member that counts in the electorate if a census misses it. It may have no vote
// here: the other side may let it vote. A late member is one that joined in a possible partition.
// See "Votes" in docs/internals/membership.md.
#pragma once

#include "live/liveness.h"

// Return true if the origin of a census has a vote, as far as known here.
bool votes_origin_has_vote(const struct ras *ras, uint64_t origin);
// Return the electorate of a census whose `members`, `reached` and `voters` are known.
uint32_t votes_electorate(const struct ras *ras, const struct census_result *result);
// Give all members their vote again after the view was whole for some time.
void votes_tick(struct ras *ras);

// Return true if a peer that joins now gets a vote; RAS_NO_SLOT is a stranger. While the view is
// not whole and more than one member is missed, no peer gets one. While one is missed, only a peer
// that is still a member gets one. Without this rule, a peer that joins one side of a partition
// could give both sides a majority. So could a peer that returns to one side after the other
// declared it dead.
bool votes_joiner_has_vote(const struct ras *ras, uint32_t slot);
// Note a join without a vote. The peer may have joined another side before the partition was
// noticed, and have a vote there. So it has no vote here, and is an opponent where it is missed. A
// peer whose vote was withdrawn before its restart is no opponent.
void votes_note_join_in_partition(struct ras *ras, uint32_t slot, bool taken_back);
// Note a join, or the restart of a member, with a vote.
void votes_note_join(struct ras *ras, uint32_t slot, bool was_member);
// Withdraw votes after members were missed. A peer that joined after the last message of a missed
// member may have joined in an unnoticed partition. It has no vote then if it is reached. If it is
// missed itself, it remains an opponent: it may be a member on the other side. A reached peer may
// know better, see votes_reported_late(). Returns true if a vote was withdrawn.
bool votes_withdraw_late(struct ras *ras);
// Reconsider the late members after a census, by the members missed now. A late member regains its
// vote if each missed member had our view after the late one joined. All members beyond a partition
// then know the late one. All reached members must have our view too. Returns true if a member got
// its vote back.
bool votes_restore_late(struct ras *ras);
// Withdraw the vote of a member that came back after its death, or of this agent. Also used if this
// agent joined without a vote.
void votes_withdraw(struct ras *ras, uint32_t slot);
// Handle a report that this agent has no vote. It is believed while this agent is new. An agent
// that founded a ring in a partition learns it in no other way when the rings merge. Later the
// report may be a lie. A report is ignored if its origin has no vote here, as less than half of the
// members: that is the view of a merged smaller ring.
void votes_reported_voteless(struct ras *ras, uint64_t origin);
// Handle a report that this agent joined late, from a view with this digest. Returns true if this
// agent has a vote all the same: it met all members of that view since its join. Then every member
// beyond a partition knows it and counts it as an opponent. Otherwise the report is believed as in
// votes_reported_voteless(), until all members are met.
bool votes_reported_late(struct ras *ras, uint64_t origin, uint64_t view_digest);
// Handle a census of another origin. If its list grants this agent a vote, that origin no longer
// holds it for a late member.
void votes_end_late_report(struct ras *ras, uint64_t origin, const struct collect_request *request);
// Handle the flags of a peer that restarts or is removed. It can no longer end its late report. So
// the report holds until votes_tick() gives all members their votes.
void votes_orphan_late_report(struct ras *ras, uint8_t flags);
// Return true if this agent has no vote yet.
bool votes_self_has_none(const struct ras *ras);
// Return true if the member has no vote yet.
bool votes_member_has_none(const struct ras *ras, uint32_t slot);
// Connect a new agent in a small ring to all members it has not met. No member then holds it for
// late.
void votes_call_unmet(struct ras *ras);
