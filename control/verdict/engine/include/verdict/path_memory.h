// SPDX-License-Identifier: BSD-3-Clause
// History of one path, and its judgement against its own baseline and against comparable paths.
//
// Pure. The input is the outcome of single probes, the output one observation. A path to a
// neighbour keeps a mergeable histogram. A path that is only visited in turn keeps at most 256
// bytes.
//
// Latency is judged by windows of the small size. A window ends when it is long enough and holds
// enough samples, so rarely probed paths have longer windows. The baseline is the median of the
// medians of the last PATH_PAST_WINDOWS good windows. It rises by at most a tenth per hour, so that
// neither a fault nor a slow ramp becomes normal.
//
// A window is slow if its median exceeds `ratio` x baseline, baseline + 6 MAD, and `ratio` x
// path_expected_ns(). Its quickest quarter must exceed `ratio` x baseline, too. A path is degraded
// after `windows` slow windows in a row. So neither a machine that is slow as a whole nor a path
// that is slow now and then is blamed. A path is also degraded when its last PATH_SLOW_READS reads
// over PATH_SLOW_NS all exceed `ratio` x baseline. Their median must be as slow as that of a slow
// window. It is read more often meanwhile. It recovers after as many windows that are not slow, or
// after PATH_QUICK_READS quick reads in a row.
//
// A baseline may be saved over a restart (path_memory_get_learnt(), path_memory_restore()), and
// then continues as before. A baseline that no good window has confirmed for PATH_LEARNT_MAX_NS is
// dropped. A path that changed for good is thus not degraded for ever.
//
// Loss is judged per size, by the outcomes of the last lossy_window_ns, at least the last four. If
// silent_reads reads of any size in a row are unanswered, the path is silent until the next
// answered read. An outage without earlier loss leaves no loss behind.
//
// A slow sample is excluded if waiting for a processor explains its delay (path_wait.c). While more
// than half of the last samples are excluded, the path is not judged by its latency.
//
// Writes have their own counts and times. They count as loss like reads, since they carry large
// data the other way. Latency, silence and the counter are judged by reads alone.
//
// The pulse counter stands if reads that are standing_ns apart, all answered, show the same value.
// A torn page, another node's page, or a counter that runs backwards proves nothing. The path is
// then neither worse nor proven good.
#pragma once

#include <lib/histogram.h>
#include <ras/memory.h>
#include <ras/payload.h>
#include <verdict/observation.h>

// A ratio of 1.5 occurs by noise and 2 does not. The threshold lies between, so that neither falls
// on it.
#define PATH_RATIO_PERMILLE 1750
#define PATH_SIZES 4	     // 8 B, 1 KiB, the path's MTU, 64 KiB
#define PATH_PAST_WINDOWS 64 // windows that form the baseline
#define PATH_QUICK_READS 4   // quick reads in a row that end a degradation
#define PATH_DOUBT_READS 2   // slow reads in a row, after which the path is read more often
#define PATH_SLOW_READS 8    // slow reads in a row over at least PATH_SLOW_NS: degraded at once
#define PATH_SLOW_NS (4 * RAS_NS_PER_SEC)
#define PATH_LEARN_WINDOWS 4 // windows before there is a baseline
#define PATH_LEARNT_MAX_NS (7 * UINT64_C(86400) * RAS_NS_PER_SEC)
#define PATH_LATENCY_MAX_NS (UINT64_C(1) << 48)
// Time without a read after which the path is unknown again, unless it is silent.
#define PATH_STALE_NS (10 * RAS_NS_PER_SEC)

struct path_memory_config {
	uint64_t window_ns;	 // 0: 5 s
	uint32_t samples_min;	 // samples that a window needs to be judged; 0: 4
	uint32_t ratio_permille; // 0: PATH_RATIO_PERMILLE
	uint32_t windows;	 // slow windows in a row that mean degraded; 0: 2
	uint32_t silent_reads;	 // unanswered reads in a row that mean silent; 0: 2
	// Span of reads with an unchanged counter that means standing; 0: 1.5 s.
	uint64_t standing_ns;
	uint32_t lossy_permille;  // loss of one size over lossy_window_ns that means lossy; 0: 20
	uint64_t lossy_window_ns; // 0: 10 s
};

