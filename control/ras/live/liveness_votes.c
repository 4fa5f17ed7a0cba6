// SPDX-License-Identifier: BSD-3-Clause
// Which members have a vote, and which have none yet.
#include "live/liveness_votes.h"

#include "core/core.h"

// Longer than a partition may stay unnoticed.
#define GAP_UNNOTICED_NS (15 * RAS_NS_PER_SEC)

// Longer than two agents differ in the time since which the view is whole. A census that missed a
// member delays that time where it was received, until the census is too old.
#define VOTE_LATER_NS (GAP_UNNOTICED_NS + CENSUS_OLD_NS)

// In rings up to this size a new member meets all members. In rings of more than twice
// VOTE_JOINS_MAX, the late members are fewer than half. In rings between the two sizes some stay
// late.
#define MEET_MAX 64
#define MEET_NS (10 * RAS_NS_PER_SEC) // after the own join

// Compute the electorate. A member that came back after its death belongs to no view that a
// majority agreed on. With a vote at once, two sides to which it belongs in turn could declare each
// other dead. Reached members report their vote, or vote as our list asks. Of the missed members,
// our own list tells which have no vote. More reached members may lack a vote than our list names.
// Then more of the missed ones are counted: the safe side.
uint32_t votes_electorate(const struct ras *ras, const struct census_result *result) {
	uint32_t missed = result->members > result->reached ? result->members - result->reached : 0;
	uint32_t told = result->voters + (votes_self_has_none(ras) ? 1 : 0);
	uint32_t silent = result->reached > told ? result->reached - told : 0;
	uint32_t uncounted = ras->liveness.census.own_voteless;

	uncounted = uncounted > silent ? uncounted - silent : 0;
	return result->voters + missed - (uncounted < missed ? uncounted : missed);
}

static bool is_expired(const struct ras *ras, uint64_t at_ns) {
	return at_ns == 0 || ras->observed_ns - at_ns >= CENSUS_OLD_NS;
}

// Return true if no member is missed here, or by the latest census of an origin that may see more.
// Members that ended since that census do not matter. An old census says nothing.
static bool view_is_whole(const struct ras *ras) {
	const struct census *census = &ras->liveness.census;
	const uint32_t *counts = ras->peers.state_counts;

	return counts[RAS_SUSPECT] == 0 && counts[RAS_UNREACHABLE] == 0 &&
	       (census_missed_count(&census->word) <= census->ended ||
		is_expired(ras, census->word.at_ns)) &&
	       is_expired(ras, census->missing_agreed_ns);
}

// Restore votes in two steps after the view became whole. After brake_hold_ns members without a
// vote count as opponents when missed. Their own votes return VOTE_LATER_NS later, since one side
// may notice a partition that much later than the other. In between they favour no side. Otherwise
// members beyond a partition could have their votes already, while they have none here.
void votes_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	uint64_t view_whole_since_ns;

	if (!view_is_whole(ras)) {
		liveness->view_whole_since_ns = RAS_NEVER;
		return;
	}
	if (liveness->view_whole_since_ns == RAS_NEVER)
		liveness->view_whole_since_ns = ras->observed_ns;
	view_whole_since_ns = ras->observed_ns - liveness->view_whole_since_ns;
	if (view_whole_since_ns >= ras->profile->brake_hold_ns && !liveness->voteless_oppose) {
		liveness->voteless_oppose = true;
		// They remain opponents when another vote is withdrawn later: members beyond a
		// partition may already have given them their votes.
		for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
			struct peer_entry *entry = ras_entry(ras, slot);

			if ((entry->flags & PEER_NO_VOTE) != 0)
				entry->flags |= PEER_IS_OPPONENT;
		}
	}
	if (!liveness->taken_back ||
	    view_whole_since_ns < ras->profile->brake_hold_ns + VOTE_LATER_NS)
		return;
	liveness->taken_back = false;
	liveness->voteless_count = 0;
	ras->uncounted = false;
	ras->late = false;
	liveness->late_reporter_count = 0;
	liveness->late_report_is_orphan = false;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++)
		ras_entry(ras, slot)->flags &=
			(uint8_t) ~(PEER_NO_VOTE | PEER_IS_OPPONENT | PEER_REPORTS_US_LATE);
}

