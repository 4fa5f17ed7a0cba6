// SPDX-License-Identifier: BSD-3-Clause
// Private to the pages: charts of one series of samples.
#pragma once

#include "run/result.h"

struct page;

// One series, of a closed or an open loop.
struct page_source {
	const char *name; // "round trip"
	struct run_record *record;
	const struct run_summary *summary;
};

// Put the percentile curve with the band of its intervals. Returns 0 or -ENOMEM.
int page_percentiles(struct page *page, const struct page_source *sources, uint32_t count);

// Put a heat map of the latencies over time, with at most `columns` columns. The cuts are marked.
// Put nothing if there are fewer than two windows. The times are derived from took_ns. In a closed
// loop the samples give the times, and the remaining time is spread evenly. In an open loop all of
// took_ns is spread evenly. Returns 0 or -ENOMEM.
struct page_span {
	uint64_t took_ns;
	bool open;
	uint32_t columns;
	double begins[SUMMARY_SEGMENTS_MAX]; // start of each segment in seconds; NAN: unknown
};
int page_put_course(struct page *page, const struct page_source *source, struct page_span *span);
