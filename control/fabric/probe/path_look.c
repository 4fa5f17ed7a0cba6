// SPDX-License-Identifier: BSD-3-Clause
// Queries of a path's history.
#include "path_inside.h"

void path_memory_times(
	const struct path_memory *memory,
	bool writes,
	struct path_size_times ret_times[static PATH_SIZES]
) {
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		const struct size_past *past = writes ? &memory->writes[n] : &memory->sizes[n];
		uint32_t held = past->count < PATH_OUTCOMES_KEPT ? past->count : PATH_OUTCOMES_KEPT;
		uint64_t sorted[PATH_OUTCOMES_KEPT];
		uint32_t count = 0;

		for (uint32_t place = 0; place < held; place++) {
			if (past->answered[place])
				sorted[count++] = past->latency_ns[place];
		}
		ret_times[n] = (struct path_size_times){0};
		if (count == 0)
			continue;
		path_sort(sorted, count);
		ret_times[n] = (struct path_size_times){
			.answers = count,
			.min_ns = sorted[0],
			.median_ns = path_median(sorted, count),
			.p99_ns = sorted[(count * 99 + 99) / 100 - 1],
		};
	}
}

void path_summary_row(
	const struct path_summary *summary, uint64_t now_ns, struct ras_path_row *ret_row
) {
	struct ras_path_row row = {
		.count = summary->count - summary->lost,
		.lost = summary->lost,
		.baseline_ns = summary->baseline_ns,
		.lost_permille = summary->kind == OBSERVATION_LOSSY ? summary->lost_permille : 0,
		.seen = (uint8_t)summary->kind,
	};

	if (summary->since_ns != 0 && now_ns > summary->since_ns)
		row.for_s = (now_ns - summary->since_ns) / RAS_NS_PER_SEC;
	if (row.count > 0) {
		row.min_ns = summary->min_ns;
		row.median_ns = summary->median_ns;
		row.mad_ns = summary->mad_ns;
		row.p99_ns = summary->p99_ns;
	}
	*ret_row = row;
}

uint64_t path_summary_seen_ns(const struct path_summary *summary, uint64_t now_ns) {
	uint64_t at_ns = RAS_NEVER;

	switch (summary->kind) {
	case OBSERVATION_GOOD:
		at_ns = summary->advanced_ns;
		break;
	case OBSERVATION_DEGRADED:
	case OBSERVATION_LOSSY:
		at_ns = summary->advanced_ns > summary->since_ns ? summary->advanced_ns
								 : summary->since_ns;
		break;
	case OBSERVATION_SILENT:
		at_ns = summary->last_probe_ns;
		break;
	case OBSERVATION_STANDING:
		at_ns = summary->last_answer_ns;
		break;
	default:
		break;
	}
	return at_ns < now_ns ? at_ns : now_ns;
}
