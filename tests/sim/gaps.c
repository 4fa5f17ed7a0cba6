// SPDX-License-Identifier: BSD-3-Clause
#include "gaps.h"

#include "world.h"

#include <lib/must.h>

#include <stdlib.h>

// Within this time, all members together try at least once to reach a lost member.
#define GAPS_TOGETHER_NS (5 * WORLD_SEC)

void gaps_fini(struct gaps *gaps) {
	free(gaps->list);
	*gaps = (struct gaps){0};
}

bool gap_side_has(const struct gap_side *side, uint32_t host, uint32_t hosts) {
	return (host + hosts - side->first) % hosts < side->count;
}

void gaps_change(struct gaps *gaps, const struct gap_sides *sides, uint32_t hosts) {
	if (gaps->count == gaps->capacity) {
		gaps->capacity = gaps->capacity > 0 ? 2 * gaps->capacity : 8;
		gaps->list = realloc(gaps->list, gaps->capacity * sizeof(*gaps->list));
		must(gaps->list != NULL);
	}
	gaps->hosts = hosts;
	gaps->list[gaps->count++] = *sides;
}

struct gap_sides gaps_now(const struct gaps *gaps) {
	return gaps->count > 0 ? gaps->list[gaps->count - 1] : (struct gap_sides){0};
}

static bool are_parted(const struct gap_side *side, uint32_t host, uint32_t other, uint32_t hosts) {
	return gap_side_has(side, host, hosts) != gap_side_has(side, other, hosts);
}

static bool
are_apart(const struct gaps *gaps, const struct gap_sides *sides, uint32_t host, uint32_t other) {
	return are_parted(&sides->island, host, other, gaps->hosts) ||
	       are_parted(&sides->fence, host, other, gaps->hosts);
}

uint64_t gaps_apart_since(const struct gaps *gaps, uint32_t host, uint32_t other, uint64_t now_ns) {
	uint64_t since_ns = now_ns;

	for (uint32_t n = gaps->count; n-- > 0;) {
		const struct gap_sides *sides = &gaps->list[n];

		if (are_apart(gaps, sides, host, other))
			since_ns = sides->at_ns;
		else if (since_ns == now_ns || since_ns - sides->at_ns >= GAPS_TOGETHER_NS)
			break;
	}
	return since_ns;
}

bool gaps_changed_before(const struct gaps *gaps, uint64_t before_ns) {
	return gaps->count > 1 &&
	       gaps->list[gaps->count - 1].at_ns - gaps->list[gaps->count - 2].at_ns < before_ns;
}

bool gaps_whole_since(const struct gaps *gaps, uint64_t from_ns, uint64_t length_ns) {
	uint64_t whole_ns = from_ns; // start of the current time without a partition

	for (uint32_t n = 0; n < gaps->count; n++) {
		const struct gap_sides *sides = &gaps->list[n];
		bool whole = n == 0 || (gaps->list[n - 1].island.count == 0 &&
					gaps->list[n - 1].fence.count == 0);

		if (sides->at_ns <= from_ns)
			continue;
		if (whole && sides->at_ns - whole_ns >= length_ns)
			return true;
		whole_ns = sides->at_ns;
	}
	return false;
}
