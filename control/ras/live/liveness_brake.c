// SPDX-License-Identifier: BSD-3-Clause
// A census of the reachable members; the brake holds deaths back when too many are missed.
#include "live/liveness_brake.h"

#include "core/core.h"

#include <string.h>

// Several observers need a census at the same moment. The random delay lets the first one serve
// all.
#define CENSUS_SPREAD_NS (RAS_NS_PER_SEC / 4)
#define CENSUS_NS (RAS_NS_PER_SEC + RAS_NS_PER_SEC / 5) // duration of a census
#define CENSUS_FRESH_NS RAS_NS_PER_SEC			// a lower result is ignored for this time
#define RECOUNT_NS (5 * RAS_NS_PER_SEC)			// interval while the brake is on
#define RECOUNT_WAITING_NS (20 * RAS_NS_PER_SEC)	// later, on a minority side
#define CALM_COUNTS 2

static bool brake_is_disabled(const struct ras *ras) {
	return ras->profile->brake_peers == UINT32_MAX;
}

// Return true if a census was requested two durations ago. Other origins may begin censuses and
// never announce a result; then this agent runs its own.
static bool census_is_overdue(const struct ras *ras) {
	const struct census *census = &ras->liveness.census;

	return census->wanted_ns != 0 && ras->observed_ns - census->wanted_ns >= 2 * CENSUS_NS;
}

static bool census_is_running(const struct ras *ras, uint64_t at_ns, uint64_t since_ns) {
	return at_ns >= since_ns && at_ns != 0 && ras->observed_ns - at_ns < CENSUS_NS;
}

// Return true if our own census is running, or enough others that can agree.
static bool has_enough_running_censuses(const struct ras *ras, uint64_t since_ns) {
	const struct census *census = &ras->liveness.census;
	uint32_t running = 0;

	for (uint32_t n = 0; n < CENSUS_AGREEING; n++)
		running += census_is_running(ras, census->starts[n].at_ns, since_ns);
	return running == CENSUS_AGREEING || census_is_running(ras, census->own_ns, since_ns);
}

void brake_request_census(struct ras *ras, uint64_t since_ns) {
	struct census *census = &ras->liveness.census;

	if (brake_is_disabled(ras) || census->due || census->word.from_ns >= since_ns)
		return;
	if (census->wanted_ns == 0)
		census->wanted_ns = ras->observed_ns;
	if (has_enough_running_censuses(ras, since_ns) && !census_is_overdue(ras))
		return;
	census->due = true;
	census->due_ns = ras->observed_ns + ras_random(ras) % CENSUS_SPREAD_NS;
	ras_wake_at(ras, census->due_ns);
}

uint64_t brake_census_fresh_since_ns(const struct ras *ras) {
	return ras->observed_ns - CENSUS_NS;
}

static struct census_start *census_start_find(struct census *census, uint64_t origin) {
	for (uint32_t n = 0; n < CENSUS_AGREEING; n++) {
		if (census->starts[n].origin == origin)
			return &census->starts[n];
	}
	return NULL;
}

void brake_census_started(struct ras *ras, uint64_t origin, bool serves) {
	struct census *census = &ras->liveness.census;
	struct census_start *start = census_start_find(census, origin);

	// A member without a vote may rely on any census, since no census lets it declare a death.
	if (census_is_overdue(ras) || !(serves || votes_self_has_none(ras)))
		return;
	for (uint32_t n = 0; start == NULL && n < CENSUS_AGREEING; n++) {
		if (census->starts[n].at_ns <= census->starts[1 - n].at_ns)
			start = &census->starts[n];
	}
	must(start != NULL);
	*start = (struct census_start){.origin = origin, .at_ns = ras->observed_ns};
	if (has_enough_running_censuses(ras, 0))
		census->due = false;
}

void brake_resume(struct ras *ras) {
	struct census *census = &ras->liveness.census;

	census->word.from_ns = 0;
	census->told.at_ns = 0;
	census->own_ns = 0;
	memset(census->starts, 0, sizeof(census->starts));
}

// Return true if at most half of a view of more than two is left. The other side may then be as
// large, and declare the members of this one dead. In a view of two neither side is larger, so a
// death is declared and marked as sole. The exception counts members, not votes: in a view of four
// with two voters, neither voter may declare alone. Members without a vote do not decide a tie:
// each side may have some that the other does not know.
static bool census_is_minority(const struct census_outcome *word) {
	return word->members > 2 && 2 * (uint64_t)word->voters <= word->electorate;
}

// Return true if this side is a minority. A member that was declared dead may hold an old view, so
// it must not act on its own census. A census that reached all members is an exception.
static bool own_side_is_minority(const struct ras *ras) {
	const struct census_outcome *word = &ras->liveness.census.word;

	return census_is_minority(word) ||
	       (votes_self_has_none(ras) && word->members > 2 && word->reached < word->members);
}

