// SPDX-License-Identifier: BSD-3-Clause
// Counts forwarded notices by second and by origin.
#include "collect/flood_limit.h"

#include "collect/gather.h"
#include "core/core.h"

#include <stdlib.h>

static int compare_origin(const void *key, const void *row) {
	const uint64_t *origin = key;
	const struct flood_origin *known = row;

	return *origin < known->origin ? -1 : *origin > known->origin;
}

static void begin_second(struct flood_limit *limit, uint32_t second) {
	bool is_next = second == limit->second + 1;

	*limit = (struct flood_limit
	){.second = second, .origins_before = is_next ? limit->origins : 0};
}

static uint32_t origin_share(const struct flood_limit *limit) {
	uint32_t origins =
		limit->origins > limit->origins_before ? limit->origins : limit->origins_before;
	uint32_t share = FLOOD_FORWARD_MAX / (origins + 1);

	return share > FLOOD_SHARE_MIN ? share : FLOOD_SHARE_MIN;
}

bool flood_limit_admit(struct ras *ras, const struct collect_notice *notice) {
	uint32_t second = (uint32_t)(ras->observed_ns / RAS_NS_PER_SEC);
	const struct flood_seen *seen = &ras->flood.notices;
	struct flood_limit *limit = &ras->flood.limit;
	struct flood_origin *origin;

	if (notice->kind < RAS_NOTICE_OWN_MIN)
		return true;
	if (limit->second != second)
		begin_second(limit, second);
	origin =
		bsearch(&notice->origin, seen->origins, seen->count, sizeof(*seen->origins),
			compare_origin);
	must(origin != NULL); // flood_record_first() has just added it
	if (origin->second != second) {
		origin->second = second;
		origin->forwarded = 0;
		limit->origins++;
	}
	if (limit->forwarded >= FLOOD_FORWARD_MAX || origin->forwarded >= origin_share(limit)) {
		ras->collective->counters.notices_dropped++;
		return false;
	}
	limit->forwarded++;
	origin->forwarded++;
	return true;
}