struct path_probe {
	uint64_t at_ns; // start of the probe
	uint32_t size;	// index into probe_bytes
	bool answered;
	bool is_read;	     // false: a write
	uint64_t latency_ns; // of a lost probe: time until it was given up; 0: unknown
	// Part of the latency that threads may have waited for a processor; 0: none
	uint64_t wait_ns;
	// Pulse that an answered read returned; beats 0: no pulse, or a torn one. A read of the
	// small size returns only the counter, with incarnation 0. It counts as a pulse only after
	// a read of the whole head.
	uint64_t incarnation, beats;
};

struct path_memory;   // of a path to a neighbour
struct compact_stats; // of a path that is only visited; at most 256 bytes

// Create the memory of one path. Returns 0 or -ENOMEM.
int path_memory_create(
	const struct path_memory_config *config,
	const struct ras_memory *memory,
	struct path_memory **ret_memory
);
struct path_memory *path_memory_destroy(struct path_memory *memory);
// Add an outcome. Returns whether its latency was excluded.
bool path_memory_add(struct path_memory *memory, const struct path_probe *probe);
// This agent was paused until then: ignore probes that began earlier.
void path_memory_paused(struct path_memory *memory, uint64_t until_ns);
// The connection broke while a read or write was unanswered, and no probe has followed. It counts
// as one more unanswered read.
void path_memory_cut_off(struct path_memory *memory);
// The peer restarted, or the path leads over a new pair. Loss and counter start anew; the baseline
// stays.
void path_memory_reopened(struct path_memory *memory, uint64_t now_ns);

// Baseline learnt from good windows.
struct path_learnt {
	uint64_t baseline_ns, baseline_mad_ns;
	uint32_t windows; // windows that it is made of, at most PATH_PAST_WINDOWS
	uint64_t age_ns;  // age of the newest of these windows
};
// Return the baseline. Returns false if there is none.
bool path_memory_get_learnt(
	const struct path_memory *memory, uint64_t now_ns, struct path_learnt *ret_learnt
);
// Set a saved baseline on a path that has none. Returns false if the path has one, or the saved one
// is empty or too old.
bool path_memory_restore(
	struct path_memory *memory, uint64_t now_ns, const struct path_learnt *learnt
);

// An answer is late from timeout / PATH_RESEND_EARLY_SHARE on, since adaptive retransmission does
// not wait for the whole timeout.
#define PATH_RESEND_EARLY_SHARE 4
// Enable detection of retransmissions between two hardware devices. A device repeats a lost request
// after timeout_ns of the queue pair, so the probe is answered late instead of lost. Lossy is
// then also judged by the share of late answers (path_resend.c). 0: disable.
void path_memory_set_resend(struct path_memory *memory, uint64_t timeout_ns);
// Set the state of the local device before each judgement. own_permille: late share of the device's
// reads of itself (path_memory_late_permille()), which the own machine causes. resent_total:
// retransmissions by the port's counters, or PATH_RESENT_UNKNOWN.
#define PATH_RESENT_UNKNOWN UINT64_MAX
void path_memory_set_context(
	struct path_memory *memory, uint64_t now_ns, uint32_t own_permille, uint64_t resent_total
);
uint32_t path_memory_late_permille(const struct path_memory *memory, uint64_t now_ns);

// Judge the path. like_ns: latency that comparable paths suggest, see path_expected_ns(); 0: there
// are none. Returns OBSERVATION_NO_PAIR while nothing is known.
enum observation_kind
path_memory_judge(struct path_memory *memory, uint64_t now_ns, uint64_t like_ns);

