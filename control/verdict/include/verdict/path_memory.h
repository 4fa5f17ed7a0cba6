// SPDX-License-Identifier: BSD-3-Clause
// What is remembered of one path, and what it is judged by: its own past, and its like.
//
// Pure. Fed with the outcome of single probes or of small groups of them; tells a sight. A path to
// a neighbour keeps a mergeable histogram; one that is only looked at in turn keeps at most 256
// bytes.
//
// The baseline is robust: median and MAD of the small size's medians over a long window, updated only
// while the path is good, so that a slow fault does not teach it. A path is degraded when the
// median of the last window is above `ratio` x its baseline and above baseline + 6 MAD and above
// the median of its like (paths of the same kind from here) by the same ratio, for `windows`
// windows in a row; a machine that is slow as a whole blames no path.
#pragma once

#include <lib/histogram.h>
#include <ras/memory.h>
#include <verdict/sight.h>

#define PATH_SIZES 4 // 8 B, 1 KiB, the path's MTU, 64 KiB

struct path_memory_config {
	uint64_t window_ns;	  // 0: 5 s
	uint32_t samples_min;	  // in a window for it to be judged; 0: 4
	uint32_t ratio_permille;  // 0: 2000
	uint32_t windows;	  // 0: 2
	uint32_t silent_reads;	  // unanswered in a row: silent; 0: 2
	uint64_t standing_ns;	  // the counter unchanged over reads so far apart; 0: 1.5 s
	uint32_t lossy_permille;  // lost of a size, over lossy_window_ns; 0: 20
	uint64_t lossy_window_ns; // 0: 10 s
};

struct path_probe {
	uint64_t at_ns;
	uint32_t size; // place in the sizes
	bool answered;
	bool is_read;	     // else a write
	uint64_t latency_ns; // if answered
	// Of a read of the pulse's head that was answered; beats 0: it was not one, or torn.
	uint64_t incarnation, beats;
};

struct path_memory; // of a neighbour
struct path_brief;  // of one that is looked at in turn; at most 256 bytes

int path_memory_create(
	const struct path_memory_config *config,
	const struct ras_memory *memory,
	struct path_memory **ret_memory
);
struct path_memory *path_memory_destroy(struct path_memory *memory);
void path_memory_add(struct path_memory *memory, const struct path_probe *probe);
// We were stopped ourselves until then: what was not answered before counts for nothing.
void path_memory_paused(struct path_memory *memory, uint64_t until_ns);

// like_median_ns: the median of the medians of the other paths like this; 0: there are none.
enum sight_kind
path_memory_judge(struct path_memory *memory, uint64_t now_ns, uint64_t like_median_ns);

struct path_summary {
	uint64_t count, lost; // since the path began
	uint64_t size_lost[PATH_SIZES], size_sent[PATH_SIZES];
	uint64_t min_ns, median_ns, mad_ns, p99_ns; // of the small size, the last windows; 0: none
	uint64_t baseline_ns, baseline_mad_ns;	    // 0: not learnt yet
	uint64_t last_answer_ns;		    // RAS_NEVER: none
	enum sight_kind kind;			    // of the last judgement
	uint64_t since_ns;
	uint32_t lost_permille, lost_bytes_place; // PATH_SIZES: none
};
void path_memory_summary(const struct path_memory *memory, struct path_summary *ret_summary);
const struct histogram *path_memory_histogram(const struct path_memory *memory);

size_t path_brief_bytes(void);
void path_brief_init(struct path_brief *brief);
void path_brief_add(struct path_brief *brief, const struct path_probe *probe);
void path_brief_summary(const struct path_brief *brief, struct path_summary *ret_summary);
