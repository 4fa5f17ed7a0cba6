// SPDX-License-Identifier: BSD-3-Clause
// Autocovariances of bits and their sum.
#include "indicator.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WORD_BITS 64u
// Minimum length of a block in tau; in a shorter block noise may end the sum before the correlation
// does.
#define BLOCK_TAUS 2

struct bit_block {
	uint64_t *words;  // bits of the block, followed by a word of zeros
	uint32_t *before; // number of set bits before each word
	uint32_t count, word_count;
};

struct bit_blocks {
	struct bit_block *blocks;
	uint32_t count, longest;
	double share;
};

static int block_fill(struct bit_block *bits, const struct indicator_block *block, uint64_t bound) {
	uint32_t set = 0;

	bits->count = block->count;
	bits->word_count = (block->count + WORD_BITS - 1) / WORD_BITS;
	bits->words = calloc(bits->word_count + 1u, sizeof(*bits->words));
	bits->before = calloc(bits->word_count + 1u, sizeof(*bits->before));
	if (bits->words == NULL || bits->before == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < block->count; n++)
		bits->words[n / WORD_BITS] |= (uint64_t)(block->samples[n] <= bound)
					      << n % WORD_BITS;
	for (uint32_t n = 0; n <= bits->word_count; n++) {
		bits->before[n] = set;
		set += (uint32_t)__builtin_popcountll(bits->words[n]);
	}
	return 0;
}

// Return the number of set bits among the first `count`.
static uint32_t count_bits_before(const struct bit_block *bits, uint32_t count) {
	uint32_t word = count / WORD_BITS;
	uint64_t rest = bits->words[word] & ((1ULL << count % WORD_BITS) - 1);

	return bits->before[word] + (uint32_t)__builtin_popcountll(rest);
}

// Return the number of bit pairs at this distance that are both set.
static uint32_t pairs_count_set(const struct bit_block *bits, uint32_t lag) {
	uint32_t skip = lag / WORD_BITS, shift = lag % WORD_BITS;
	uint32_t pairs = 0;

	for (uint32_t n = 0; n + skip < bits->word_count; n++) {
		uint64_t later = bits->words[n + skip] >> shift;

		if (shift != 0)
			later |= bits->words[n + skip + 1] << (WORD_BITS - shift);
		pairs += (uint32_t)__builtin_popcountll(bits->words[n] & later);
	}
	return pairs;
}

// Return the pooled autocovariance at a lag below the length of the longest block.
static double lag_covariance(const struct bit_blocks *bits, uint32_t lag) {
	double sum = 0, pairs = 0;

	for (uint32_t n = 0; n < bits->count; n++) {
		const struct bit_block *block = &bits->blocks[n];
		uint32_t count, ends;

		if (block->count <= lag)
			continue;
		count = block->count - lag;
		ends = count_bits_before(block, count) + count_bits_before(block, block->count) -
		       count_bits_before(block, lag);
		sum += pairs_count_set(block, lag) - bits->share * ends +
		       count * bits->share * bits->share;
		pairs += count;
	}
	return sum / pairs;
}

static void sum_lags(const struct bit_blocks *bits, struct indicator_time *ret_time) {
	double variance = lag_covariance(bits, 0);
	double pair = variance, sum = 0;
	uint32_t lag;

	*ret_time = (struct indicator_time){.tau = 1, .resolved = 1};
	if (!(variance > 0))
		return;
	for (lag = 0; lag + 1 < bits->longest; lag += 2) {
		double next = lag_covariance(bits, lag) + lag_covariance(bits, lag + 1);

		if (next <= 0)
			break;
		pair = lag == 0 || next < pair ? next : pair;
		sum += pair;
	}
	ret_time->lags = lag;
	ret_time->tau = fmax(1, 2 * sum / variance - 1);
	ret_time->resolved =
		lag + 1 < bits->longest && ret_time->tau * BLOCK_TAUS <= (double)bits->longest;
}

int indicator_measure(
	const struct indicator_block *blocks,
	uint32_t block_count,
	uint64_t bound,
	double share,
	struct indicator_time *ret_time
) {
	struct bit_blocks bits = {.share = share};
	int err = 0;

	bits.blocks = calloc(block_count + 1u, sizeof(*bits.blocks));
	if (bits.blocks == NULL)
		return -ENOMEM;
	while (bits.count < block_count && err == 0) {
		const struct indicator_block *block = &blocks[bits.count];

		err = block_fill(&bits.blocks[bits.count++], block, bound);
		bits.longest = block->count > bits.longest ? block->count : bits.longest;
	}
	if (err == 0 && bits.longest < 2)
		err = -EINVAL;
	if (err == 0)
		sum_lags(&bits, ret_time);
	for (uint32_t n = 0; n < bits.count; n++) {
		free(bits.blocks[n].words);
		free(bits.blocks[n].before);
	}
	free(bits.blocks);
	return err;
}

// Counts of rare samples vary more; the number of bursts of such samples determines the extra
// error.
double indicator_measure_windows(
	const uint64_t *counts,
	uint32_t window_count,
	uint64_t samples,
	double tau,
	double *ret_error
) {
	double sum = 0, squares = 0, mean, share, rare;

	for (uint32_t n = 0; n < window_count; n++)
		sum += (double)counts[n];
	mean = sum / window_count;
	share = mean / (double)samples;
	rare = fmin(share, 1 - share) * (double)samples * window_count;
	if (rare < 1)
		return 0;
	for (uint32_t n = 0; n < window_count; n++)
		squares += ((double)counts[n] - mean) * ((double)counts[n] - mean);
	*ret_error = sqrt(2.0 / (window_count - 1) + tau / rare);
	return squares / (window_count - 1) / ((double)samples * share * (1 - share));
}
