// SPDX-License-Identifier: BSD-3-Clause
#include "liveness_brake.h"

#include "core.h"

#define SURVEY_GAP_NS (3 * RAS_NS_PER_SEC / 2)
#define DRAW_GAP_NS (3 * RAS_NS_PER_SEC / 2)
#define ECHO_REPEAT_NS (LOOK_PING_NS / 2) // a way that is broken is known to be by then
#define SILENT_MIN 5			  // fewer silent samples say nothing about the view
#define MAJORITY_PERCENT 33 // silent; with fewer we are the larger part, with a margin
#define MAJORITY_ROUNDS 2

void brake_fini(struct ras *ras) {
	memory_release(
		&ras->memory, ras->liveness.samples,
		LIVENESS_SAMPLES_MAX * sizeof(*ras->liveness.samples)
	);
	ras->liveness.samples = NULL;
}

static bool brake_is_off(const struct ras *ras) {
	return ras->profile->brake_peers == UINT32_MAX;
}

static void draw(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	uint32_t count = peers_ring_count(&ras->peers);

	if (ras->observed_ns - liveness->drawn_ns < DRAW_GAP_NS)
		return; // what was drawn just now serves
	liveness->drawn_ns = ras->observed_ns;
	liveness->echo_open = true;
	liveness->echo_repeated = false;
	liveness->echo_count = 0;
	for (uint32_t n = 0; n < LIVENESS_ECHOES; n++) {
		uint32_t slot = peers_ring_at(&ras->peers, (uint32_t)(ras_random(ras) % count));

		if (slot == ras->self_slot)
			continue;
		liveness->echoed[liveness->echo_count] = false;
		liveness->echoes[liveness->echo_count++] = slot;
		look_echo(ras, slot);
	}
	ras_wake_at(ras, ras->observed_ns + ECHO_REPEAT_NS);
}

void brake_survey(struct ras *ras) {
	if (brake_is_off(ras) || ras->observed_ns - ras->liveness.surveyed_ns < SURVEY_GAP_NS)
		return;
	ras->liveness.surveyed_ns = ras->observed_ns;
	draw(ras);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (link_is_good(ras->links.table[n]))
			look_survey(ras, ras->links.table[n]->slot);
	}
}

void brake_surveyed(struct ras *ras, uint32_t asker) {
	if (brake_is_off(ras))
		return;
	draw(ras);
	look_promise(ras, asker);
}

void brake_echoed(struct ras *ras, uint32_t slot) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->echo_count; n++) {
		if (liveness->echoes[n] == slot)
			liveness->echoed[n] = true;
	}
}

static void sample_put(struct ras *ras, uint64_t peer, bool silent) {
	struct liveness *liveness = &ras->liveness;
	struct sample *place = NULL;

	if (liveness->samples == NULL) {
		liveness->samples = memory_allocate(
			&ras->memory, LIVENESS_SAMPLES_MAX * sizeof(*liveness->samples)
		);
		if (liveness->samples == NULL)
			return;
	}
	for (uint32_t n = 0; n < liveness->sample_count && place == NULL; n++) {
		if (liveness->samples[n].peer == peer)
			place = &liveness->samples[n];
	}
	if (place == NULL && liveness->sample_count < LIVENESS_SAMPLES_MAX)
		place = &liveness->samples[liveness->sample_count++];
	if (place == NULL) {
		place = &liveness->samples[0];
		for (uint32_t n = 1; n < LIVENESS_SAMPLES_MAX; n++) {
			if (liveness->samples[n].at_ns < place->at_ns)
				place = &liveness->samples[n];
		}
	}
	*place = (struct sample){.peer = peer, .at_ns = ras->observed_ns, .silent = silent};
}

void brake_samples_encode(const struct ras *ras, struct wire_writer *writer) {
	const struct liveness *liveness = &ras->liveness;

	wire_put_u16(writer, (uint16_t)liveness->echo_count);
	for (uint32_t n = 0; n < liveness->echo_count; n++) {
		const struct ras_record *record = ras_entry(ras, liveness->echoes[n])->record;

		wire_put_u64(writer, record != NULL ? record->id : 0);
		wire_put_u8(writer, !liveness->echoed[n]);
	}
}

