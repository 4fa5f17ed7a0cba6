// SPDX-License-Identifier: BSD-3-Clause
// Store windows and blocks of a run, and thin them as the run grows.
#include "record.h"

#include "ranks.h"

#include <lib/must.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct histogram_shape whole_shape = {
	.value_min = 1,
	.value_max = HISTOGRAM_VALUE_MAX,
	.precision_bits = RECORD_PRECISION_BITS,
	.counter_bits = 64,
};

// Recording a sample only appends it to a batch. A batch belongs to one window and to one block.
#define BATCH_SAMPLES 256u
// Smallest window while samples arrive. A shorter run gets smaller windows, made from its raw
// samples on reading.
#define LIVE_WINDOW_SAMPLES (RECORD_RAW_MAX / RECORD_WINDOWS_MAX)

#define THIN_BLOCKS (RECORD_BLOCKS_MAX / 2) // minimum number of blocks of a thinned record

static_assert(RECORD_RAW_MAX == RECORD_BLOCKS_MAX * RECORD_BLOCK_SAMPLES, "blocks fill it");
static_assert(RECORD_BLOCK_SAMPLES % BATCH_SAMPLES == 0, "a batch is of one block");
static_assert(LIVE_WINDOW_SAMPLES % BATCH_SAMPLES == 0, "a batch is of one window");

struct run_record {
	// Samples from index `distributed` on are not distributed yet.
	uint64_t batch[BATCH_SAMPLES];
	uint32_t batch_count, distributed;
	uint64_t count; // samples without those of the batch

	struct histogram *all;

	// Windows by age; order[] is the index of each window's histogram. The first `joined`
	// windows and the newest ones hold window_samples each. The `halves` windows between them
	// hold half as many and will be joined. In a completely stored run the windows may lag
	// behind; they then hold the first `windowed` samples.
	struct histogram *windows[RECORD_WINDOWS_MAX];
	uint16_t order[RECORD_WINDOWS_MAX];
	uint32_t window_count; // including the unfinished one
	uint32_t joined, halves;
	uint64_t window_samples, window_left, windowed;

	// Raw samples. A block begins at each multiple of `stride`; block_order[] is the index of
	// each block's storage.
	uint64_t *raw;
	uint64_t block_start[RECORD_BLOCKS_MAX];
	uint16_t block_order[RECORD_BLOCKS_MAX];
	uint32_t block_count, block_left, block_samples;
	uint64_t stride, block_next; // block_next: samples until the next block begins
	bool whole;		     // all samples are stored; blocks are adjacent

	uint64_t *sorted;      // samples of all blocks, or NULL
	uint32_t sorted_count; // 0: must be sorted again
};

int run_record_create(struct run_record **ret_record) {
	struct run_record *record = calloc(1, sizeof(*record));
	int err;

	if (record == NULL)
		return -ENOMEM;
	record->raw = calloc((size_t)RECORD_RAW_MAX, sizeof(*record->raw));
	err = record->raw == NULL ? -ENOMEM : histogram_create(&whole_shape, &record->all);
	for (uint32_t n = 0; n < RECORD_WINDOWS_MAX && err == 0; n++)
		err = histogram_create(&histogram_shape_latency, &record->windows[n]);
	if (err < 0) {
		run_record_destroy(record);
		return err;
	}
	for (uint32_t n = 0; n < RECORD_WINDOWS_MAX; n++)
		record->order[n] = (uint16_t)n;
	record->window_samples = LIVE_WINDOW_SAMPLES;
	record->stride = record->block_samples = RECORD_BLOCK_SAMPLES;
	record->whole = true;
	*ret_record = record;
	return 0;
}

struct run_record *run_record_destroy(struct run_record *record) {
	if (record == NULL)
		return NULL;
	histogram_destroy(record->all);
	for (uint32_t n = 0; n < RECORD_WINDOWS_MAX; n++)
		histogram_destroy(record->windows[n]);
	free(record->raw);
	free(record->sorted);
	free(record);
	return NULL;
}

// Windows are only filled once half of the raw samples are used.
void run_record_touch(struct run_record *record, uint64_t samples) {
	uint64_t raw = samples < RECORD_RAW_MAX ? samples : RECORD_RAW_MAX;

	// memset() could be optimized away on memory that is known to be zero.
	explicit_bzero(record->raw, raw * sizeof(*record->raw));
	histogram_prefault(record->all);
	for (uint32_t n = 0; n < RECORD_WINDOWS_MAX && samples > RECORD_RAW_MAX / 2; n++)
		histogram_prefault(record->windows[n]);
}