static void vote_withdraw_by_flag(struct ras *ras, uint32_t slot, uint8_t flag) {
	struct liveness *liveness = &ras->liveness;
	struct peer_entry *entry = ras_entry(ras, slot);
	bool is_listed = (entry->flags & PEER_NO_VOTE) != 0;

	liveness->taken_back = true;
	liveness->voteless_oppose = false;
	if (liveness->view_whole_since_ns != RAS_NEVER)
		liveness->view_whole_since_ns = ras->observed_ns;
	if (slot == ras->self_slot) {
		if (flag == PEER_LATE_JOINER)
			ras->late = true;
		else
			ras->uncounted = true;
		return;
	}
	entry->flags = (uint8_t)((entry->flags & ~PEER_IS_OPPONENT) | flag);
	if (is_listed)
		return;
	if (liveness->voteless_count < COLLECT_CENSUS_MAX)
		liveness->voteless_slots[liveness->voteless_count] = slot;
	if (liveness->voteless_count <= COLLECT_CENSUS_MAX)
		liveness->voteless_count++;
}

void votes_withdraw(struct ras *ras, uint32_t slot) {
	vote_withdraw_by_flag(ras, slot, PEER_READMITTED);
}

bool votes_member_has_none(const struct ras *ras, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	return entry->record != NULL && peer_is_member(entry) && slot != ras->self_slot &&
	       (entry->flags & PEER_NO_VOTE) != 0;
}

// Return true if a member without a vote belongs to a smaller ring that merged with ours. Each of
// two merged rings holds the members of the other for newcomers. The members of the larger ring do
// not believe it.
static bool is_voteless_of_small_ring(const struct ras *ras, uint64_t id) {
	const struct liveness *liveness = &ras->liveness;
	bool anywhere = liveness->voteless_count > COLLECT_CENSUS_MAX;
	uint32_t most = anywhere ? ras->peers.entry_count : liveness->voteless_count;
	uint32_t slot = peers_find(&ras->peers, id);
	uint64_t lacking = 0;

	if (slot == RAS_NO_SLOT || !votes_member_has_none(ras, slot))
		return false;
	for (uint32_t n = 0; n < most; n++)
		lacking += votes_member_has_none(ras, anywhere ? n : liveness->voteless_slots[n]);
	return 2 * lacking < peers_member_count(&ras->peers);
}

static bool report_is_believed(const struct ras *ras, uint64_t origin) {
	return ras->observed_ns - ras->joined_ns < 2 * ras->profile->brake_hold_ns &&
	       !is_voteless_of_small_ring(ras, origin);
}

void votes_reported_voteless(struct ras *ras, uint64_t origin) {
	if (report_is_believed(ras, origin))
		vote_withdraw_by_flag(ras, ras->self_slot, PEER_READMITTED);
}

void votes_orphan_late_report(struct ras *ras, uint8_t flags) {
	if ((flags & PEER_REPORTS_US_LATE) == 0)
		return;
	must(ras->liveness.late_reporter_count > 0);
	ras->liveness.late_reporter_count--;
	ras->liveness.late_report_is_orphan = true;
}

static bool peer_is_unmet(const struct ras *ras, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	return entry->record != NULL && peer_is_member(entry) && slot != ras->self_slot &&
	       (entry->flags & PEER_SEEN) == 0;
}

// Return true if every member spoke to this agent on a link. Each of them then held this agent for
// a member.
static bool all_members_are_met(const struct ras *ras) {
	if (peers_member_count(&ras->peers) > MEET_MAX)
		return false;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		if (peer_is_unmet(ras, slot))
			return false;
	}
	return true;
}

bool votes_self_has_none(const struct ras *ras) {
	return ras->uncounted || (ras->late && !all_members_are_met(ras));
}

static void unmet_members_call(struct ras *ras) {
	if (peers_member_count(&ras->peers) > MEET_MAX)
		return;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		if (peer_is_unmet(ras, slot) && link_find(ras, slot) == NULL)
			link_want(ras, slot, RAS_USE_CHECK);
	}
}

void votes_call_unmet(struct ras *ras) {
	if (ras->observed_ns - ras->joined_ns < MEET_NS)
		unmet_members_call(ras);
}

