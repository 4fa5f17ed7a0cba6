// SPDX-License-Identifier: BSD-3-Clause
// Members that are dead and back in turn: which observers may declare them again, and when flapping
// is reported.
#include "live/turns.h"

#include "core/core.h"

#include <string.h>

#define TURNS_SPAN_NS (600 * RAS_NS_PER_SEC)
#define TURNS_EMIT_NS (60 * RAS_NS_PER_SEC)

void turns_fini(struct ras *ras) {
	struct turns *turns = &ras->turns;

	memory_release(&ras->memory, turns->list, turns->capacity * sizeof(*turns->list));
	*turns = (struct turns){0};
}

// Return the record of a peer's returns from death; NULL if it has none.
static struct turn *flap_record_find(const struct ras *ras, uint64_t id) {
	for (uint32_t n = 0; n < ras->turns.count; n++) {
		if (ras->turns.list[n].id == id)
			return &ras->turns.list[n];
	}
	return NULL;
}

static uint64_t flap_record_latest_ns(const struct turn *turn) {
	return turn->at_ns[turn->count - 1];
}

static uint64_t death_barred_until_ns(const struct ras *ras, const struct turn_death *death) {
	return death->refuted_ns > 0 ? death->refuted_ns + ras->profile->again_ns : 0;
}

static uint64_t time_max(uint64_t a_ns, uint64_t b_ns) {
	return a_ns > b_ns ? a_ns : b_ns;
}

// Return a new flap record, or the oldest one if there is no room. Returns NULL without memory.
static struct turn *flap_record_add(struct ras *ras) {
	struct turns *turns = &ras->turns;
	struct turns_crowded *crowded = &turns->crowded;

	if (turns->count == TURNS_PEERS_MAX) {
		struct turn *oldest = &turns->list[0];

		for (uint32_t n = 1; n < turns->count; n++) {
			if (flap_record_latest_ns(&turns->list[n]) < flap_record_latest_ns(oldest))
				oldest = &turns->list[n];
		}
		crowded->silent_until_ns = time_max(
			crowded->silent_until_ns, death_barred_until_ns(ras, &oldest->silent)
		);
		crowded->gone_until_ns =
			time_max(crowded->gone_until_ns, death_barred_until_ns(ras, &oldest->gone));
		return oldest;
	}
	if (memory_grow_within(
		    &ras->memory, (void **)&turns->list, &turns->capacity, turns->count + 1,
		    TURNS_PEERS_MAX, sizeof(*turns->list)
	    ) != 0)
		return NULL;
	return &turns->list[turns->count++];
}

// Return the number of returns from death in the last ten minutes, and remove older ones from the
// list.
static uint32_t flap_record_recent_count(const struct ras *ras, struct turn *turn) {
	uint32_t old = 0;

	while (old < turn->count && ras->observed_ns - turn->at_ns[old] > TURNS_SPAN_NS)
		old++;
	turn->count -= old;
	memmove(turn->at_ns, turn->at_ns + old, turn->count * sizeof(turn->at_ns[0]));
	return turn->count;
}

void turns_note_return(struct ras *ras, uint32_t slot, const struct peer_entry *dead) {
	uint64_t id = ras_entry(ras, slot)->record->id;
	struct turn *turn = flap_record_find(ras, id);
	struct turn_death *death;

	if (turn == NULL) {
		turn = flap_record_add(ras);
		if (turn == NULL)
			return;
		*turn = (struct turn){.id = id};
	}
	if (turn->count == TURNS_KEPT) {
		turn->count--;
		memmove(turn->at_ns, turn->at_ns + 1, turn->count * sizeof(turn->at_ns[0]));
	}
	turn->at_ns[turn->count++] = ras->observed_ns;
	death = ras_cause_is_gone(dead->cause) ? &turn->gone : &turn->silent;
	death->refuted_ns = ras->observed_ns;
	death->observer_count = dead->weight;
	memcpy(death->observers, dead->observers, sizeof(death->observers));
	death->ours = (dead->flags & PEER_DEATH_SEEN) != 0;
	ras_entry(ras, slot)->flags &= (uint8_t)~PEER_DEATH_SEEN;
	if (flap_record_recent_count(ras, turn) > TURNS_MAX && !turn->flaps) {
		turn->flaps = true;
		turn->told_ns = ras->observed_ns - TURNS_EMIT_NS;
	}
	ras_wake_at(ras, ras->observed_ns);
}