void brake_samples_take(struct ras *ras, struct wire_reader *reader) {
	uint32_t count = wire_get_count_u16(reader, LIVENESS_ECHOES, 9);

	for (uint32_t n = 0; n < count; n++) {
		uint64_t peer = wire_get_u64(reader);
		bool silent = wire_get_u8(reader) != 0;

		if (wire_reader_ok(reader) && peers_find(&ras->peers, peer) != RAS_NO_SLOT)
			sample_put(ras, peer, silent);
	}
}

static void echoes_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	uint64_t age_ns = ras->observed_ns - liveness->drawn_ns;

	if (!liveness->echo_open)
		return;
	if (age_ns >= LOOK_PING_NS) {
		liveness->echo_open = false;
		for (uint32_t n = 0; n < liveness->echo_count; n++) {
			const struct peer_entry *entry = ras_entry(ras, liveness->echoes[n]);

			if (entry->record != NULL)
				sample_put(ras, entry->record->id, !liveness->echoed[n]);
		}
		return;
	}
	if (age_ns >= ECHO_REPEAT_NS && !liveness->echo_repeated) {
		liveness->echo_repeated = true;
		for (uint32_t n = 0; n < liveness->echo_count; n++) {
			if (!liveness->echoed[n])
				look_echo(ras, liveness->echoes[n]);
		}
	}
	ras_wake_at(
		ras, liveness->drawn_ns + (liveness->echo_repeated ? LOOK_PING_NS : ECHO_REPEAT_NS)
	);
}

// Silent peers, estimated over the whole view.
static uint64_t silent_estimate(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	uint64_t members = peers_ring_count(&ras->peers);
	uint64_t silent = 0;
	uint64_t sampled = 0;

	for (uint32_t n = 0; n < liveness->sample_count; n++) {
		const struct sample *sample = &liveness->samples[n];
		uint32_t slot = peers_find(&ras->peers, sample->peer);

		if (ras->observed_ns - sample->at_ns > ras->profile->brake_window_ns ||
		    slot == RAS_NO_SLOT || !peer_is_member(ras_entry(ras, slot)))
			continue;
		sampled++;
		silent += sample->silent;
	}
	return silent < SILENT_MIN ? 0 : silent * members / sampled;
}

static void brake_set(struct ras *ras, bool on, uint64_t silent) {
	struct liveness *liveness = &ras->liveness;

	liveness->brake = on;
	liveness->majority = 0;
	if (on)
		liveness->brake_ns = ras->observed_ns;
	ras_emit(
		ras, on ? RAS_EVENT_BRAKE_ON : RAS_EVENT_BRAKE_OFF, RAS_NO_SLOT, RAS_CAUSE_SILENT,
		silent
	);
}

// Held for its time, or until it turns out twice that the silent part is the smaller one: then
// more than half of the view confirms what we see.
static void brake_judge(struct ras *ras) {
	const struct ras_profile *profile = ras->profile;
	struct liveness *liveness = &ras->liveness;
	uint64_t members = peers_ring_count(&ras->peers);
	uint64_t limit = members * profile->brake_percent / 100;
	uint64_t silent = silent_estimate(ras);
	bool majority = silent * 100 < members * MAJORITY_PERCENT;

	liveness->judged_ns = ras->observed_ns;
	if (limit < profile->brake_peers)
		limit = profile->brake_peers;
	if (!liveness->brake) {
		if (silent > limit && ras->observed_ns >= liveness->brake_free_ns)
			brake_set(ras, true, silent);
		return;
	}
	liveness->majority = majority ? liveness->majority + 1 : 0;
	if (liveness->majority >= MAJORITY_ROUNDS ||
	    ras->observed_ns - liveness->brake_ns >= profile->brake_hold_ns) {
		liveness->brake_free_ns = ras->observed_ns + profile->brake_hold_ns;
		brake_set(ras, false, silent);
	}
}

bool brake_holds(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;

	if (ras->profile->brake_peers == UINT32_MAX)
		return false;
	if (!liveness->brake)
		brake_judge(ras);
	return liveness->brake;
}

void brake_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	uint64_t due = liveness->judged_ns + ras->profile->confirm_ns;

	echoes_tick(ras);
	if (!liveness->brake)
		return;
	if (due <= ras->observed_ns) {
		brake_judge(ras);
		brake_survey(ras);
		due = ras->observed_ns + ras->profile->confirm_ns;
	}
	if (liveness->brake)
		ras_wake_at(ras, due);
}