// Join the two oldest half windows. The histogram of the second one becomes free and moves to the
// end of order[].
static void join_pair(struct run_record *record) {
	uint32_t first = record->joined;
	uint16_t freed = record->order[first + 1];
	int err = histogram_merge(record->windows[record->order[first]], record->windows[freed]);

	must(err == 0); // equal shapes, and far below 2^64 samples
	record->window_count--;
	memmove(&record->order[first + 1], &record->order[first + 2],
		(record->window_count - first - 1) * sizeof(record->order[0]));
	record->order[record->window_count] = freed;
	record->joined++;
	record->halves -= 2;
}

static void windows_add(struct run_record *record, const uint64_t *values, uint64_t count) {
	record->windowed += count;
	while (count > 0) {
		uint32_t part = BATCH_SAMPLES;

		if (record->window_left == 0) {
			if (record->window_count == RECORD_WINDOWS_MAX && record->halves == 0) {
				record->window_samples *= 2;
				record->joined = 0;
				record->halves = RECORD_WINDOWS_MAX;
			}
			if (record->window_count == RECORD_WINDOWS_MAX)
				join_pair(record);
			histogram_clear(record->windows[record->order[record->window_count]]);
			record->window_count++;
			record->window_left = record->window_samples;
		}
		if (part > record->window_left)
			part = (uint32_t)record->window_left;
		if (part > count)
			part = (uint32_t)count;
		histogram_record_many(
			record->windows[record->order[record->window_count - 1]], values, part
		);
		record->window_left -= part;
		values += part;
		count -= part;
	}
}

static void windows_restart(struct run_record *record, uint64_t samples) {
	record->window_count = record->joined = record->halves = 0;
	record->window_left = record->windowed = 0;
	record->window_samples = samples;
}

static void windows_add_raw(struct run_record *record, uint64_t end) {
	windows_add(record, &record->raw[record->windowed], end - record->windowed);
}

// Drop every second block, and move its storage index behind the others.
static void blocks_thin(struct run_record *record) {
	uint16_t freed[RECORD_BLOCKS_MAX / 2];

	for (uint32_t n = 0; n < RECORD_BLOCKS_MAX / 2; n++) {
		freed[n] = record->block_order[(size_t)2 * n + 1];
		record->block_order[n] = record->block_order[(size_t)2 * n];
		record->block_start[n] = record->block_start[(size_t)2 * n];
	}
	for (uint32_t n = 0; n < RECORD_BLOCKS_MAX / 2; n++)
		record->block_order[RECORD_BLOCKS_MAX / 2 + n] = freed[n];
	record->block_count = RECORD_BLOCKS_MAX / 2;
	record->stride *= 2;
	record->whole = false;
}

static void block_add(struct run_record *record, const uint64_t *values, uint32_t count) {
	if (record->block_next == 0) {
		if (record->block_count == RECORD_BLOCKS_MAX)
			blocks_thin(record);
		else if (record->whole)
			record->block_order[record->block_count] = (uint16_t)record->block_count;
		record->block_next = record->stride;
		record->block_start[record->block_count++] = record->count;
		record->block_left = RECORD_BLOCK_SAMPLES;
	}
	record->block_next -= count;
	if (record->block_left > 0) {
		uint64_t place = record->block_order[record->block_count - 1];
		uint64_t offset = RECORD_BLOCK_SAMPLES - record->block_left;

		memcpy(&record->raw[place * RECORD_BLOCK_SAMPLES + offset], values,
		       count * sizeof(*values));
		record->block_left -= count;
	}
}

static void batch_distribute(struct run_record *record) {
	const uint64_t *values = &record->batch[record->distributed];
	uint32_t count = record->batch_count - record->distributed;

	if (count == 0)
		return;
	record->sorted_count = 0;
	block_add(record, values, count);
	histogram_record_many(record->all, values, count);
	record->count += count;

	// While the second half of the raw samples fills, windows take two samples for each new
	// one. So they contain all samples before the first blocks are dropped.
	if (!record->whole) {
		windows_add(record, values, count);
	} else if (record->count > RECORD_RAW_MAX / 2) {
		uint64_t end;

		if (record->window_samples != LIVE_WINDOW_SAMPLES)
			windows_restart(record, LIVE_WINDOW_SAMPLES);
		end = record->windowed + UINT64_C(2) * count;
		windows_add_raw(record, end < record->count ? end : record->count);
	}
	record->distributed = record->batch_count %= BATCH_SAMPLES;
}

