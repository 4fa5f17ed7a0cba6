// SPDX-License-Identifier: BSD-3-Clause
// Statistics of reads of a peer's page in GPU memory, beside reads of its pulse over the same pair.
// Both use the same cable and devices; reads of the GPU page also cross PCIe to the GPU. A fault
// that pulse reads show as well belongs to the path, and only the rest belongs to the GPU. Pure.
#pragma once

#include <control/fabric.h>
#include <lib/histogram.h>

#define GPU_PATH_WINDOW 12 // latencies of the smallest size in one judgement

enum gpu_read {
	GPU_READ_CORRECT,
	GPU_READ_WRONG,	  // the page held something other than its word
	GPU_READ_SILENT,  // no answer
	GPU_READ_REFUSED, // the peer's device rejected the read, which ends the pair
};

struct gpu_path {
	uint32_t ordinal;
	uint64_t word; // content of the page; another word means another page
	enum fabric_gpu_seen seen;
	uint64_t since_ns;
	uint64_t probes, silent, refused, wrong;
	struct histogram_log2 small;
	enum gpu_read doubt; // result of the last failed read, if the path may be to blame
	bool doubted;	     // undecided until a pulse is read again, on this pair or the next
	uint64_t doubted_ns;
	uint32_t fails, rights; // consecutive failed and correct reads
	uint64_t next_ns;	// earliest time of the next read
	uint64_t window[GPU_PATH_WINDOW];
	uint32_t held;
	uint64_t median_ns, usual_ns, usual_at_ns; // last window; baseline; time of its last update
	uint32_t slow_windows;			   // consecutive slow windows
};

// Set the page that the peer exposes from now on. Latencies are kept if the GPU is the same.
void gpu_path_set_page(struct gpu_path *gpu, uint64_t now_ns, uint32_t ordinal, uint64_t word);
// Record one read. small: it has the smallest size, and its latency counts. Returns true when a
// window of latencies is full; then call gpu_path_judge().
bool gpu_path_add_read(
	struct gpu_path *gpu, uint64_t now_ns, enum gpu_read read, bool small, uint64_t latency_ns
);
// Record whether a pulse read over the same path was answered. This settles an undecided read.
void gpu_path_add_pulse_read(struct gpu_path *gpu, uint64_t now_ns, bool answered);
// Judge a full window. host_permille: latency of pulse reads now, in per mille of their baseline.
void gpu_path_judge(struct gpu_path *gpu, uint64_t now_ns, uint64_t host_permille);
// Return whether the page may be read now. An unreadable page is tried again after growing pauses.
bool gpu_path_is_due(const struct gpu_path *gpu, uint64_t now_ns);
void gpu_path_describe(const struct gpu_path *gpu, struct fabric_gpu_path *ret_look);
