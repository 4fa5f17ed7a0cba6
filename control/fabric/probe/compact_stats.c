// SPDX-License-Identifier: BSD-3-Clause
// Statistics of a path that is only visited, once per round.
#include "path_inside.h"

#include <lib/must.h>

#include <assert.h>
#include <string.h>

#define BUCKETS 42 // powers of two: 1 ns to 73 minutes
#define STATS_RECENT 16
#define SILENT_READS 2
#define VISIT_NS (5 * RAS_NS_PER_SEC) // reads further apart belong to two visits
#define PERMILLE_99 990

struct compact_stats {
	uint64_t last_answer_ns, last_probe_ns; // RAS_NEVER: none
	uint64_t since_ns;			// since when the kind is this one
	// Pulse counter during one visit.
	uint64_t incarnation, beats; // incarnation 0: no head read yet
	uint64_t read_ns;	     // last sound read
	uint64_t advanced_ns;	     // last advance seen, RAS_NEVER: none
	uint32_t sent[PATH_SIZES], lost[PATH_SIZES];
	uint32_t recent[STATS_RECENT]; // ns, of the small size, saturated at 4.2 s
	uint32_t min_ns;
	uint32_t recent_count;	   // exceeds the size of the ring once it is full
	uint16_t buckets[BUCKETS]; // small size; all are halved when one is full
	uint8_t unanswered;	   // consecutive reads, at most SILENT_READS
	uint8_t kind;
	uint8_t passed; // bit per size whose last probe in this visit was answered
	// Since the last answer. broken: a larger probe was lost, so later probes may be lost with
	// the pair. small_lost: a small read was lost while the pair was not broken.
	bool broken, small_lost;
};
static_assert(sizeof(struct compact_stats) <= 256, "ten thousand of them are 2.5 MB");

size_t compact_stats_bytes(void) {
	return sizeof(struct compact_stats);
}

void compact_stats_init(struct compact_stats *stats) {
	memset(stats, 0, sizeof(*stats));
	stats->last_answer_ns = stats->last_probe_ns = stats->advanced_ns = RAS_NEVER;
	stats->kind = OBSERVATION_NO_PAIR;
}

static void record_latency(struct compact_stats *stats, uint64_t latency_ns) {
	uint32_t log2 = latency_ns > 0 ? 63 - (uint32_t)__builtin_clzll(latency_ns) : 0;
	uint16_t *bucket = &stats->buckets[log2 < BUCKETS ? log2 : BUCKETS - 1];
	uint32_t value = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX;

	if (*bucket == UINT16_MAX) {
		for (uint32_t n = 0; n < BUCKETS; n++)
			stats->buckets[n] /= 2;
	}
	(*bucket)++;
	if (stats->recent_count == 0 || value < stats->min_ns)
		stats->min_ns = value;
	stats->recent[stats->recent_count % STATS_RECENT] = value;
	// The ring stays full while its position advances.
	stats->recent_count++;
	if (stats->recent_count == 2 * STATS_RECENT)
		stats->recent_count = STATS_RECENT;
}

static void set_kind(struct compact_stats *stats, enum observation_kind kind, uint64_t now_ns) {
	if (stats->kind != kind)
		stats->since_ns = now_ns;
	stats->kind = (uint8_t)kind;
}

// Return whether the counter advanced between two reads of this visit. One read proves nothing: a
// paused agent's page looks the same.
static bool record_pulse(struct compact_stats *stats, const struct path_probe *probe) {
	uint64_t incarnation = probe->incarnation;
	bool same, advances;

	if (probe->beats == 0)
		return false;
	same = stats->incarnation != 0 && probe->at_ns - stats->read_ns < VISIT_NS;
	if (incarnation == 0)
		incarnation = same ? stats->incarnation : 0;
	same = same && incarnation == stats->incarnation;
	advances = same && probe->beats > stats->beats;
	stats->incarnation = incarnation;
	stats->beats = probe->beats;
	stats->read_ns = probe->at_ns;
	if (advances)
		stats->advanced_ns = probe->at_ns;
	return advances;
}

void compact_stats_opened(struct compact_stats *stats) {
	stats->broken = false;
}

