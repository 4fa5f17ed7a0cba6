// SPDX-License-Identifier: BSD-3-Clause
// Comparison of the wall clocks of members, carried by their beats.
#include "link/wall_clock.h"

#include "core/core.h"

#include <string.h>

#define KEEP_NS (120 * RAS_NS_PER_SEC) // the clock may have been set later
#define APART_NS ((int64_t)RAS_NS_PER_SEC)
#define AGREES_NS ((int64_t)RAS_NS_PER_SEC / 2)
#define TRAVEL_MAX_NS AGREES_NS // a longer round trip says too little about the one-way time
#define JUDGED_MIN 3		// minimum of samples; fewer may all have been late
#define STAMP_EVERY 8
#define OFFSET_MAX (INT64_C(1) << 61) // about 73 years; a larger value is no valid clock

static uint64_t wall_clock_now(const struct ras *ras) {
	const struct wall_clock *wall = &ras->wall;

	if (wall->wall_ns == 0 || ras->now_ns - wall->told_ns > KEEP_NS)
		return 0;
	return wall->wall_ns + (ras->now_ns - wall->told_ns);
}

uint64_t wall_clock_stamp(const struct ras *ras, uint32_t sequence) {
	return sequence <= WALL_SAMPLES || sequence % STAMP_EVERY == 0 ? wall_clock_now(ras) : 0;
}

static int64_t offset_clamp(int64_t offset_ns) {
	if (offset_ns > OFFSET_MAX)
		return OFFSET_MAX;
	return offset_ns < -OFFSET_MAX ? -OFFSET_MAX : offset_ns;
}

// Return a - b, limited to OFFSET_MAX: both values may come from a faulty peer.
static int64_t time_difference(uint64_t a, uint64_t b) {
	uint64_t distance = a >= b ? a - b : b - a;
	int64_t size = distance > (uint64_t)OFFSET_MAX ? OFFSET_MAX : (int64_t)distance;

	return a >= b ? size : -size;
}

static uint32_t samples_held(const struct wall_offset *offset) {
	return offset->count < WALL_SAMPLES ? offset->count : WALL_SAMPLES;
}

int64_t wall_offset_median(const struct wall_offset *offset) {
	uint32_t held = samples_held(offset);
	int64_t sorted[WALL_SAMPLES];

	if (held == 0)
		return RAS_OFFSET_UNKNOWN;
	for (uint32_t n = 0; n < held; n++) {
		uint32_t place = n;

		for (; place > 0 && sorted[place - 1] > offset->samples[n]; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = offset->samples[n];
	}
	return sorted[held / 2];
}

static void wall_offset_emit(struct ras *ras, struct link *link) {
	struct wall_offset *offset = &link->wall;
	int64_t median = wall_offset_median(offset);
	int64_t apart_ns = median < 0 ? -median : median;

	if (offset->count < JUDGED_MIN)
		return;
	if (apart_ns > APART_NS && !offset->apart) {
		offset->apart = true;
		ras_emit(
			ras, RAS_EVENT_CLOCK_OFFSET, link->slot, RAS_CAUSE_NONE, (uint64_t)apart_ns
		);
	} else if (apart_ns < AGREES_NS && offset->apart) {
		offset->apart = false;
		ras_emit(
			ras, RAS_EVENT_CLOCK_AGREES, link->slot, RAS_CAUSE_NONE, (uint64_t)apart_ns
		);
	}
}

void wall_clock_compare(struct ras *ras, struct link *link, uint64_t wall_ns, uint64_t travel_ns) {
	uint64_t own_ns = wall_clock_now(ras);
	uint64_t way_ns = link->rtt.min_ns != RAS_NEVER ? link->rtt.min_ns / 2 : 0;
	struct wall_offset *offset = &link->wall;

	if (own_ns == 0 || wall_ns == 0 || travel_ns > TRAVEL_MAX_NS)
		return;
	offset->samples[offset->count % WALL_SAMPLES] =
		offset_clamp(time_difference(wall_ns, own_ns) + time_difference(way_ns, 0));
	offset->count++;
	if (offset->count == 2 * WALL_SAMPLES)
		offset->count = WALL_SAMPLES; // only the index modulo WALL_SAMPLES matters
	wall_offset_emit(ras, link);
}

void ras_set_wall_clock(struct ras *ras, uint64_t now_ns, uint64_t wall_ns) {
	uint64_t before_ns;

	ras_enter(ras, now_ns);
	before_ns = wall_clock_now(ras);
	ras->wall = (struct wall_clock){.told_ns = ras->now_ns, .wall_ns = wall_ns};
	// Our own clock was set, so the offset of each peer changes by the same amount.
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (before_ns == 0 || wall_ns == 0) {
			link->wall.count = 0;
			continue;
		}
		for (uint32_t m = 0; m < samples_held(&link->wall); m++)
			link->wall.samples[m] = offset_clamp(
				link->wall.samples[m] - time_difference(wall_ns, before_ns)
			);
		if (link->used)
			wall_offset_emit(ras, link);
	}
	ras_exit(ras);
}
