// SPDX-License-Identifier: BSD-3-Clause
// Private to the pages: charts of one series of samples.
#pragma once

#include "result.h"

struct page;

// Of a closed or an open loop.
struct page_source {
	const char *name; // "round trip"
	struct run_record *record;
	const struct run_summary *summary;
};

// Percentiles with the band of their intervals; -ENOMEM.
int page_percentiles(struct page *page, const struct page_source *sources, uint32_t count);

// How latencies lay along the run, in at most `columns` pieces, with its cuts; nothing where there
// are fewer than two windows. The run took `took_ns`; it is spread evenly over what the samples of
// a closed loop do not account for, and over all of an open one. -ENOMEM.
struct page_span {
	uint64_t took_ns;
	bool open;
	uint32_t columns;
	double begins[SUMMARY_SEGMENTS_MAX]; // seconds at which segments begin; NAN: not known
};
int page_course_of(struct page *page, const struct page_source *source, struct page_span *span);
