// SPDX-License-Identifier: BSD-3-Clause
// The largest samples of a run, with the kernel's counters during each of them.
//
// Between two samples the worker reads its own counters. It does so after each sample that is one
// of the largest so far, which takes about 7 us. It also does so every 10 ms, which takes about 1
// us. So the counters cover little more than the sample itself. The reads are in no sample. In an
// open loop they may delay the next operation, which shows in its lag.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTLIERS_MAX 32
#define OUTLIER_UNKNOWN UINT64_MAX // the kernel does not report it

enum outlier_evidence {
	OUTLIER_INVOLUNTARY,	 // preemptions by another thread
	OUTLIER_VOLUNTARY,	 // voluntary switches
	OUTLIER_WAITED_NS,	 // time runnable without a processor
	OUTLIER_MINOR,		 // page faults without disk access
	OUTLIER_MAJOR,		 // page faults with disk access
	OUTLIER_MIGRATED,	 // 1: the thread ended on another processor
	OUTLIER_STEAL_NS,	 // time stolen from this processor since the last outlier
	OUTLIER_STEAL_WITHIN_NS, // period that OUTLIER_STEAL_NS covers
	OUTLIER_KHZ,		 // processor frequency after the sample
	OUTLIER_EVIDENCE_COUNT,
};

struct outlier {
	uint64_t sample;    // index, from 0
	uint64_t at_ns;	    // end of the sample, since the start of the first one
	uint64_t took_ns;   // since the time when the operation could have been submitted
	uint64_t within_ns; // period before the end that the evidence covers, at least the sample
	uint64_t evidence[OUTLIER_EVIDENCE_COUNT];
};

// Return the key in JSON, for example "involuntary_switches".
const char *outlier_key(enum outlier_evidence kind);

struct outlier_reading {
	uint64_t at_ns;
	uint64_t counts[OUTLIER_EVIDENCE_COUNT];
};

// State of the worker's observation. Control initializes it; the worker owns it while a stretch is
// played.
struct outlier_watch {
	uint64_t bound_ns;	       // samples of at least this duration are examined
	uint64_t due_ns;	       // time of the next regular reading
	int sched_fd, stat_fd, khz_fd; // -1: not available
	struct outlier_reading before, steal;
	uint32_t count; // stored outliers, unsorted
	struct outlier outliers[OUTLIERS_MAX];
};

// Open the counters of thread `tid` of this process, and of its processor. Counters that cannot be
// opened are unknown.
void outlier_watch_open(struct outlier_watch *watch, pid_t tid, uint32_t cpu);
// Close the counters; a zeroed struct is allowed.
void outlier_watch_close(struct outlier_watch *watch);
// Control, before a stretch: drop the stored outliers; samples from `bound_ns` on are examined.
void outlier_watch_begin(struct outlier_watch *watch, uint64_t bound_ns);

// Return the duration from which a sample is examined: twice the median of the warm-up.
uint64_t outlier_bound_ns(const uint64_t *samples, uint32_t count);

// Worker, between two samples: examine a sample that ended at end_ns. at_ns is the time since the
// start of the first sample.
void outlier_watch_sample(
	struct outlier_watch *watch,
	uint64_t sample,
	uint64_t took_ns,
	uint64_t end_ns,
	uint64_t at_ns
);

// Control, after the stretch: copy the stored outliers, largest first. Returns their number.
uint32_t
outlier_watch_sorted(const struct outlier_watch *watch, struct outlier ret_outliers[OUTLIERS_MAX]);

// Describe the most likely cause of an outlier, for people.
#define OUTLIER_TEXT_BYTES 160
void outlier_format(const struct outlier *outlier, char text[static OUTLIER_TEXT_BYTES]);
