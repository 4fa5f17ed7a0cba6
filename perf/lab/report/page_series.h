// SPDX-License-Identifier: BSD-3-Clause
// Percentile curves and heat maps of a page, from the stored samples of a run.
#pragma once

#include "run/result.h"

struct json_t;

struct page_source {
	const char *name; // "round trip"
	struct run_record *record;
	const struct run_summary *summary;
};

// Add the percentiles of some series and their intervals. Returns 0 or -ENOMEM.
int page_put_percentiles(struct json_t *object, const struct page_source *sources, uint32_t count);

// Add a heat map of the latencies over time, with at most `columns` columns, and the start of each
// segment. Add nothing if there are fewer than two windows. The times are derived from took_ns. In
// a closed loop the samples give the times, and the remaining time is spread evenly. In an open
// loop all of took_ns is spread evenly. Returns 0 or -ENOMEM.
struct page_span {
	uint64_t took_ns;
	bool open;
	uint32_t columns;
};
int page_put_course(
	struct json_t *object, const struct page_source *source, const struct page_span *span
);