void run_record_add(struct run_record *record, uint64_t value_ns) {
	record->batch[record->batch_count++] = value_ns;
	if (record->batch_count == BATCH_SAMPLES)
		batch_distribute(record);
}

uint64_t run_record_count(const struct run_record *record) {
	return record->count + record->batch_count - record->distributed;
}

const struct histogram *run_record_all(struct run_record *record) {
	batch_distribute(record);
	return record->all;
}

struct run_windows run_record_windows(struct run_record *record) {
	batch_distribute(record);
	// All samples of the run are stored: compute the windows from them. The window size is the
	// smallest that yields at most RECORD_WINDOWS_MAX windows.
	if (record->whole) {
		uint64_t samples = RECORD_WINDOW_SAMPLES;

		while (record->count > samples * RECORD_WINDOWS_MAX)
			samples *= 2;
		if (record->window_samples != samples)
			windows_restart(record, samples);
		windows_add_raw(record, record->count);
	}
	while (record->halves > 0)
		join_pair(record);
	return (struct run_windows){
		.count = record->window_count - (record->window_left > 0),
		.samples = record->window_samples,
	};
}

const struct histogram *run_record_window(const struct run_record *record, uint32_t place) {
	must(place < record->window_count);
	return record->windows[record->order[place]];
}

uint32_t run_record_blocks(struct run_record *record, struct indicator_block *ret_blocks) {
	batch_distribute(record);
	if (record->whole) { // one block
		ret_blocks[0] = (struct indicator_block){record->raw, (uint32_t)record->count};
		return record->count > 0;
	}
	for (uint32_t n = 0; n < record->block_count; n++) {
		uint64_t place = record->block_order[n];

		ret_blocks[n].samples = &record->raw[place * RECORD_BLOCK_SAMPLES];
		ret_blocks[n].count = record->block_samples;
		if (n + 1 == record->block_count) // the last block may be incomplete
			ret_blocks[n].count -= record->block_left;
	}
	return record->block_count;
}

uint64_t run_record_block_start(const struct run_record *record, uint32_t place) {
	must(place < record->block_count);
	return record->block_start[place];
}

int run_record_sorted(struct run_record *record, struct run_sorted *ret_sorted) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t block_count = run_record_blocks(record, blocks);

	if (record->sorted == NULL)
		record->sorted = calloc((size_t)RECORD_RAW_MAX, sizeof(*record->sorted));
	if (record->sorted == NULL)
		return -ENOMEM;
	if (record->sorted_count == 0) {
		uint32_t count = 0;

		for (uint32_t n = 0; n < block_count; n++) {
			memcpy(&record->sorted[count], blocks[n].samples,
			       blocks[n].count * sizeof(*record->sorted));
			count += blocks[n].count;
		}
		qsort(record->sorted, count, sizeof(*record->sorted), samples_compare);
		record->sorted_count = count;
	}
	*ret_sorted = (struct run_sorted){record->sorted, record->sorted_count};
	return 0;
}

bool run_record_is_whole(const struct run_record *record) {
	return record->whole;
}

// Cut a completely stored run to evenly spread pieces with half of its samples.
static bool whole_run_cut(struct run_record *record, uint32_t samples_least) {
	uint64_t stride = (record->count + THIN_BLOCKS - 1) / THIN_BLOCKS, last;

	if (stride / 2 < samples_least || stride / 2 == 0)
		return false;
	run_record_windows(record); // must be done while all samples are still there
	record->block_count = (uint32_t)((record->count + stride - 1) / stride);
	record->block_samples = (uint32_t)(stride / 2);

	// Move the pieces to the storage of blocks, which is 2,048 samples per block. If the stride
	// is smaller than that, pieces move up, so the last one is moved first. Otherwise they move
	// down, and the first one is moved first.
	for (uint32_t n = 0; n < record->block_count; n++) {
		uint32_t place = stride < RECORD_BLOCK_SAMPLES ? record->block_count - 1 - n : n;

		record->block_start[place] = place * stride;
		record->block_order[place] = (uint16_t)place;
		memmove(&record->raw[(size_t)place * RECORD_BLOCK_SAMPLES],
			&record->raw[place * stride], record->block_samples * sizeof(*record->raw));
	}
	last = record->count - (record->block_count - 1) * stride;
	record->block_left =
		last < record->block_samples ? record->block_samples - (uint32_t)last : 0;
	record->whole = false;
	return true;
}

