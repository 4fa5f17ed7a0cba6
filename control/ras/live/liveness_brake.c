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

static bool brake_is_off(const struct ras *ras) {
	return ras->profile->brake_peers == UINT32_MAX;
}

// Return true if a census was requested two durations ago. Other origins may begin censuses and
// never announce a result; then this agent runs its own.
static bool census_is_overdue(const struct ras *ras) {
	const struct census *census = &ras->liveness.census;

	return census->wanted_ns != 0 && ras->observed_ns - census->wanted_ns >= 2 * CENSUS_NS;
}

static bool is_running(const struct ras *ras, uint64_t at_ns, uint64_t since_ns) {
	return at_ns >= since_ns && at_ns != 0 && ras->observed_ns - at_ns < CENSUS_NS;
}

// Return true if our own census is running, or enough others that can agree.
static bool enough_are_running(const struct ras *ras, uint64_t since_ns) {
	const struct census *census = &ras->liveness.census;
	uint32_t running = 0;

	for (uint32_t n = 0; n < CENSUS_COUNTERS; n++)
		running += is_running(ras, census->starts[n].at_ns, since_ns);
	return running == CENSUS_COUNTERS || is_running(ras, census->own_ns, since_ns);
}

void brake_count(struct ras *ras, uint64_t since_ns) {
	struct census *census = &ras->liveness.census;

	if (brake_is_off(ras) || census->due || census->word.from_ns >= since_ns)
		return;
	if (census->wanted_ns == 0)
		census->wanted_ns = ras->observed_ns;
	if (enough_are_running(ras, since_ns) && !census_is_overdue(ras))
		return;
	census->due = true;
	census->due_ns = ras->observed_ns + ras_random(ras) % CENSUS_SPREAD_NS;
	ras_wake_at(ras, census->due_ns);
}

uint64_t brake_count_is_fresh_since(const struct ras *ras) {
	return ras->observed_ns - CENSUS_NS;
}

static struct census_start *start_of(struct census *census, uint64_t origin) {
	for (uint32_t n = 0; n < CENSUS_COUNTERS; n++) {
		if (census->starts[n].origin == origin)
			return &census->starts[n];
	}
	return NULL;
}

void brake_census_seen(struct ras *ras, uint64_t origin, bool serves) {
	struct census *census = &ras->liveness.census;
	struct census_start *start = start_of(census, origin);

	// A member without a vote may rely on any census, since no census lets it declare a death.
	if (census_is_overdue(ras) || !(serves || votes_has_none(ras)))
		return;
	for (uint32_t n = 0; start == NULL && n < CENSUS_COUNTERS; n++) {
		if (census->starts[n].at_ns <= census->starts[1 - n].at_ns)
			start = &census->starts[n];
	}
	must(start != NULL);
	*start = (struct census_start){.origin = origin, .at_ns = ras->observed_ns};
	if (enough_are_running(ras, 0))
		census->due = false;
}

void brake_resume(struct ras *ras) {
	struct census *census = &ras->liveness.census;

	census->word.from_ns = 0;
	census->told.at_ns = 0;
	census->own_ns = 0;
	memset(census->starts, 0, sizeof(census->starts));
}

// Return the number of peers that died within brake_window_ns before the census began. They are
// members no more, so the census does not include them.
static uint32_t fallen_count(const struct ras *ras, const struct census_word *word) {
	uint32_t count = 0;

	if (ras->peers.state_counts[RAS_DEAD] == 0)
		return 0;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		count += entry->state == RAS_DEAD && entry->since_ns <= word->from_ns &&
			 word->from_ns - entry->since_ns < ras->profile->brake_window_ns;
	}
	return count;
}

// Return true if at most half of a view of more than two is left. The other side may then be as
// large, and declare the members of this one dead. In a view of two neither side is larger, so a
// death is declared and marked as sole. The exception counts members, not votes: in a view of four
// with two voters, neither voter may declare alone. Members without a vote do not decide a tie:
// each side may have some that the other does not know.
static bool word_is_of_minority(const struct census_word *word) {
	return word->members > 2 && 2 * (uint64_t)word->voters <= word->electorate;
}