bool votes_reported_late(struct ras *ras, uint64_t origin, uint64_t view_digest) {
	uint32_t slot = peers_find(&ras->peers, origin);

	if (all_members_are_met(ras) && view_digest == peers_digest(&ras->peers))
		return true;
	if (origin != ras->self_id && report_is_believed(ras, origin)) {
		vote_withdraw_by_flag(ras, ras->self_slot, PEER_LATE_JOINER);
		if (slot == RAS_NO_SLOT) {
			ras->liveness.late_report_is_orphan = true;
		} else if ((ras_entry(ras, slot)->flags & PEER_REPORTS_US_LATE) == 0) {
			ras_entry(ras, slot)->flags |= PEER_REPORTS_US_LATE;
			ras->liveness.late_reporter_count++;
		}
	}
	unmet_members_call(ras);
	return false;
}

bool votes_joiner_has_vote(const struct ras *ras, uint32_t slot) {
	const struct liveness *liveness = &ras->liveness;
	const uint32_t *counts = ras->peers.state_counts;
	bool is_gap = liveness->brake || census_missed_count(&liveness->census.word) > 1 ||
		      counts[RAS_SUSPECT] + counts[RAS_UNREACHABLE] > 1;

	// A restart does not restore a withdrawn vote.
	if (slot != RAS_NO_SLOT && (ras_entry(ras, slot)->flags & PEER_NO_VOTE) != 0)
		return false;

	return liveness->view_whole_since_ns != RAS_NEVER ||
	       (!is_gap && slot != RAS_NO_SLOT && peer_is_member(ras_entry(ras, slot)));
}

static void join_record_add(struct ras *ras, uint32_t slot, bool beside, bool weighed) {
	struct liveness *liveness = &ras->liveness;

	if (!ras->joined)
		return; // this agent is the joiner; the others were members before
	liveness->joins[liveness->join_count++ % VOTE_JOINS_MAX] = (struct vote_join){
		.id = ras_entry(ras, slot)->record->id,
		.at_ns = ras->observed_ns,
		.beside = beside,
		.weighed = weighed,
	};
}

void votes_note_join(struct ras *ras, uint32_t slot, bool was_member) {
	join_record_add(ras, slot, false, was_member);
}

void votes_note_join_in_partition(struct ras *ras, uint32_t slot, bool taken_back) {
	vote_withdraw_by_flag(ras, slot, taken_back ? PEER_READMITTED : PEER_LATE_JOINER);
	join_record_add(ras, slot, true, true);
}

// Return the latest join of a member, or NULL if it is unknown.
static const struct vote_join *join_record_find(const struct ras *ras, uint64_t id) {
	const struct vote_join *found = NULL;

	for (uint32_t n = 0; n < VOTE_JOINS_MAX; n++) {
		const struct vote_join *join = &ras->liveness.joins[n];

		if (join->id == id && (found == NULL || join->at_ns > found->at_ns))
			found = join;
	}
	return found;
}

// Return the time of the last message of a link's peer. If the peer never spoke on the link, its
// join stands for a message. A join long ago is no useful limit: others heard the peer since, and
// all later joiners would be late.
static uint64_t last_message_ns(const struct ras *ras, const struct link *link) {
	const struct vote_join *join;

	if (link->connects > 0 && !link->unheard)
		return link->heard_ns;
	join = join_record_find(ras, link->peer);
	if (join == NULL || join->weighed || ras->observed_ns - join->at_ns >= GAP_UNNOTICED_NS)
		return RAS_NEVER;
	return join->at_ns;
}

bool votes_withdraw_late(struct ras *ras) {
	uint64_t since_ns = RAS_NEVER; // earliest last message of a missed member, as far as known
	bool any = false;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];
		const struct peer_entry *entry;

		if (!link->used || last_message_ns(ras, link) >= since_ns)
			continue;
		entry = ras_entry(ras, link->slot);
		if (peer_is_member(entry) &&
		    (link->refused_ns != RAS_NEVER || link->delayed || entry->state != RAS_ALIVE))
			since_ns = last_message_ns(ras, link);
	}
	for (uint32_t n = 0; n < VOTE_JOINS_MAX; n++) {
		struct vote_join *join = &ras->liveness.joins[n];
		uint32_t slot;

		if (join->id == 0 || join->weighed || join->at_ns < since_ns)
			continue;
		slot = peers_find(&ras->peers, join->id);
		join->weighed = true;
		if (slot == RAS_NO_SLOT || (ras_entry(ras, slot)->flags & PEER_NO_VOTE) != 0)
			continue;
		vote_withdraw_by_flag(ras, slot, PEER_LATE_JOINER);
		any = true;
	}
	return any;
}