bool run_record_thin_blocks(struct run_record *record, uint32_t samples_least) {
	uint32_t samples = record->block_samples / 2, last;

	batch_distribute(record);
	record->sorted_count = 0;
	if (record->whole)
		return whole_run_cut(record, samples_least);
	if (record->block_count > THIN_BLOCKS) {
		// Select evenly spread blocks. The last block is never selected; only that one may
		// be shorter.
		for (uint32_t n = 0; n < THIN_BLOCKS; n++) {
			uint32_t from = n * record->block_count / THIN_BLOCKS;

			record->block_order[n] = record->block_order[from];
			record->block_start[n] = record->block_start[from];
		}
		record->block_count = THIN_BLOCKS;
		record->block_left = 0;
		return true;
	}
	if (samples < samples_least || samples == 0)
		return false;
	last = record->block_samples - record->block_left;
	record->block_samples = samples;
	record->block_left = last < samples ? samples - last : 0;
	return true;
}

bool run_record_thin_windows(struct run_record *record, uint32_t count_least) {
	struct run_windows windows = run_record_windows(record);

	if (record->whole || windows.count == 0 || windows.count / 2 < count_least)
		return false;
	// An odd window at the end is dropped.
	record->window_count = windows.count / 2 * 2;
	record->window_left = record->joined = 0;
	record->halves = record->window_count;
	record->window_samples *= 2;
	while (record->halves > 0)
		join_pair(record);
	return true;
}

bool run_record_coarsen_histogram(struct run_record *record, uint8_t bits_least) {
	uint8_t bits = run_record_precision_bits(record);
	struct histogram *coarse;

	batch_distribute(record);
	if (bits <= bits_least || bits <= RECORD_PRECISION_BITS_MIN ||
	    histogram_coarsen(record->all, bits - 1, &coarse) < 0)
		return false;
	histogram_destroy(record->all);
	record->all = coarse;
	return true;
}

uint8_t run_record_precision_bits(const struct run_record *record) {
	return histogram_shape(record->all)->precision_bits;
}

// Return true if sizes and positions of the stored data agree with each other.
static bool kept_is_consistent(const struct run_kept *kept) {
	uint32_t samples = kept->blocks[0].count;
	uint64_t end = 0;

	if (kept->block_count < 2 || kept->block_count > RECORD_BLOCKS_MAX ||
	    samples > RECORD_BLOCK_SAMPLES)
		return false;
	for (uint32_t n = 0; n < kept->block_count; n++) {
		const struct run_kept_block *block = &kept->blocks[n];
		bool last = n + 1 == kept->block_count;

		if (block->start < end || block->count > kept->count ||
		    block->start > kept->count - block->count)
			return false;
		if (last ? block->count > samples : block->count != samples)
			return false;
		end = block->start + block->count;
	}
	// A thinned run may have no windows.
	if (kept->window_count > 0 && (kept->window_count > RECORD_WINDOWS_MAX ||
				       kept->window_samples < RECORD_WINDOW_SAMPLES ||
				       kept->window_samples > kept->count / kept->window_count))
		return false;
	return kept->precision_bits >= RECORD_PRECISION_BITS_MIN &&
	       kept->precision_bits <= RECORD_PRECISION_BITS;
}

int run_record_restore(const struct run_kept *kept, struct run_record **ret_record) {
	struct run_record *record;
	int err;

	if (!kept_is_consistent(kept))
		return -EINVAL;
	err = run_record_create(&record);
	if (err < 0)
		return err;
	while (run_record_coarsen_histogram(record, kept->precision_bits))
		;
	record->count = kept->count;
	record->window_samples = kept->window_samples;
	record->window_count = kept->window_count;
	for (uint32_t n = 0; n < kept->block_count; n++) {
		memcpy(&record->raw[(size_t)n * RECORD_BLOCK_SAMPLES], kept->blocks[n].samples,
		       kept->blocks[n].count * sizeof(*record->raw));
		record->block_order[n] = (uint16_t)n;
		record->block_start[n] = kept->blocks[n].start;
	}
	record->block_count = kept->block_count;
	record->block_samples = kept->blocks[0].count;
	record->block_left = record->block_samples - kept->blocks[kept->block_count - 1].count;
	record->whole = false;
	err = kept->fill(kept->ctx, -1, kept->count, record->all);
	for (uint32_t n = 0; n < kept->window_count && err == 0; n++) {
		err = kept->fill(kept->ctx, (int32_t)n, kept->window_samples, record->windows[n]);
	}
	if (err < 0) {
		run_record_destroy(record);
		return err;
	}
	*ret_record = record;
	return 0;
}