// Return true if this side is a minority. A member that was declared dead may hold an old view, so
// it must not act on its own census. A census that reached all members is an exception.
static bool is_minority(const struct ras *ras) {
	const struct census_word *word = &ras->liveness.census.word;

	return word_is_of_minority(word) ||
	       (votes_has_none(ras) && word->members > 2 && word->reached < word->members);
}

// Return true if too many members are missed or recently died: more than the larger of brake_peers
// and brake_percent of the view, or so many that this side is a minority. Silent and refusing
// members count the same, since all observers behind one firewall are one witness.
static bool word_is_of_too_much(const struct ras *ras, const struct census_word *word) {
	const struct ras_profile *profile = ras->profile;
	uint64_t fallen = fallen_count(ras, word);
	uint64_t limit = (word->members + fallen) * profile->brake_percent / 100;

	if (limit < profile->brake_peers)
		limit = profile->brake_peers;
	return census_silent(word) + fallen > limit || word_is_of_minority(word);
}

static bool too_much_is_silent(const struct ras *ras) {
	return word_is_of_too_much(ras, &ras->liveness.census.word) || is_minority(ras);
}

static void brake_set(struct ras *ras, bool on) {
	struct liveness *liveness = &ras->liveness;

	liveness->brake = on;
	liveness->calm = 0;
	if (on) {
		liveness->brake_began_ns = ras->observed_ns;
		liveness->brake_ns = ras->observed_ns;
		ras_wake_at(ras, ras->observed_ns + RECOUNT_NS);
	}
	ras_emit(
		ras, on ? RAS_EVENT_BRAKE_ON : RAS_EVENT_BRAKE_OFF, RAS_NO_SLOT, RAS_CAUSE_SILENT,
		census_silent(&liveness->census.word)
	);
	if (!on)
		liveness_released(ras);
}

