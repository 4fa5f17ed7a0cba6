// SPDX-License-Identifier: BSD-3-Clause
// What is kept of a run's samples, in constant memory however long it lasts.
//
//	all of them	a histogram of 0.1 %, and the true minimum and maximum
//	windows		histograms of 0.8 % of 512..1,024 pieces of the run that follow each
//			other, each of as many samples; at 1,024 they are joined in pairs
//	blocks		64..128 pieces of raw samples, 2,048 in a row, spread evenly over the
//			run: what tells how samples in a row depend on each other. A run of up
//			to 262,144 samples is kept whole, as one
//
// Where that is too much for a file, all three are thinned out when the run is over.
//
// One thread records and reads. Recording takes no memory and no lock: a sample is put behind the
// others of its batch, and each 256th one takes some microseconds more, between two samples, to put
// them all where they belong.
#pragma once

#include "indicator.h"

#include <lib/histogram.h>

#include <stdbool.h>
#include <stdint.h>

#define RECORD_WINDOWS_MAX 1024u
#define RECORD_WINDOW_SAMPLES 64u // of a window at first
#define RECORD_BLOCKS_MAX 128u
#define RECORD_BLOCK_SAMPLES 2048u
#define RECORD_RAW_MAX 262144u	 // both of them multiplied
#define RECORD_PRECISION_BITS 10 // of the histogram of all samples: 0.1 %
#define RECORD_PRECISION_BITS_MIN 5

struct run_record; // opaque: about 13 MiB, and 2 MiB once its samples were sorted

int run_record_create(struct run_record **ret_record);
// Takes NULL. Returns NULL.
struct run_record *run_record_destroy(struct run_record *record);

// Writes to all of its memory that so many samples take, so that none waits for a page of it.
// Before the first one.
void run_record_touch(struct run_record *record, uint64_t samples);

// Hot.
void run_record_add(struct run_record *record, uint64_t value_ns);

// The rest reads. It may be read between samples, too, but costs: the first reading after samples
// does what is left to do with them.

uint64_t run_record_count(const struct run_record *record);
const struct histogram *run_record_all(struct run_record *record);

// Windows, in order. The last one may hold fewer than the others, and is left out: `count` whole
// ones of `samples` each.
struct run_windows {
	uint32_t count;
	uint64_t samples;
};
struct run_windows run_record_windows(struct run_record *record);
// One of those, until the next sample.
const struct histogram *run_record_window(const struct run_record *record, uint32_t place);

// Blocks, in order; returns how many, at most RECORD_BLOCKS_MAX. They are valid until the next
// sample.
uint32_t run_record_blocks(struct run_record *record, struct indicator_block *ret_blocks);
// Where the block begins in the run.
uint64_t run_record_block_start(const struct run_record *record, uint32_t place);

// The samples of all blocks, the smallest first. Until the next sample. -ENOMEM.
struct run_sorted {
	const uint64_t *samples;
	uint32_t count;
};
int run_record_sorted(struct run_record *record, struct run_sorted *ret_sorted);

// For a file of bounded size, when no further samples come. Each returns false, with nothing done,
// where less than the floor would be left.
//
// Of a run that was kept whole pieces, of more than 64 blocks 64, spread evenly; then a half of
// each block.
bool run_record_thin_blocks(struct run_record *record, uint32_t samples_least);
// Joins windows in pairs; a floor of 0 lets go of the last one.
bool run_record_thin_windows(struct run_record *record, uint32_t count_least);
// One precision bit less of all samples. Count, minimum, maximum, mean stay what they are.
bool run_record_thin_all(struct run_record *record, uint8_t bits_least);
uint8_t run_record_precision_bits(const struct run_record *record);
// Its only block is the run.
bool run_record_is_whole(const struct run_record *record);

// What was kept of a run, to make a record from that reads as the one it came from.
struct run_kept_block {
	uint64_t start;
	const uint64_t *samples;
	uint32_t count;
};

struct run_kept {
	uint64_t count;		// samples of the run
	uint8_t precision_bits; // of the histogram of all of them
	uint64_t window_samples;
	uint32_t window_count; // whole ones
	uint32_t block_count;
	struct run_kept_block blocks[RECORD_BLOCKS_MAX]; // two or more
	// Records `count` samples into the histogram of a window, or of all at place -1. 0 or
	// -errno, which is handed on.
	int (*fill)(void *ctx, int32_t place, uint64_t count, struct histogram *histogram);
	void *ctx;
};

// Of a run that is not kept whole: one that is, is recorded sample by sample. It takes no further
// samples. -EINVAL: sizes and places contradict each other; -ENOMEM.
int run_record_restore(const struct run_kept *kept, struct run_record **ret_record);