// Return true if too many members are missed or recently died: more than the larger of brake_peers
// and brake_percent of the view, or so many that this side is a minority. Silent and refusing
// members count the same, since all observers behind one firewall are one witness.
static bool census_exceeds_limit(const struct ras *ras, const struct census_outcome *word) {
	const struct ras_profile *profile = ras->profile;
	uint32_t slots = ras->peers.state_counts[RAS_DEAD] > 0 ? ras->peers.entry_count : 0;
	uint64_t fallen = 0; // died shortly before the census, which does not include them
	uint64_t limit;

	for (uint32_t slot = 0; slot < slots; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		fallen += entry->state == RAS_DEAD && entry->since_ns <= word->from_ns &&
			  word->from_ns - entry->since_ns < profile->brake_window_ns;
	}
	limit = (word->members + fallen) * profile->brake_percent / 100;
	if (limit < profile->brake_peers)
		limit = profile->brake_peers;
	return census_missed_count(word) + fallen > limit || census_is_minority(word);
}

static bool silence_exceeds_limit(const struct ras *ras) {
	return census_exceeds_limit(ras, &ras->liveness.census.word) || own_side_is_minority(ras);
}

static void brake_set(struct ras *ras, bool on) {
	struct liveness *liveness = &ras->liveness;

	liveness->brake = on;
	liveness->calm_census_count = 0;
	if (on) {
		liveness->brake_on_since_ns = ras->observed_ns;
		liveness->brake_hold_start_ns = ras->observed_ns;
		ras_wake_at(ras, ras->observed_ns + RECOUNT_NS);
	}
	ras_emit(
		ras, on ? RAS_EVENT_BRAKE_ON : RAS_EVENT_BRAKE_OFF, RAS_NO_SLOT, RAS_CAUSE_SILENT,
		census_missed_count(&liveness->census.word)
	);
	if (!on)
		liveness_recheck_held(ras);
}

static struct census_outcome census_outcome_make(
	const struct ras *ras, uint64_t origin, uint64_t from_ns, const struct census_result *result
) {
	struct census_outcome word = {
		.origin = origin,
		.reached = result->reached,
		.members = result->members,
		.voters = result->voters,
		.electorate = result->electorate,
		.subject_count = result->subject_count,
		.heard = result->heard,
		.from_ns = from_ns,
		.at_ns = ras->observed_ns,
	};

	for (uint32_t n = 0; n < result->subject_count; n++)
		word.subjects[n] = result->subjects[n];
	return word;
}

static void census_apply(struct ras *ras, const struct census_outcome *word) {
	struct liveness *liveness = &ras->liveness;
	struct census *census = &liveness->census;
	bool more = word->reached > census->word.reached;
	uint32_t silent_before = census_missed_count(&census->word);

	// This census asked a member for a vote that it has no more: repeat it.
	if (census_missed_count(word) > 0 && votes_withdraw_late(ras)) {
		census->due = false;
		census->told.at_ns = 0;
		brake_request_census(ras, ras->observed_ns);
		return;
	}
	census->word = *word;
	census->ended = 0;
	census->told.at_ns = 0;
	census->ours = peers_ring_count(&ras->peers);
	if (word->origin == ras->self_id && word->members > census->ours)
		census->ours = word->members;
	census->wanted_ns = 0;
	census->due = false;
	if (word->reached >= word->members && word->members >= census->ours)
		liveness_census_reached_all(ras, word);
	liveness_census_done(ras);
	if (votes_restore_late(ras))
		brake_request_census(ras, ras->observed_ns);
	// All members that were silent at the release are dead or back, so the release ends.
	if (!silence_exceeds_limit(ras)) {
		if (ras->observed_ns < liveness->brake_released_until_ns)
			liveness_recheck_held(ras); // their individual times no longer apply
		liveness->brake_released_until_ns = 0;
	}
	if (!liveness->brake)
		return;
	// More missed members are a new failure, whose hold time begins now.
	if (own_side_is_minority(ras) || census_missed_count(&census->word) > silent_before)
		liveness->brake_hold_start_ns = ras->observed_ns;
	liveness->calm_census_count =
		silence_exceeds_limit(ras) ? 0 : liveness->calm_census_count + 1;
	if (liveness->calm_census_count >= CALM_COUNTS)
		brake_set(ras, false);
	else if (more)
		liveness_recheck_held(ras); // some members are back
}

static uint32_t census_subject_index(const struct census_outcome *word, uint64_t subject) {
	uint32_t n = 0;

	while (n < word->subject_count && word->subjects[n] != subject)
		n++;
	return n;
}

