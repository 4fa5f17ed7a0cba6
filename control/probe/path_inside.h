// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: how a path is remembered.
#pragma once

#include <verdict/path_memory.h>

#define WINDOW_SAMPLES 64  // of one window the last so many
#define RECENT_SAMPLES 128 // that the summary is made of
#define OUTCOMES 128	   // of each size

// The last outcomes of one size, in a ring.
struct size_past {
	uint64_t sent, lost; // since the path began
	uint32_t count;	     // of the ring, ever; begins anew with the path
	uint64_t at_ns[OUTCOMES];
	bool answered[OUTCOMES];
	uint64_t latency_ns[OUTCOMES]; // of those
};

// What the counter of the pulse told.
struct pulse_past {
	uint64_t incarnation; // 0: no head was seen yet
	uint64_t beats;
	uint64_t since_ns;    // the counter is as it is
	uint64_t seen_ns;     // the last sound read; RAS_NEVER: none
	bool advances;	      // it was seen to, once,
	uint64_t advanced_ns; // and by this read the last time
};

struct path_memory {
	struct path_memory_config config; // without zeros
	struct ras_memory memory;
	struct histogram *histogram;
	uint64_t count, lost;
	uint64_t paused_until_ns;
	uint64_t last_answer_ns, last_probe_ns;
	uint32_t unanswered;	// reads in a row
	uint32_t unexpected;	// of these, those of sizes that are not known to be lost
	bool write_unanswered;	// the last write, and nothing was answered since
	bool write_unexpected;	// the same, of a size that is not known to be lost
	uint64_t excused_ns;	// what is begun until then may be lost with the pair; 0: nothing is
	uint64_t unanswered_ns; // when the first of them began
	bool silent;		// judged so, and nothing was answered since
	struct size_past sizes[PATH_SIZES];
	struct size_past writes[PATH_SIZES];
	struct pulse_past pulse;
	// The window to come.
	uint64_t window_begin_ns;
	uint32_t window_count; // may be more than there are places
	uint64_t window[WINDOW_SAMPLES];
	uint32_t recent_count; // likewise
	uint64_t recent[RECENT_SAMPLES];
	// Windows of a good path.
	uint32_t past_count; // likewise
	uint64_t past[PATH_PAST_WINDOWS];
	uint64_t baseline_ns, baseline_mad_ns;
	uint64_t baseline_at_ns; // when it was last moved
	// The last good window: then, and before this memory began.
	uint64_t learnt_ns, learnt_before_ns;
	// What came of the last ones.
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint32_t slow_windows, quick_windows; // in a row
	uint32_t slow_run;		      // reads beyond the border in a row
	uint64_t slow_run_ns;		      // the first of them
	bool degraded;
	uint32_t lost_permille, lost_place;
	uint64_t loss_over_ns; // what was lost until then is over: it takes new losses to be lossy
	uint32_t unproven_place;
	enum observation_kind kind;
	uint64_t since_ns;
	// path_resend.c
	uint64_t late_at_ns; // the last one that was late; 0: none
	uint64_t timeout_ns; // 0: what comes late was not sent again
	bool resends;
	uint64_t resend_from_ns; // what is older was judged, and is over
	uint32_t own_permille;
	bool resent_known;
	uint64_t resent_total, resent_ns; // and when it last rose
};

void path_note_late(struct path_memory *memory, const struct path_probe *probe);
// How much of it was answered so late that it was sent again, per mille, if that is a pattern; else
// 0.
uint32_t path_resends(struct path_memory *memory, uint64_t now_ns);

// Whether there is a baseline, and nothing has confirmed it for too long.
bool path_is_outdated(const struct path_memory *memory, uint64_t now_ns);
void path_forget_learnt(struct path_memory *memory);
// From so much on it is slower than usual.
uint64_t path_border_ns(const struct path_memory *memory);
// The median of the last few reads of the small size; 0: there were not so many.
uint64_t path_lately_ns(const struct path_memory *memory);

// Ascending, in place; for the few that there are.
void path_sort(uint64_t *values, uint32_t count);
// Of a sorted array; 0 if it is empty.
uint64_t path_median(const uint64_t *sorted, uint32_t count);
// Median distance from `median`; the array is spent.
uint64_t path_mad(uint64_t *values, uint32_t count, uint64_t median);
