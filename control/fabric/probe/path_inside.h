// SPDX-License-Identifier: BSD-3-Clause
// Internals of a path's history.
#pragma once

#include <verdict/path_memory.h>

#define WINDOW_SAMPLES 64      // the last samples of a window
#define RECENT_SAMPLES 128     // the last samples, which the summary uses
#define PATH_OUTCOMES_KEPT 128 // the last outcomes, per size

// Ring of the last outcomes of one size.
struct size_past {
	uint64_t sent, lost; // since the path began
	uint32_t count;	     // ring entries ever added; reset when the path is reopened
	uint64_t at_ns[PATH_OUTCOMES_KEPT];
	bool answered[PATH_OUTCOMES_KEPT];
	uint64_t latency_ns[PATH_OUTCOMES_KEPT]; // valid where answered
};

// State of the pulse counter.
struct pulse_past {
	uint64_t incarnation; // 0: no head read yet
	uint64_t beats;
	uint64_t since_ns;    // first read of the current value
	uint64_t seen_ns;     // last sound read; RAS_NEVER: none
	bool advances;	      // an advance was seen
	uint64_t advanced_ns; // last read with an advance
};

struct path_memory {
	struct path_memory_config config; // with defaults filled in
	struct ras_memory memory;
	struct histogram *histogram;
	uint64_t count, lost;
	uint64_t paused_until_ns;
	uint64_t last_answer_ns, last_probe_ns;
	uint32_t unanswered; // consecutive unanswered reads
	uint32_t unexpected; // unanswered reads among them of sizes not known to be lost
	// The last write is unanswered, and nothing was answered since.
	bool write_unanswered;
	bool write_unexpected; // the same, for a size not known to be lost
	// Probes begun before this time may be lost with the broken pair; 0: no excuse.
	uint64_t excused_ns;
	uint64_t unanswered_ns; // start of the first unanswered probe
	bool silent;		// judged silent, and nothing was answered since
	struct size_past sizes[PATH_SIZES];
	struct size_past writes[PATH_SIZES];
	struct pulse_past pulse;
	// Current window.
	uint64_t window_begin_ns;
	uint32_t window_count; // may exceed the size of the ring
	uint64_t window[WINDOW_SAMPLES];
	uint32_t recent_count; // may exceed the size of the ring
	uint64_t recent[RECENT_SAMPLES];
	// Medians of good windows.
	uint32_t past_count; // may exceed the size of the ring
	uint64_t past[PATH_PAST_WINDOWS];
	uint64_t baseline_ns, baseline_mad_ns;
	uint64_t baseline_at_ns; // last update of the baseline
	// Time of the last good window, and its age when this history began.
	uint64_t learnt_ns, learnt_before_ns;
	// Results of the last windows.
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint32_t slow_windows, quick_windows; // consecutive
	uint32_t slow_run;		      // consecutive reads above the threshold
	uint64_t slow_run_ns;		      // first of these reads
	bool degraded;
	// path_wait.c
	uint64_t excluded_ns;	  // latency of the last excluded read; 0: none
	uint64_t quickest_ns;	  // latency of the quickest read; 0: none
	uint32_t exclusions;	  // a bit per read, the newest is bit 0: it was excluded
	uint32_t exclusion_count; // valid bits
	uint32_t lost_permille, lost_place;
	// Losses up to this time are over; only new ones make the path lossy.
	uint64_t loss_over_ns;
	uint32_t unproven_size_index;
	enum observation_kind kind;
	uint64_t since_ns;
	// path_resend.c
	uint64_t late_at_ns; // last late answer; 0: none
	uint64_t timeout_ns; // 0: late answers are not retransmissions
	bool resends;
	uint64_t resend_from_ns; // older answers were judged, and that loss is over
	uint32_t own_permille;
	bool resent_known;
	uint64_t resent_total, resent_ns; // port's counter, and the time of its last increase
};

void path_record_late_answer(struct path_memory *memory, const struct path_probe *probe);
// Return the per mille of probes that a device retransmitted, by their late answers; 0 if there is
// no such pattern.
uint32_t path_resent_permille(struct path_memory *memory, uint64_t now_ns);

// Return whether waiting for a processor explains the delay of an answered read.
bool path_sample_is_excluded(const struct path_memory *memory, const struct path_probe *probe);
// Return whether waiting for a processor may have let a lost probe time out. Such a loss counts
// only as silence.
bool path_loss_is_excluded(const struct path_probe *probe);
void path_record_exclusion(
	struct path_memory *memory, const struct path_probe *probe, bool excluded
);
// Return whether too many of the last reads were excluded to judge the latency.
bool path_latency_is_unjudged(const struct path_memory *memory);
// Forget that the path was slow. Windows continue, since the remaining samples are valid.
void path_forget_slowness(struct path_memory *memory);

// Return whether no good window confirmed the baseline for PATH_LEARNT_MAX_NS; false without a
// baseline.
bool path_baseline_is_outdated(const struct path_memory *memory, uint64_t now_ns);
void path_forget_baseline(struct path_memory *memory);
// Return the latency above which a read is slow, if `usual_ns` is usual.
uint64_t path_slow_threshold_ns(const struct path_memory *memory, uint64_t usual_ns);
// Return the median of the last PATH_QUICK_READS reads of the small size; 0: too few.
uint64_t path_recent_median_ns(const struct path_memory *memory);

// Sort in ascending order. For small arrays only.
void path_sort(uint64_t *values, uint32_t count);
// Return the median of a sorted array; 0 if it is empty.
uint64_t path_median(const uint64_t *sorted, uint32_t count);
// Return the median distance from `median`. Overwrites the array.
uint64_t path_mad(uint64_t *values, uint32_t count, uint64_t median);
