// SPDX-License-Identifier: BSD-3-Clause
// Bins: a small histogram of the probes of one path during one period of the history. Pure
// functions.
//
// The bins are log-linear with four bins per octave, from 256 ns to 1.07 s. So a percentile is
// exact within 12.5 %. Least and largest latency are kept as they were measured. On the disk, bins
// without a probe take no room: a quiet path needs 20 to 30 bytes.
#pragma once

#include <lib/wire.h>

#include <stdbool.h>
#include <stdint.h>

#define HISTORY_BINS 90

struct history_bins {
	uint32_t sent, lost;	       // probes of all sizes
	uint64_t min_ns, max_ns;       // of the counted latencies; 0: none
	uint32_t counts[HISTORY_BINS]; // latencies of reads of the smallest size
};

// Count a probe. latency_ns is 0 for a probe without a latency to count.
void history_bins_add(struct history_bins *bins, bool answered, uint64_t latency_ns);
// Add all probes of `from`. Counts saturate.
void history_bins_merge(struct history_bins *into, const struct history_bins *from);
// Return the number of latencies.
uint64_t history_bins_count(const struct history_bins *bins);
// Return the latency that `permille` of the latencies do not exceed, within 12.5 %; 0 without any.
uint64_t history_bins_percentile(const struct history_bins *bins, uint32_t permille);

void history_bins_put(struct wire_writer *writer, const struct history_bins *bins);
// Read bins and add them to `into`. If they contradict themselves, the reader fails with -EBADMSG
// and `into` is unchanged.
void history_bins_get(struct wire_reader *reader, struct history_bins *into);