// Choose an extra probe. On a lossy path: the lost size that was untried for longest, and for
// PATH_RETRY_NS at least. Rare sizes would otherwise report a past loss for minutes. On another
// path: a large size that was just lost. Returns false if none is needed.
#define PATH_RETRY_NS RAS_NS_PER_SEC
struct path_retry {
	uint32_t size; // index into probe_bytes
	bool is_write;
};
bool path_memory_next_retry(
	const struct path_memory *memory, uint64_t now_ns, struct path_retry *ret_retry
);

// Return whether the last reads contradict the judgement, so that more reads would decide it.
bool path_memory_needs_reads(const struct path_memory *memory);

// Return when a read with an unchanged counter would prove that the counter stands. RAS_NEVER: the
// last read saw an advance, or the path is standing already.
uint64_t path_memory_confirm_ns(const struct path_memory *memory);

struct path_summary {
	uint64_t count, lost; // since the path began
	bool unjudged;	      // too many of the last reads were excluded to judge the latency
	uint64_t excluded_ns; // latency of the last excluded read; 0: none
	// Reads; in compact_stats reads and writes.
	uint64_t size_lost[PATH_SIZES], size_sent[PATH_SIZES];
	uint64_t write_lost[PATH_SIZES], write_sent[PATH_SIZES];
	// Latency of the last answers of the small size; 0: none. The median is that of the last
	// window.
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint64_t lately_ns;		       // median of the last few answers; 0: too few
	uint64_t baseline_ns, baseline_mad_ns; // 0: not learnt yet
	uint64_t last_answer_ns;	       // RAS_NEVER: none
	uint64_t last_probe_ns;		       // RAS_NEVER: none
	uint64_t advanced_ns;		       // last advance of the counter; RAS_NEVER: none seen
	enum observation_kind kind;	       // of the last judgement
	uint64_t since_ns;
	// Silent: start of the first unanswered read. Stalled counter: first read of its current
	// value. Otherwise equal to since_ns.
	uint64_t turned_ns;
	uint32_t lost_permille;	  // recent loss of the sizes that are lost
	uint32_t lost_size_index; // index of the smallest lost size; PATH_SIZES: none
	// Index of the smallest size whose last try failed, or that was never tried. In
	// compact_stats: during the last visit. PATH_SIZES: all passed.
	uint32_t unproven_size_index;
};
void path_memory_summary(const struct path_memory *memory, struct path_summary *ret_summary);

// Return when the reported state was seen, at most now_ns. Good is as old as the last advance of
// the counter, since a repeated value proves nothing yet. Degraded and lossy are the same, but
// never older than their judgement: a read without an advance may have caused it, and they must not
// look older than the good state before.
uint64_t path_summary_seen_ns(const struct path_summary *summary, uint64_t now_ns);

// Latency of the last answers of one size, at most 128. With `answers` 0 all times are 0.
struct path_size_times {
	uint32_t answers;
	uint64_t min_ns, median_ns, p99_ns;
};
void path_memory_times(
	const struct path_memory *memory,
	bool writes, // false: reads
	struct path_size_times ret_times[static PATH_SIZES]
);
// Fill this node's row of PATHS, except its id and devices. now_ns is needed for the age.
void path_summary_row(
	const struct path_summary *summary, uint64_t now_ns, struct ras_path_row *ret_row
);
const struct histogram *path_memory_histogram(const struct path_memory *memory);

#define PATH_COMPARED_MAX 256 // further paths are ignored
// Return the latency that path `self` would show if it were slowed like the other paths: its
// baseline times the median ratio of the others' latency to their baselines. Their last few reads
// are used if slower than the last window. Returns 0 if no other path has a baseline.
uint64_t path_expected_ns(const struct path_summary *paths, uint32_t count, uint32_t self);

size_t compact_stats_bytes(void);
void compact_stats_init(struct compact_stats *brief);
void compact_stats_add(struct compact_stats *brief, const struct path_probe *probe);
// The path uses a new pair from now on: earlier losses do not concern it.
void compact_stats_opened(struct compact_stats *brief);
void compact_stats_summary(const struct compact_stats *brief, struct path_summary *ret_summary);
