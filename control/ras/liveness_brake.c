// SPDX-License-Identifier: BSD-3-Clause
#include "liveness_brake.h"

#include "core.h"

// Several observers come to need a count at the same moment: the first one's serves all.
#define CENSUS_SPREAD_NS (RAS_NS_PER_SEC / 4)
#define CENSUS_NS (RAS_NS_PER_SEC + RAS_NS_PER_SEC / 5) // of counting, whoever stays silent
#define CENSUS_FRESH_NS RAS_NS_PER_SEC			// no other is begun so soon after one
#define RECOUNT_NS (5 * RAS_NS_PER_SEC)			// while the brake is on
#define RECOUNT_WAITING_NS (20 * RAS_NS_PER_SEC)	// and where no time lets it go
#define CALM_COUNTS 2

static bool brake_is_off(const struct ras *ras) {
	return ras->profile->brake_peers == UINT32_MAX;
}

// What is counted as a look begins serves at its end.
static bool count_is_valid(const struct ras *ras) {
	return ras->observed_ns - ras->liveness.census.counted_ns <=
	       ras->profile->confirm_ns + 2 * CENSUS_FRESH_NS;
}

// Others may begin one after the other and tell of none: then we count ourselves.
static bool census_is_overdue(const struct ras *ras) {
	const struct census *census = &ras->liveness.census;

	return census->wanted_ns != 0 && ras->observed_ns - census->wanted_ns >= 2 * CENSUS_NS;
}

void brake_count(struct ras *ras) {
	struct census *census = &ras->liveness.census;

	if (brake_is_off(ras) || census->due ||
	    ras->observed_ns - census->counted_ns < CENSUS_FRESH_NS)
		return;
	if (census->wanted_ns == 0)
		census->wanted_ns = ras->observed_ns;
	if (ras->observed_ns - census->begun_ns < CENSUS_NS && !census_is_overdue(ras))
		return;
	census->due = true;
	census->due_ns = ras->observed_ns + ras_random(ras) % CENSUS_SPREAD_NS;
	ras_wake_at(ras, census->due_ns);
}

void brake_census_seen(struct ras *ras) {
	if (census_is_overdue(ras))
		return;
	ras->liveness.census.begun_ns = ras->observed_ns;
	ras->liveness.census.due = false;
}

static uint32_t silent_count(const struct census *census) {
	return census->members > census->reached ? census->members - census->reached : 0;
}

// Members whose hosts refuse us: they are not reached, and yet not silent.
static uint32_t gone_count(const struct ras *ras) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		count += link_is_refused(ras, link) && peer_is_member(ras_entry(ras, link->slot));
	}
	return count;
}

// No more than half of a view of more than two is left: another part may be as large, and declare
// us. Of two neither part is larger: there a death is declared, and shown to be by one alone.
static bool is_minority(const struct ras *ras) {
	const struct census *census = &ras->liveness.census;
	uint32_t gone = gone_count(ras);
	uint32_t parted = census->members > gone ? census->members - gone : 0;

	return parted > 2 && 2 * (uint64_t)census->reached <= parted;
}

// More than a host and a fifth of the view, or so much that we are not with the larger part.
static bool too_much_is_silent(const struct ras *ras) {
	const struct ras_profile *profile = ras->profile;
	const struct census *census = &ras->liveness.census;
	uint64_t limit = (uint64_t)census->members * profile->brake_percent / 100;

	if (limit < profile->brake_peers)
		limit = profile->brake_peers;
	return silent_count(census) > limit || is_minority(ras);
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
		silent_count(&liveness->census)
	);
	if (!on)
		liveness_released(ras);
}

static void counted(struct ras *ras, uint32_t reached, uint32_t members) {
	struct liveness *liveness = &ras->liveness;
	bool more = reached > liveness->census.reached;

	liveness->census = (struct census){
		.reached = reached,
		.members = members,
		.ours = peers_ring_count(&ras->peers),
		.counted_ns = ras->observed_ns,
		.begun_ns = liveness->census.begun_ns,
	};
	if (!liveness->brake)
		return;
	if (is_minority(ras))
		liveness->brake_ns = ras->observed_ns;
	liveness->calm = too_much_is_silent(ras) ? 0 : liveness->calm + 1;
	if (liveness->calm >= CALM_COUNTS)
		brake_set(ras, false);
	else if (more)
		liveness_released(ras); // some are back
}

static uint32_t good_links(const struct ras *ras) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < ras->links.count; n++)
		count += link_is_good(ras->links.table[n]);
	return count;
}

void brake_counted(struct ras *ras, uint32_t reached, uint32_t members) {
	struct census *census = &ras->liveness.census;
	bool fresh = ras->observed_ns - census->counted_ns < CENSUS_FRESH_NS;

	if (brake_is_off(ras) || reached > members)
		return;
	// Who reached fewer than we have beside us does not hear, or is cut off: its count is of
	// itself. And of two counts of a moment the higher is nearer to the truth.
	if (reached <= good_links(ras))
		census->begun_ns = 0;
	else if (reached >= census->reached || !fresh)
		counted(ras, reached, members);
}

void brake_counted_here(struct ras *ras, uint32_t reached) {
	uint32_t members = peers_ring_count(&ras->peers);

	flood_census(ras, reached, members);
	counted(ras, reached, members);
}

enum brake_word brake_word(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;

	if (brake_is_off(ras))
		return BRAKE_FREE;
	if (liveness->brake)
		return BRAKE_HELD;
	if (!count_is_valid(ras)) {
		brake_count(ras);
		return BRAKE_UNKNOWN;
	}
	if (!too_much_is_silent(ras) ||
	    (ras->observed_ns < liveness->brake_free_ns && !is_minority(ras)))
		return BRAKE_FREE;
	// It counted those as silent, perhaps, who are known to be dead now.
	if (peers_ring_count(&ras->peers) < liveness->census.ours) {
		brake_count(ras);
		return BRAKE_UNKNOWN;
	}
	brake_set(ras, true);
	return BRAKE_HELD;
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
	census->begun_ns = ras->observed_ns;
	census->wanted_ns = ras->observed_ns;
	if (ras->joined)
		collective_census(ras, CENSUS_NS);
}

// Long enough with the larger part: what is still silent may be declared. In a part that may be
// the smaller one that time never begins.
void brake_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	bool waits = is_minority(ras);
	uint64_t recount_ns = RECOUNT_NS;

	if (waits && ras->observed_ns - liveness->brake_began_ns >= ras->profile->brake_hold_ns)
		recount_ns = RECOUNT_WAITING_NS;
	if (liveness->brake && !waits && count_is_valid(ras) &&
	    ras->observed_ns - liveness->brake_ns >= ras->profile->brake_hold_ns) {
		liveness->brake_free_ns = ras->observed_ns + ras->profile->brake_hold_ns;
		brake_set(ras, false);
	} else if (liveness->brake && ras->observed_ns - liveness->census.counted_ns >= recount_ns) {
		brake_count(ras);
	}
	census_tick(ras);
	if (liveness->brake)
		ras_wake_at(ras, ras->observed_ns + RAS_NS_PER_SEC);
}
