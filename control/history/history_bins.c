// SPDX-License-Identifier: BSD-3-Clause
// Counts probes in bins, and converts bins to their form on the disk.
#include <control/history_bins.h>

#include <string.h>

#define LOG2_MIN 8 // values below 256 ns share the first bin
#define SUB_BITS 2 // four bins per octave
#define PERMILLE 1000

static uint32_t bin_index(uint64_t value_ns) {
	uint32_t log2, bin;

	if (value_ns < UINT64_C(1) << LOG2_MIN)
		return 0;
	log2 = 63 - (uint32_t)__builtin_clzll(value_ns);
	bin = 1 + ((log2 - LOG2_MIN) << SUB_BITS) +
	      (uint32_t)(value_ns >> (log2 - SUB_BITS) & ((1U << SUB_BITS) - 1));
	return bin < HISTORY_BINS ? bin : HISTORY_BINS - 1;
}

// Return the middle of a bin.
static uint64_t bin_middle_ns(uint32_t bin) {
	uint32_t octave, sub;

	if (bin == 0)
		return UINT64_C(1) << (LOG2_MIN - 1);
	octave = (bin - 1) >> SUB_BITS;
	sub = (bin - 1) & ((1U << SUB_BITS) - 1);
	return (UINT64_C(2) * ((1U << SUB_BITS) + sub) + 1) << (octave + LOG2_MIN - SUB_BITS - 1);
}

static uint32_t saturated_sum(uint32_t a, uint32_t b) {
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

void history_bins_add(struct history_bins *bins, bool answered, uint64_t latency_ns) {
	uint32_t *count = &bins->counts[bin_index(latency_ns)];

	bins->sent = saturated_sum(bins->sent, 1);
	if (!answered)
		bins->lost = saturated_sum(bins->lost, 1);
	if (!answered || latency_ns == 0)
		return;
	*count = saturated_sum(*count, 1);
	if (bins->min_ns == 0 || latency_ns < bins->min_ns)
		bins->min_ns = latency_ns;
	if (latency_ns > bins->max_ns)
		bins->max_ns = latency_ns;
}

static void totals_merge(
	struct history_bins *into, uint32_t sent, uint32_t lost, uint64_t min_ns, uint64_t max_ns
) {
	into->sent = saturated_sum(into->sent, sent);
	into->lost = saturated_sum(into->lost, lost);
	if (min_ns != 0 && (into->min_ns == 0 || min_ns < into->min_ns))
		into->min_ns = min_ns;
	if (max_ns > into->max_ns)
		into->max_ns = max_ns;
}

void history_bins_merge(struct history_bins *into, const struct history_bins *from) {
	totals_merge(into, from->sent, from->lost, from->min_ns, from->max_ns);
	for (uint32_t n = 0; n < HISTORY_BINS; n++)
		into->counts[n] = saturated_sum(into->counts[n], from->counts[n]);
}

uint64_t history_bins_count(const struct history_bins *bins) {
	uint64_t count = 0;

	for (uint32_t n = 0; n < HISTORY_BINS; n++)
		count += bins->counts[n];
	return count;
}

uint64_t history_bins_percentile(const struct history_bins *bins, uint32_t permille) {
	uint64_t count = history_bins_count(bins), below = 0, value_ns = 0;
	uint64_t rank = (count * permille + PERMILLE - 1) / PERMILLE;

	if (count == 0)
		return 0;
	for (uint32_t n = 0; n < HISTORY_BINS; n++) {
		below += bins->counts[n];
		if (bins->counts[n] == 0 || below < rank)
			continue;
		value_ns = bin_middle_ns(n);
		break;
	}
	if (value_ns < bins->min_ns)
		return bins->min_ns;
	return value_ns > bins->max_ns ? bins->max_ns : value_ns;
}

// Bins with probes follow as pairs: the distance to the previous such bin, and the count.
void history_bins_put(struct wire_writer *writer, const struct history_bins *bins) {
	uint32_t used = 0, last = 0;

	for (uint32_t n = 0; n < HISTORY_BINS; n++)
		used += bins->counts[n] != 0;
	wire_put_varint(writer, bins->sent);
	wire_put_varint(writer, bins->lost);
	wire_put_varint(writer, used);
	if (used == 0)
		return;
	wire_put_varint(writer, bins->min_ns);
	wire_put_varint(writer, bins->max_ns - bins->min_ns);
	for (uint32_t n = 0; n < HISTORY_BINS; n++) {
		if (bins->counts[n] == 0)
			continue;
		wire_put_varint(writer, n - last);
		wire_put_varint(writer, bins->counts[n]);
		last = n;
	}
}

static uint32_t get_u32(struct wire_reader *reader) {
	uint64_t value = wire_get_varint(reader);

	if (value > UINT32_MAX)
		wire_reader_fail(reader, -EBADMSG);
	return (uint32_t)value;
}

void history_bins_get(struct wire_reader *reader, struct history_bins *into) {
	uint32_t sent = get_u32(reader), lost = get_u32(reader), used = get_u32(reader);
	uint32_t at[HISTORY_BINS], counts[HISTORY_BINS];
	uint64_t min_ns = 0, spread_ns = 0, place = 0;

	if (used > HISTORY_BINS || lost > sent)
		wire_reader_fail(reader, -EBADMSG);
	if (used > 0) {
		min_ns = wire_get_varint(reader);
		spread_ns = wire_get_varint(reader);
		if (min_ns == 0 || min_ns > INT64_MAX || spread_ns > INT64_MAX)
			wire_reader_fail(reader, -EBADMSG);
	}
	for (uint32_t n = 0; n < used && wire_reader_ok(reader); n++) {
		uint64_t step = wire_get_varint(reader);

		counts[n] = get_u32(reader);
		place += step < HISTORY_BINS ? step : HISTORY_BINS;
		if (place >= HISTORY_BINS || counts[n] == 0 || (n > 0 && step == 0))
			wire_reader_fail(reader, -EBADMSG);
		at[n] = (uint32_t)place;
	}
	if (!wire_reader_ok(reader))
		return;
	totals_merge(into, sent, lost, min_ns, min_ns + spread_ns);
	for (uint32_t n = 0; n < used; n++)
		into->counts[at[n]] = saturated_sum(into->counts[at[n]], counts[n]);
}