// Merge the subjects of two results. A subject counts as heard if both results say so, and as not
// heard if either does.
static void census_subjects_merge(struct census_outcome *word, const struct census_outcome *other) {
	struct census_outcome joined = *word;

	joined.subject_count = 0;
	joined.heard = 0;
	for (uint32_t n = 0; n < word->subject_count + other->subject_count; n++) {
		bool first = n < word->subject_count;
		const struct census_outcome *from = first ? word : other;
		const struct census_outcome *beside = first ? other : word;
		uint32_t at = first ? n : n - word->subject_count;
		uint32_t twin = census_subject_index(beside, from->subjects[at]);
		bool known = twin < beside->subject_count;
		bool heard = (from->heard >> at & 1) != 0;

		if ((known && !first) || (!known && heard) ||
		    joined.subject_count == COLLECT_SUBJECTS_MAX)
			continue;
		if (heard && (beside->heard >> twin & 1) != 0)
			joined.heard |= (uint8_t)(1u << joined.subject_count);
		joined.subjects[joined.subject_count++] = from->subjects[at];
	}
	*word = joined;
}

// Return true if the results of two origins lead to the same decisions.
static bool census_outcomes_agree(
	const struct ras *ras, const struct census_outcome *word, const struct census_outcome *other
) {
	return word->origin != other->origin &&
	       census_is_minority(word) == census_is_minority(other) &&
	       census_exceeds_limit(ras, word) == census_exceeds_limit(ras, other);
}

static bool result_is_plausible(const struct census_result *result) {
	return result->reached <= result->members && result->electorate <= result->members &&
	       result->voters <= result->reached && result->voters <= result->electorate;
}

// Note a result of a member without a vote. It may see a partition that no member with a vote sees,
// so the view is not whole. Two such members must report it, since one may lie.
static void
voteless_census_note(struct ras *ras, uint64_t origin, const struct census_result *result) {
	struct census *census = &ras->liveness.census;

	if (result->reached == result->members)
		return;
	if (census->missing.at_ns != 0 && census->missing.origin != origin &&
	    ras->observed_ns - census->missing.at_ns < 2 * CENSUS_NS)
		census->missing_agreed_ns = ras->observed_ns;
	census->missing = (struct census_start){.origin = origin, .at_ns = ras->observed_ns};
}

// Handle a result announced by another origin. It becomes valid if it agrees with the previous one
// of a different origin. The higher result of the two is used, since it is closer to the truth.
void brake_peer_census_done(struct ras *ras, uint64_t origin, const struct census_result *result) {
	struct census *census = &ras->liveness.census;
	struct census_start *start = census_start_find(census, origin);
	struct census_outcome word;
	uint32_t good_links = 0;

	if (brake_is_disabled(ras) || !result_is_plausible(result))
		return;
	if (!votes_origin_has_vote(ras, origin) && !votes_self_has_none(ras)) {
		voteless_census_note(ras, origin, result);
		return;
	}
	if (start == NULL)
		return;
	for (uint32_t n = 0; n < ras->links.count; n++)
		good_links += link_is_good(ras->links.table[n]);
	// An origin that reached no more members than our links is deaf or cut off, and counted
	// only itself. A result read soon after our own pause may be older than the pause.
	if (result->reached <= good_links || start->at_ns < ras->resumed_ns + CENSUS_NS) {
		*start = (struct census_start){0};
		return;
	}
	word = census_outcome_make(ras, origin, start->at_ns, result);
	if (census->told.at_ns == 0 || ras->observed_ns - census->told.at_ns >= 2 * CENSUS_NS ||
	    !census_outcomes_agree(ras, &word, &census->told)) {
		census->told = word;
		return;
	}
	if (census->told.reached > word.reached) {
		struct census_outcome higher = census->told;

		census->told = word;
		word = higher;
	}
	census_subjects_merge(&word, &census->told);
	if (census->told.from_ns < word.from_ns)
		word.from_ns = census->told.from_ns;
	if (word.reached >= census->word.reached ||
	    ras->observed_ns - census->word.at_ns >= CENSUS_FRESH_NS)
		census_apply(ras, &word);
}

void brake_own_census_done(struct ras *ras, uint64_t from_ns, struct census_result *result) {
	struct census_outcome word;

	// A later own census has replaced this one, or this agent paused since.
	if (from_ns != ras->liveness.census.own_ns)
		return;
	result->members = peers_ring_count(&ras->peers);
	// Members that left during the census may have been reached before.
	if (result->members < ras->liveness.census.own_members)
		result->members = ras->liveness.census.own_members;
	result->electorate = votes_electorate(ras, result);
	flood_send_census(ras, result);
	word = census_outcome_make(ras, ras->self_id, ras->liveness.census.own_ns, result);
	census_apply(ras, &word);
}

enum brake_decision brake_decision(struct ras *ras, uint64_t silent_ns, uint64_t since_ns) {
	struct liveness *liveness = &ras->liveness;

