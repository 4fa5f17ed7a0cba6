// SPDX-License-Identifier: BSD-3-Clause
// The largest samples of a run, each with what the kernel counted while it lasted.
//
// Between two samples the worker asks the kernel for its own counters: after each sample that is
// one of the largest so far (some 7 us), and each 10 ms (1 us), so that what is told of a sample is
// of little more than the sample itself. Nothing of that is in any sample; the next one of an open
// loop may begin so much later, which its lag tells.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTLIERS_KEPT 32
#define OUTLIER_UNKNOWN UINT64_MAX // the kernel does not say

enum outlier_evidence {
	OUTLIER_INVOLUNTARY,	 // times another thread took the processor away
	OUTLIER_VOLUNTARY,	 // times the worker gave it up
	OUTLIER_WAITED_NS,	 // it was ready to run, and did not
	OUTLIER_MINOR,		 // page faults without
	OUTLIER_MAJOR,		 // and with a disk
	OUTLIER_MIGRATED,	 // 1: it ended on another processor
	OUTLIER_STEAL_NS,	 // what the host took from the machine since the last outlier
	OUTLIER_STEAL_WITHIN_NS, // which was so long ago
	OUTLIER_KHZ,		 // of the processor, afterwards
	OUTLIER_EVIDENCE_COUNT,
};

struct outlier {
	uint64_t sample;    // from 0
	uint64_t at_ns;	    // its end, after the first one's beginning
	uint64_t took_ns;   // from when it could have been submitted
	uint64_t within_ns; // evidence is of so long before its end, at least of the sample
	uint64_t evidence[OUTLIER_EVIDENCE_COUNT];
};

// "involuntary_switches": as in JSON.
const char *outlier_key(enum outlier_evidence kind);

struct outlier_reading {
	uint64_t at_ns;
	uint64_t counts[OUTLIER_EVIDENCE_COUNT];
};

// Set up by control; while a stretch is played the worker's.
struct outlier_watch {
	uint64_t bound_ns;	       // a sample that took so long is looked at
	uint64_t due_ns;	       // or one that ends then
	int sched_fd, stat_fd, khz_fd; // -1: there is none
	struct outlier_reading before, steal;
	uint32_t count; // kept, in no order
	struct outlier outliers[OUTLIERS_KEPT];
};

// For the thread `tid` of this process on a processor. What cannot be opened is not known.
void outlier_watch_open(struct outlier_watch *watch, pid_t tid, uint32_t cpu);
// Takes one that is all zero, too.
void outlier_watch_close(struct outlier_watch *watch);
// Control, before a stretch: what is kept is forgotten, samples from `bound_ns` on are looked at.
void outlier_watch_begin(struct outlier_watch *watch, uint64_t bound_ns);

// From when on a sample is worth a look, by those of the warm-up: twice their median.
uint64_t outlier_bound_ns(const uint64_t *samples, uint32_t count);

// Worker, between two samples: of one that ended at end_ns, at_ns after the first one's beginning.
void outlier_look(
	struct outlier_watch *watch,
	uint64_t sample,
	uint64_t took_ns,
	uint64_t end_ns,
	uint64_t at_ns
);

// Control, after the stretch: those kept, the largest first.
uint32_t
outlier_watch_take(const struct outlier_watch *watch, struct outlier ret_outliers[OUTLIERS_KEPT]);

// What explains it as far as anything here does, for people.
#define OUTLIER_TEXT_BYTES 160
void outlier_say(const struct outlier *outlier, char text[static OUTLIER_TEXT_BYTES]);