void turns_forget_peer(struct ras *ras, uint32_t slot) {
	struct turn *turn = flap_record_find(ras, ras_entry(ras, slot)->record->id);

	if (turn != NULL)
		*turn = ras->turns.list[--ras->turns.count];
}

// Return the limit for a peer whose former death may have been discarded.
static uint64_t crowded_barred_until_ns(
	const struct ras *ras, uint32_t slot, enum ras_cause cause, uint64_t observer
) {
	const struct turns_crowded *crowded = &ras->turns.crowded;
	uint64_t until_ns =
		ras_cause_is_gone(cause) ? crowded->gone_until_ns : crowded->silent_until_ns;

	return observer == ras->self_id && ras_entry(ras, slot)->revived != 0 &&
			       until_ns > ras->observed_ns
		       ? until_ns
		       : 0;
}

uint64_t
turns_barred_until(const struct ras *ras, uint32_t slot, enum ras_cause cause, uint64_t observer) {
	const struct turn *turn = flap_record_find(ras, ras_entry(ras, slot)->record->id);
	const struct turn_death *death;
	uint64_t until_ns;

	if (turn == NULL)
		return crowded_barred_until_ns(ras, slot, cause, observer);
	death = ras_cause_is_gone(cause) ? &turn->gone : &turn->silent;
	if (death->refuted_ns == 0)
		return crowded_barred_until_ns(ras, slot, cause, observer);
	until_ns = death_barred_until_ns(ras, death);
	if (death->ours && observer == ras->self_id && until_ns > ras->observed_ns)
		return until_ns;
	for (uint32_t n = 0; n < death->observer_count && until_ns > ras->observed_ns; n++) {
		if (death->observers[n] == observer)
			return until_ns;
	}
	return 0;
}

// Return true for the kinds of events that each turn causes.
static bool event_belongs_to_turns(enum ras_event_kind kind) {
	return kind == RAS_EVENT_ALIVE || kind == RAS_EVENT_SUSPECT || kind == RAS_EVENT_REFUTED ||
	       kind == RAS_EVENT_UNREACHABLE || kind == RAS_EVENT_DEAD ||
	       kind == RAS_EVENT_REJOINED ||
	       (kind >= RAS_EVENT_LINK_UP && kind <= RAS_EVENT_LINK_STUCK);
}

bool turns_event_is_quiet(const struct ras *ras, const struct ras_event *event) {
	const struct turn *turn =
		event_belongs_to_turns(event->kind) ? flap_record_find(ras, event->peer) : NULL;

	return turn != NULL && turn->flaps;
}

void turns_tick(struct ras *ras) {
	for (uint32_t n = 0; n < ras->turns.count;) {
		struct turn *turn = &ras->turns.list[n];

		if (turn->flaps && ras->observed_ns - turn->told_ns >= TURNS_EMIT_NS) {
			uint32_t slot = peers_find(&ras->peers, turn->id);
			uint32_t recent = flap_record_recent_count(ras, turn);

			turn->told_ns = ras->observed_ns;
			turn->flaps = recent > TURNS_MAX;
			if (slot != RAS_NO_SLOT)
				ras_emit(
					ras, RAS_EVENT_FLAPPING, slot,
					peer_is_member(ras_entry(ras, slot)) ? RAS_CAUSE_REFUTED
									     : RAS_CAUSE_DEATH,
					recent
				);
		}
		if (!turn->flaps && flap_record_recent_count(ras, turn) == 0) {
			*turn = ras->turns.list[--ras->turns.count];
			continue;
		}
		ras_wake_at(
			ras, turn->flaps ? turn->told_ns + TURNS_EMIT_NS
					 : flap_record_latest_ns(turn) + TURNS_SPAN_NS + 1
		);
		n++;
	}
}
