// SPDX-License-Identifier: BSD-3-Clause
// Samples of a run, stored in constant memory regardless of the length of the run.
//
//	all		histogram of 0.1 % precision, and the exact minimum and maximum
//	windows		histograms of 0.8 % precision of 512..1,024 consecutive pieces of the
//			run, with equally many samples; at 1,024 windows are joined in pairs
//	blocks		64..128 pieces of 2,048 consecutive raw samples, spread evenly over the
//			run, which show the dependence between samples. A run of up to
//			262,144 samples is stored completely, as one block
//
// If a file has no room for all of this, all three are thinned after the run.
//
// One thread records and reads. Recording allocates no memory and takes no lock: a sample is
// appended to a batch. Each 256th sample takes some microseconds more, between two samples, to
// distribute the batch.
#pragma once

#include "indicator.h"

#include <lib/histogram.h>

#include <stdbool.h>
#include <stdint.h>

#define RECORD_WINDOWS_MAX 1024u
#define RECORD_WINDOW_SAMPLES 64u // initial size of a window
#define RECORD_BLOCKS_MAX 128u
#define RECORD_BLOCK_SAMPLES 2048u
#define RECORD_RAW_MAX 262144u	 // RECORD_BLOCKS_MAX * RECORD_BLOCK_SAMPLES
#define RECORD_PRECISION_BITS 10 // of the histogram of all samples: 0.1 %
#define RECORD_PRECISION_BITS_MIN 5

struct run_record; // opaque: about 13 MiB, and 2 MiB more after its samples were sorted

int run_record_create(struct run_record **ret_record);
// Destroy a record; NULL is allowed. Returns NULL.
struct run_record *run_record_destroy(struct run_record *record);

// Touch the memory that this number of samples needs, so that no sample includes a page fault. Must
// be called before the first sample.
void run_record_touch(struct run_record *record, uint64_t samples);

// Hot: record one sample.
void run_record_add(struct run_record *record, uint64_t value_ns);

// The remaining functions read a record. Reading between samples is possible but slow: the first
// read distributes the current batch.

uint64_t run_record_count(const struct run_record *record);
const struct histogram *run_record_all(struct run_record *record);

// Windows, in order: `count` complete windows of `samples` each. An incomplete last window is left
// out.
struct run_windows {
	uint32_t count;
	uint64_t samples;
};
struct run_windows run_record_windows(struct run_record *record);
// Return one window; valid until the next sample.
const struct histogram *run_record_window(const struct run_record *record, uint32_t place);

// Get the blocks, in order; valid until the next sample. Returns their number, at most
// RECORD_BLOCKS_MAX.
uint32_t run_record_blocks(struct run_record *record, struct indicator_block *ret_blocks);
// Return the index in the run at which a block begins.
uint64_t run_record_block_start(const struct run_record *record, uint32_t place);

// Samples of all blocks, ascending; valid until the next sample. run_record_sorted() returns 0 or
// -ENOMEM.
struct run_sorted {
	const uint64_t *samples;
	uint32_t count;
};
int run_record_sorted(struct run_record *record, struct run_sorted *ret_sorted);

// Thin the data of a finished run for a file of bounded size. Each function returns false, and does
// nothing, if less than the given minimum would remain.
//
// Thin the blocks. A completely stored run becomes pieces. More than 64 blocks become 64, spread
// evenly. After that each block is cut in half.
bool run_record_thin_blocks(struct run_record *record, uint32_t samples_least);
// Join windows in pairs. With a minimum of 0 even the last window is dropped.
bool run_record_thin_windows(struct run_record *record, uint32_t count_least);
// Reduce the precision of the histogram of all samples by one bit. Count, minimum, maximum and mean
// stay.
bool run_record_coarsen_histogram(struct run_record *record, uint8_t bits_least);
uint8_t run_record_precision_bits(const struct run_record *record);
// Return true if the only block is the complete run.
bool run_record_is_whole(const struct run_record *record);

// Stored data of a run, from which an equivalent record is restored.
struct run_kept_block {
	uint64_t start;
	const uint64_t *samples;
	uint32_t count;
};

struct run_kept {
	uint64_t count;		// number of samples of the run
	uint8_t precision_bits; // of the histogram of all samples
	uint64_t window_samples;
	uint32_t window_count; // complete windows
	uint32_t block_count;
	struct run_kept_block blocks[RECORD_BLOCKS_MAX]; // at least two
	// Record `count` samples into the histogram of a window, or of all samples if place is -1.
	// Returns 0 or -errno, which run_record_restore() returns.
	int (*fill)(void *ctx, int32_t place, uint64_t count, struct histogram *histogram);
	void *ctx;
};

// Restore a run that is not stored completely; for a complete run record its samples instead. No
// samples can be added. Returns 0, -EINVAL if sizes and positions contradict each other, -ENOMEM,
// or the error of fill().
int run_record_restore(const struct run_kept *kept, struct run_record **ret_record);