	if (brake_is_disabled(ras))
		return BRAKE_FREE;
	if (liveness->brake)
		return BRAKE_HELD;
	if (liveness->census.word.from_ns < since_ns) {
		brake_request_census(ras, since_ns);
		return BRAKE_UNKNOWN;
	}
	if (!silence_exceeds_limit(ras))
		return BRAKE_FREE;
	// The brake was released by time, on a majority side. A silence that began later has a hold
	// time of its own.
	if (ras->observed_ns < liveness->brake_released_until_ns &&
	    silent_ns < liveness->brake_release_limit_ns && !own_side_is_minority(ras))
		return ras->observed_ns - silent_ns < ras->profile->brake_hold_ns ? BRAKE_HELD
										  : BRAKE_FREE;
	// The census may have missed members that are known dead by now: repeat it.
	if (peers_ring_count(&ras->peers) < liveness->census.ours) {
		brake_request_census(ras, ras->observed_ns);
		return BRAKE_UNKNOWN;
	}
	brake_set(ras, true);
	return BRAKE_HELD;
}

bool brake_is_minority_side(const struct ras *ras) {
	const struct census_outcome *word = &ras->liveness.census.word;

	return own_side_is_minority(ras) && ras->observed_ns - word->at_ns < CENSUS_OLD_NS;
}

enum brake_subject_heard brake_subject_heard(const struct ras *ras, uint64_t subject) {
	const struct census_outcome *word = &ras->liveness.census.word;
	uint32_t n = census_subject_index(word, subject);

	if (brake_is_disabled(ras))
		return BRAKE_HEARD_BY_NONE;
	if (n < word->subject_count)
		return (word->heard >> n & 1) != 0 ? BRAKE_HEARD_BY_SOME : BRAKE_HEARD_BY_NONE;
	// With more missed members than subjects, a census cannot ask about all. Such a failure is
	// taken as a fallen host with all its members.
	return census_missed_count(word) > COLLECT_SUBJECTS_MAX ? BRAKE_HEARD_BY_NONE
								: BRAKE_HEARD_NOT_ASKED;
}

enum brake_subject_heard
brake_subject_heard_since(struct ras *ras, uint64_t subject, uint64_t since_ns) {
	const struct census_outcome *word = &ras->liveness.census.word;
	uint32_t n = census_subject_index(word, subject);

	if (brake_is_disabled(ras))
		return BRAKE_HEARD_BY_NONE;
	if (word->from_ns >= since_ns && n < word->subject_count)
		return (word->heard >> n & 1) != 0 ? BRAKE_HEARD_BY_SOME : BRAKE_HEARD_BY_NONE;
	brake_request_census(ras, word->from_ns >= since_ns ? ras->observed_ns : since_ns);
	return BRAKE_HEARD_NOT_ASKED;
}

static void census_tick(struct ras *ras) {
	struct census *census = &ras->liveness.census;

	if (!census->due)
		return;
	if (census->due_ns > ras->observed_ns) {
		ras_wake_at(ras, census->due_ns);
		return;
	}
	census->due = false;
	census->own_ns = ras->observed_ns;
	census->wanted_ns = ras->observed_ns;
	if (ras->joined) {
		struct census_list list;

		census_list_build(ras, &list);
		collective_census_start(ras, CENSUS_NS, list.entries, list.count);
	}
}

// Release the brake after enough time on the majority side: deaths of members still silent may then
// be declared. On a possible minority side this time never begins.
void brake_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	bool waits = own_side_is_minority(ras);
	bool frees = ras->observed_ns < liveness->brake_released_until_ns;
	uint64_t counted_ago_ns = ras->observed_ns - liveness->census.word.at_ns;
	uint64_t recount_ns = RECOUNT_NS;

	if (waits && ras->observed_ns - liveness->brake_on_since_ns >= ras->profile->brake_hold_ns)
		recount_ns = RECOUNT_WAITING_NS;
	if (liveness->brake && !waits && counted_ago_ns < RECOUNT_NS &&
	    ras->observed_ns - liveness->brake_hold_start_ns >= ras->profile->brake_hold_ns) {
		// If all members are back, there is nothing to release.
		if (silence_exceeds_limit(ras))
			liveness->brake_released_until_ns =
				ras->observed_ns + ras->profile->brake_hold_ns;
		liveness->brake_release_limit_ns =
			liveness->brake_hold_start_ns + ras->profile->brake_window_ns;
		brake_set(ras, false);
	} else if ((liveness->brake || frees) && counted_ago_ns >= recount_ns) {
		brake_request_census(ras, brake_census_fresh_since_ns(ras));
	}
	votes_tick(ras);
	census_tick(ras);
	if (liveness->brake || frees)
		ras_wake_at(ras, ras->observed_ns + RAS_NS_PER_SEC);
}