// Return true if all neighbours have our view. Then all reached members have it, since each has
// neighbours that agree with it.
static bool neighbours_share_view(const struct ras *ras) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link_is_good(link) &&
		    (link->agreed_ns == 0 || link->agreed_digest != peers_digest(&ras->peers)))
			return false;
	}
	return true;
}

struct missed {
	uint32_t count;
	// Time up to which the member with the least knowledge knows all joins; RAS_NEVER if no
	// member is missed.
	uint64_t joins_known_until_min_ns;
};

static void missed_member_add(const struct ras *ras, struct missed *missed, uint32_t slot) {
	const struct vote_join *join = join_record_find(ras, ras_entry(ras, slot)->record->id);
	const struct link *link = link_find(ras, slot);
	// At its own join the member received the whole table.
	uint64_t until_ns = join != NULL && !join->beside ? join->at_ns : 0;

	if (link != NULL && link->agreed_ns > until_ns)
		until_ns = link->agreed_ns;
	missed->count++;
	if (until_ns < missed->joins_known_until_min_ns)
		missed->joins_known_until_min_ns = until_ns;
}

static struct missed missed_members_collect(const struct ras *ras) {
	const uint32_t *counts = ras->peers.state_counts;
	uint32_t more = counts[RAS_SUSPECT] + counts[RAS_UNREACHABLE];
	struct missed missed = {.joins_known_until_min_ns = RAS_NEVER};

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link->used && ras_entry(ras, link->slot)->state == RAS_ALIVE &&
		    (link->refused_ns != RAS_NEVER || link->delayed))
			missed_member_add(ras, &missed, link->slot);
	}
	for (uint32_t slot = 0; more > 0 && slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record == NULL ||
		    (entry->state != RAS_SUSPECT && entry->state != RAS_UNREACHABLE))
			continue;
		missed_member_add(ras, &missed, slot);
		more--;
	}
	return missed;
}

bool votes_restore_late(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	struct missed missed;
	bool any = false;

	if (!liveness->taken_back || !neighbours_share_view(ras))
		return false;
	missed = missed_members_collect(ras);
	if (census_missed_count(&liveness->census.word) > missed.count)
		return false; // other members miss someone as well
	for (uint32_t n = 0; n < VOTE_JOINS_MAX; n++) {
		const struct vote_join *join = &liveness->joins[n];
		uint32_t slot = join->id != 0 ? peers_find(&ras->peers, join->id) : RAS_NO_SLOT;

		// Only the latest join of a late member counts.
		if (slot == RAS_NO_SLOT || join_record_find(ras, join->id) != join ||
		    (ras_entry(ras, slot)->flags & PEER_NO_VOTE) != PEER_LATE_JOINER ||
		    join->at_ns >= missed.joins_known_until_min_ns)
			continue;
		ras_entry(ras, slot)->flags &= (uint8_t) ~(PEER_LATE_JOINER | PEER_IS_OPPONENT);
		any = true;
		if (liveness->voteless_count > COLLECT_CENSUS_MAX)
			continue; // some are not listed
		for (uint32_t at = 0; at < liveness->voteless_count;) {
			if (liveness->voteless_slots[at] == slot)
				liveness->voteless_slots[at] =
					liveness->voteless_slots[--liveness->voteless_count];
			else
				at++;
		}
	}
	return any;
}

void votes_end_late_report(
	struct ras *ras, uint64_t origin, const struct collect_request *request
) {
	uint32_t slot = peers_find(&ras->peers, origin);

	if (!ras->late || slot == RAS_NO_SLOT ||
	    (ras_entry(ras, slot)->flags & PEER_REPORTS_US_LATE) == 0 ||
	    !census_list_grants_vote(request, ras->self_id))
		return;
	ras_entry(ras, slot)->flags &= (uint8_t)~PEER_REPORTS_US_LATE;
	must(ras->liveness.late_reporter_count > 0);
	ras->liveness.late_reporter_count--;
	ras->late = ras->liveness.late_reporter_count > 0 || ras->liveness.late_report_is_orphan;
}

bool votes_origin_has_vote(const struct ras *ras, uint64_t origin) {
	uint32_t slot = peers_find(&ras->peers, origin);
	const struct peer_entry *entry;

	if (slot == RAS_NO_SLOT)
		return false;
	entry = ras_entry(ras, slot);
	return peer_is_member(entry) && (entry->flags & PEER_NO_VOTE) == 0;
}