void compact_stats_add(struct compact_stats *stats, const struct path_probe *probe) {
	bool is_advanced;
	uint8_t bit;

	must(probe->size < PATH_SIZES);
	bit = (uint8_t)(1U << probe->size);
	if (stats->last_probe_ns == RAS_NEVER || probe->at_ns - stats->last_probe_ns >= VISIT_NS)
		stats->passed = 0;
	if (probe->answered)
		stats->passed |= bit;
	else
		stats->passed &= (uint8_t)~bit;
	stats->sent[probe->size] += stats->sent[probe->size] < UINT32_MAX;
	stats->last_probe_ns = probe->at_ns;

	// A path that loses only large probes is not silent. Silence needs a small read that was
	// lost on a sound pair.
	if (!probe->answered) {
		stats->lost[probe->size] += stats->lost[probe->size] < UINT32_MAX;
		if (probe->size > 0)
			stats->broken = true;
		if (!probe->is_read)
			return;
		stats->small_lost = stats->small_lost || (probe->size == 0 && !stats->broken);
		if (stats->unanswered < SILENT_READS)
			stats->unanswered++;
		if (stats->unanswered == SILENT_READS && stats->small_lost)
			set_kind(stats, OBSERVATION_SILENT, probe->at_ns);
		return;
	}

	stats->last_answer_ns = probe->at_ns;
	stats->broken = false;
	if (!probe->is_read)
		return;
	stats->unanswered = 0;
	stats->small_lost = false;
	if (probe->size == 0)
		record_latency(stats, probe->latency_ns);
	// Visits are too rare to see a counter stand. An advance in an earlier visit is outdated.
	if (record_pulse(stats, probe)) {
		set_kind(stats, OBSERVATION_GOOD, probe->at_ns);
		return;
	}
	is_advanced =
		stats->advanced_ns != RAS_NEVER && probe->at_ns - stats->advanced_ns < VISIT_NS;
	if (stats->kind == OBSERVATION_SILENT || !is_advanced)
		set_kind(stats, OBSERVATION_NO_PAIR, probe->at_ns);
}

// Return the middle of the percentile's bucket.
static uint64_t stats_percentile(const struct compact_stats *stats, uint32_t permille) {
	uint64_t total = 0, below = 0, rank;

	for (uint32_t n = 0; n < BUCKETS; n++)
		total += stats->buckets[n];
	rank = (total * permille + 999) / 1000;
	for (uint32_t n = 0; n < BUCKETS; n++) {
		below += stats->buckets[n];
		if (total > 0 && below >= rank)
			return (UINT64_C(3) << n) / 2;
	}
	return 0;
}

void compact_stats_summary(const struct compact_stats *stats, struct path_summary *ret_summary) {
	uint32_t count = stats->recent_count < STATS_RECENT ? stats->recent_count : STATS_RECENT;
	uint64_t sorted[STATS_RECENT];
	struct path_summary summary = {
		.last_answer_ns = stats->last_answer_ns,
		.last_probe_ns = stats->last_probe_ns,
		.advanced_ns = stats->advanced_ns,
		.kind = (enum observation_kind)stats->kind,
		.since_ns = stats->since_ns,
		.turned_ns =
			stats->kind == OBSERVATION_SILENT ? stats->last_probe_ns : stats->since_ns,
		.lost_size_index = PATH_SIZES,
		.unproven_size_index = PATH_SIZES,
	};

	for (uint32_t n = PATH_SIZES; n-- > 0;) {
		summary.size_sent[n] = stats->sent[n];
		summary.size_lost[n] = stats->lost[n];
		summary.count += stats->sent[n];
		summary.lost += stats->lost[n];
		if ((stats->passed & 1U << n) == 0)
			summary.unproven_size_index = n;
		if (stats->lost[n] == 0)
			continue;
		summary.lost_size_index = n;
		summary.lost_permille =
			(uint32_t)((uint64_t)stats->lost[n] * 1000 / stats->sent[n]);
	}
	if (count > 0) {
		for (uint32_t n = 0; n < count; n++)
			sorted[n] = stats->recent[n];
		path_sort(sorted, count);
		summary.min_ns = stats->min_ns;
		summary.median_ns = path_median(sorted, count);
		summary.p99_ns = stats_percentile(stats, PERMILLE_99);
		// A bucket is wide, so its middle may lie below the median.
		if (summary.p99_ns < summary.median_ns)
			summary.p99_ns = summary.median_ns;
		summary.mad_ns = path_mad(sorted, count, summary.median_ns);
	}
	*ret_summary = summary;
}
