// SPDX-License-Identifier: BSD-3-Clause
// What reads of a peer's page in GPU memory brought, beside those of its pulse over the same pair:
// the same cable and the same devices, and then PCIe to the GPU. So what the pulse's reads show too
// is the path's, and only the rest is the GPU's. Pure.
#pragma once

#include <control/fabric.h>
#include <lib/histogram.h>

#define GPU_PATH_WINDOW 12 // reads of the smallest size between two judgements of their time

enum gpu_read {
	GPU_READ_RIGHT,
	GPU_READ_WRONG,	  // something else came than its word
	GPU_READ_SILENT,  // nothing came
	GPU_READ_REFUSED, // the peer's device said that it cannot, which ends the pair
};

struct gpu_path {
	uint32_t ordinal;
	uint64_t word; // of the page; another one is another page
	enum fabric_gpu_seen seen;
	uint64_t since_ns;
	uint64_t probes, silent, refused, wrong;
	struct histogram_log2 small;
	enum gpu_read doubt; // of the last read, if it may have been the path's
	bool doubted;	     // until the pulse is read once more, on another pair perhaps
	uint64_t doubted_ns;
	uint32_t fails, rights; // in a row
	uint64_t next_ns;	// not before it
	uint64_t window[GPU_PATH_WINDOW];
	uint32_t held;
	uint64_t median_ns, usual_ns, usual_at_ns; // of the last window; the least of all
	uint32_t slow_windows;			   // in a row
};

// The peer shows this page from now on: times stay those of the same GPU.
void gpu_path_shown(struct gpu_path *gpu, uint64_t now_ns, uint32_t ordinal, uint64_t word);
// small: of the smallest size, whose time counts. True: a window of times is full.
bool gpu_path_note(
	struct gpu_path *gpu, uint64_t now_ns, enum gpu_read read, bool small, uint64_t latency_ns
);
// The pulse was read over the same path, or was not.
void gpu_path_host(struct gpu_path *gpu, uint64_t now_ns, bool answered);
// Judges a full window. host_permille: how long the pulse's reads take now, of what is usual.
void gpu_path_judge(struct gpu_path *gpu, uint64_t now_ns, uint64_t host_permille);
// Whether it may be read now: who cannot be read is tried again after pauses that grow.
bool gpu_path_is_due(const struct gpu_path *gpu, uint64_t now_ns);
void gpu_path_look(const struct gpu_path *gpu, struct fabric_gpu_path *ret_look);