static struct census_word
word_of(const struct ras *ras, uint64_t origin, uint64_t from_ns, const struct census_result *result
) {
	struct census_word word = {
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

static void census_counted(struct ras *ras, const struct census_word *word) {
	struct liveness *liveness = &ras->liveness;
	struct census *census = &liveness->census;
	bool more = word->reached > census->word.reached;
	uint32_t silent_before = census_silent(&census->word);

	// This census asked a member for a vote that it has no more: repeat it.
	if (census_silent(word) > 0 && votes_withdraw_late(ras)) {
		census->due = false;
		census->told.at_ns = 0;
		brake_count(ras, ras->observed_ns);
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
		liveness_all_reached(ras, word);
	liveness_counted(ras);
	if (votes_weigh_late(ras))
		brake_count(ras, ras->observed_ns);
	// All members that were silent at the release are dead or back, so the release ends.
	if (!too_much_is_silent(ras)) {
		if (ras->observed_ns < liveness->brake_free_ns)
			liveness_released(ras); // their individual times no longer apply
		liveness->brake_free_ns = 0;
	}
	if (!liveness->brake)
		return;
	// More missed members are a new failure, whose hold time begins now.
	if (is_minority(ras) || census_silent(&census->word) > silent_before)
		liveness->brake_ns = ras->observed_ns;
	liveness->calm = too_much_is_silent(ras) ? 0 : liveness->calm + 1;
	if (liveness->calm >= CALM_COUNTS)
		brake_set(ras, false);
	else if (more)
		liveness_released(ras); // some members are back
}

static uint32_t good_links(const struct ras *ras) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < ras->links.count; n++)
		count += link_is_good(ras->links.table[n]);
	return count;
}

static uint32_t subject_find(const struct census_word *word, uint64_t subject) {
	uint32_t n = 0;

	while (n < word->subject_count && word->subjects[n] != subject)
		n++;
	return n;
}

// Merge the subjects of two results. A subject counts as heard if both results say so, and as not
// heard if either does.
static void subjects_join(struct census_word *word, const struct census_word *other) {
	struct census_word joined = *word;

	joined.subject_count = 0;
	joined.heard = 0;
	for (uint32_t n = 0; n < word->subject_count + other->subject_count; n++) {
		bool first = n < word->subject_count;
		const struct census_word *from = first ? word : other;
		const struct census_word *beside = first ? other : word;
		uint32_t at = first ? n : n - word->subject_count;
		uint32_t twin = subject_find(beside, from->subjects[at]);
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
static bool words_agree(
	const struct ras *ras, const struct census_word *word, const struct census_word *other
) {
	return word->origin != other->origin &&
	       word_is_of_minority(word) == word_is_of_minority(other) &&
	       word_is_of_too_much(ras, word) == word_is_of_too_much(ras, other);
}

static bool result_is_plausible(const struct census_result *result) {
	return result->reached <= result->members && result->electorate <= result->members &&
	       result->voters <= result->reached && result->voters <= result->electorate;
}

// Note a result of a member without a vote. It may see a partition that no member with a vote sees,
// so the view is not whole. Two such members must report it, since one may lie.
static void
told_without_vote(struct ras *ras, uint64_t origin, const struct census_result *result) {
	struct census *census = &ras->liveness.census;

	if (result->reached == result->members)
		return;
	if (census->missing.at_ns != 0 && census->missing.origin != origin &&
	    ras->observed_ns - census->missing.at_ns < 2 * CENSUS_NS)
		census->missing_ns = ras->observed_ns;
	census->missing = (struct census_start){.origin = origin, .at_ns = ras->observed_ns};
}

// Handle a result announced by another origin. It becomes valid if it agrees with the previous one
// of a different origin. The higher result of the two is used, since it is closer to the truth.
void brake_counted(struct ras *ras, uint64_t origin, const struct census_result *result) {
	struct census *census = &ras->liveness.census;
	struct census_start *start = start_of(census, origin);
	struct census_word word;

	if (brake_is_off(ras) || !result_is_plausible(result))
		return;
	if (!votes_are_of_voter(ras, origin) && !votes_has_none(ras)) {
		told_without_vote(ras, origin, result);
		return;
	}
	if (start == NULL)
		return;
	// An origin that reached no more members than our links is deaf or cut off, and counted
	// only itself. A result read soon after our own pause may be older than the pause.
	if (result->reached <= good_links(ras) || start->at_ns < ras->resumed_ns + CENSUS_NS) {
		*start = (struct census_start){0};
		return;
	}
	word = word_of(ras, origin, start->at_ns, result);
	if (census->told.at_ns == 0 || ras->observed_ns - census->told.at_ns >= 2 * CENSUS_NS ||
	    !words_agree(ras, &word, &census->told)) {
		census->told = word;
		return;
	}
	if (census->told.reached > word.reached) {
		struct census_word higher = census->told;

		census->told = word;
		word = higher;
	}
	subjects_join(&word, &census->told);
	if (census->told.from_ns < word.from_ns)
		word.from_ns = census->told.from_ns;
	if (word.reached >= census->word.reached ||
	    ras->observed_ns - census->word.at_ns >= CENSUS_FRESH_NS)
		census_counted(ras, &word);
}

void brake_counted_here(struct ras *ras, uint64_t from_ns, struct census_result *result) {
	struct census_word word;

	// A later own census has replaced this one, or this agent paused since.
	if (from_ns != ras->liveness.census.own_ns)
		return;
	result->members = peers_ring_count(&ras->peers);
	// Members that left during the census may have been reached before.
	if (result->members < ras->liveness.census.own_members)
		result->members = ras->liveness.census.own_members;
	result->electorate = votes_electorate(ras, result);
	flood_census(ras, result);
	word = word_of(ras, ras->self_id, ras->liveness.census.own_ns, result);
	census_counted(ras, &word);
}

// Return true if the brake was released by time, on a majority side, and the silence began before
// the release. A later silence has a hold time of its own.
static bool is_let_go(const struct ras *ras, uint64_t silent_ns) {
	const struct liveness *liveness = &ras->liveness;

	return ras->observed_ns < liveness->brake_free_ns && silent_ns < liveness->brake_freed_ns &&
	       !is_minority(ras);
}

enum brake_word brake_word(struct ras *ras, uint64_t silent_ns, uint64_t since_ns) {
	struct liveness *liveness = &ras->liveness;

	if (brake_is_off(ras))
		return BRAKE_FREE;
	if (liveness->brake)
		return BRAKE_HELD;
	if (liveness->census.word.from_ns < since_ns) {
		brake_count(ras, since_ns);
		return BRAKE_UNKNOWN;
	}
	if (!too_much_is_silent(ras))
		return BRAKE_FREE;
	if (is_let_go(ras, silent_ns))
		return ras->observed_ns - silent_ns < ras->profile->brake_hold_ns ? BRAKE_HELD
										  : BRAKE_FREE;
	// The census may have missed members that are known dead by now: repeat it.
	if (peers_ring_count(&ras->peers) < liveness->census.ours) {
		brake_count(ras, ras->observed_ns);
		return BRAKE_UNKNOWN;
	}
	brake_set(ras, true);
	return BRAKE_HELD;
}

bool brake_waits(const struct ras *ras) {
	const struct census_word *word = &ras->liveness.census.word;

	return is_minority(ras) && ras->observed_ns - word->at_ns < CENSUS_OLD_NS;
}

enum brake_hears brake_hears(const struct ras *ras, uint64_t subject) {
	const struct census_word *word = &ras->liveness.census.word;
	uint32_t n = subject_find(word, subject);

	if (brake_is_off(ras))
		return BRAKE_HEARS_NOBODY;
	if (n < word->subject_count)
		return (word->heard >> n & 1) != 0 ? BRAKE_HEARS_IT : BRAKE_HEARS_NOBODY;
	// With more missed members than subjects, a census cannot ask about all. Such a failure is
	// taken as a fallen host with all its members.
	return census_silent(word) > COLLECT_SUBJECTS_MAX ? BRAKE_HEARS_NOBODY
							  : BRAKE_HEARS_UNASKED;
}

enum brake_hears brake_hears_since(struct ras *ras, uint64_t subject, uint64_t since_ns) {
	const struct census_word *word = &ras->liveness.census.word;
	uint32_t n = subject_find(word, subject);

	if (brake_is_off(ras))
		return BRAKE_HEARS_NOBODY;
	if (word->from_ns >= since_ns && n < word->subject_count)
		return (word->heard >> n & 1) != 0 ? BRAKE_HEARS_IT : BRAKE_HEARS_NOBODY;
	brake_count(ras, word->from_ns >= since_ns ? ras->observed_ns : since_ns);
	return BRAKE_HEARS_UNASKED;
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

		census_list_ask(ras, &list);
		collective_census(ras, CENSUS_NS, list.entries, list.count);
	}
}

// Release the brake after enough time on the majority side: deaths of members still silent may then
// be declared. On a possible minority side this time never begins.
void brake_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	bool waits = is_minority(ras);
	bool frees = ras->observed_ns < liveness->brake_free_ns;
	uint64_t counted_ago_ns = ras->observed_ns - liveness->census.word.at_ns;
	uint64_t recount_ns = RECOUNT_NS;

	if (waits && ras->observed_ns - liveness->brake_began_ns >= ras->profile->brake_hold_ns)
		recount_ns = RECOUNT_WAITING_NS;
	if (liveness->brake && !waits && counted_ago_ns < RECOUNT_NS &&
	    ras->observed_ns - liveness->brake_ns >= ras->profile->brake_hold_ns) {
		// If all members are back, there is nothing to release.
		if (too_much_is_silent(ras))
			liveness->brake_free_ns = ras->observed_ns + ras->profile->brake_hold_ns;
		liveness->brake_freed_ns = liveness->brake_ns + ras->profile->brake_window_ns;
		brake_set(ras, false);
	} else if ((liveness->brake || frees) && counted_ago_ns >= recount_ns) {
		brake_count(ras, brake_count_is_fresh_since(ras));
	}
	votes_tick(ras);
	census_tick(ras);
	if (liveness->brake || frees)
		ras_wake_at(ras, ras->observed_ns + RAS_NS_PER_SEC);
}
