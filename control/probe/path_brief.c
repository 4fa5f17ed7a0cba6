// SPDX-License-Identifier: BSD-3-Clause
// A path that is looked at in turn, once in the time of a whole round.
#include "path_inside.h"

#include <lib/must.h>

#include <assert.h>
#include <string.h>

#define BUCKETS 42 // octaves: 1 ns to 73 minutes
#define BRIEF_RECENT 16
#define SILENT_READS 2
#define VISIT_NS (5 * RAS_NS_PER_SEC) // reads that lie further apart are of two visits
#define PERMILLE_99 990

struct path_brief {
	uint64_t last_answer_ns, last_probe_ns; // RAS_NEVER: none
	uint64_t since_ns;			// of the kind
	// What the reads of one visit told of the counter.
	uint64_t incarnation, beats; // 0: no head was seen yet
	uint64_t read_ns;	     // the last sound read
	uint64_t advanced_ns;	     // it was seen to advance, RAS_NEVER: never
	uint32_t sent[PATH_SIZES], lost[PATH_SIZES];
	uint32_t recent[BRIEF_RECENT]; // of the small size, at most 4.2 s
	uint32_t min_ns;
	uint32_t recent_count;	   // more than there are places, once it is full
	uint16_t buckets[BUCKETS]; // of the small size; all are halved when one is full
	uint8_t unanswered;	   // reads in a row, at most SILENT_READS
	uint8_t kind;
	uint8_t passed; // a bit for each size of this visit of which the last one was answered
	// Since the last answer: a larger one was lost over this pair, and what is lost after it
	// may be lost with the pair; and a small read was lost that was not.
	bool broken, small_lost;
};
static_assert(sizeof(struct path_brief) <= 256, "ten thousand of them are 2.5 MB");

size_t path_brief_bytes(void) {
	return sizeof(struct path_brief);
}

void path_brief_init(struct path_brief *brief) {
	memset(brief, 0, sizeof(*brief));
	brief->last_answer_ns = brief->last_probe_ns = brief->advanced_ns = RAS_NEVER;
	brief->kind = SIGHT_NO_PAIR;
}

static uint32_t bucket_of(uint64_t latency_ns) {
	uint32_t bucket = latency_ns > 0 ? 63 - (uint32_t)__builtin_clzll(latency_ns) : 0;

	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static void note_latency(struct path_brief *brief, uint64_t latency_ns) {
	uint16_t *bucket = &brief->buckets[bucket_of(latency_ns)];
	uint32_t value = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX;

	if (*bucket == UINT16_MAX) {
		for (uint32_t n = 0; n < BUCKETS; n++)
			brief->buckets[n] /= 2;
	}
	(*bucket)++;
	if (brief->recent_count == 0 || value < brief->min_ns)
		brief->min_ns = value;
	brief->recent[brief->recent_count % BRIEF_RECENT] = value;
	// Stays full, and the place goes on.
	brief->recent_count++;
	if (brief->recent_count == 2 * BRIEF_RECENT)
		brief->recent_count = BRIEF_RECENT;
}

static void set_kind(struct path_brief *brief, enum sight_kind kind, uint64_t now_ns) {
	if (brief->kind != kind)
		brief->since_ns = now_ns;
	brief->kind = (uint8_t)kind;
}

// Whether the counter went on between two reads of this visit. A head alone proves nothing: one of
// an agent that stands looks the same.
static bool note_pulse(struct path_brief *brief, const struct path_probe *probe) {
	uint64_t incarnation = probe->incarnation;
	bool same, advances;

	if (probe->beats == 0)
		return false;
	same = brief->incarnation != 0 && probe->at_ns - brief->read_ns < VISIT_NS;
	if (incarnation == 0)
		incarnation = same ? brief->incarnation : 0;
	same = same && incarnation == brief->incarnation;
	advances = same && probe->beats > brief->beats;
	brief->incarnation = incarnation;
	brief->beats = probe->beats;
	brief->read_ns = probe->at_ns;
	if (advances)
		brief->advanced_ns = probe->at_ns;
	return advances;
}

static bool was_seen_to_advance(const struct path_brief *brief, uint64_t now_ns) {
	return brief->advanced_ns != RAS_NEVER && now_ns - brief->advanced_ns < VISIT_NS;
}

static void note_passed(struct path_brief *brief, const struct path_probe *probe) {
	uint8_t bit = (uint8_t)(1U << probe->size);

	if (brief->last_probe_ns == RAS_NEVER || probe->at_ns - brief->last_probe_ns >= VISIT_NS)
		brief->passed = 0;
	if (probe->answered)
		brief->passed |= bit;
	else
		brief->passed &= (uint8_t)~bit;
}

// A path that loses what is large alone is not silent: that takes a small read that was lost by
// itself.
static void note_lost(struct path_brief *brief, const struct path_probe *probe) {
	brief->lost[probe->size] += brief->lost[probe->size] < UINT32_MAX;
	if (probe->size > 0)
		brief->broken = true;
	if (!probe->is_read)
		return;
	brief->small_lost = brief->small_lost || (probe->size == 0 && !brief->broken);
	if (brief->unanswered < SILENT_READS)
		brief->unanswered++;
	if (brief->unanswered == SILENT_READS && brief->small_lost)
		set_kind(brief, SIGHT_SILENT, probe->at_ns);
}

void path_brief_opened(struct path_brief *brief) {
	brief->broken = false;
}

void path_brief_add(struct path_brief *brief, const struct path_probe *probe) {
	must(probe->size < PATH_SIZES);
	note_passed(brief, probe);
	brief->sent[probe->size] += brief->sent[probe->size] < UINT32_MAX;
	brief->last_probe_ns = probe->at_ns;
	if (!probe->answered) {
		note_lost(brief, probe);
		return;
	}
	brief->last_answer_ns = probe->at_ns;
	brief->broken = false;
	if (!probe->is_read)
		return;
	brief->unanswered = 0;
	brief->small_lost = false;
	if (probe->size == 0)
		note_latency(brief, probe->latency_ns);
	// Too seldom to see a counter stand; that one advanced in the visit before is of the past.
	if (note_pulse(brief, probe))
		set_kind(brief, SIGHT_GOOD, probe->at_ns);
	else if (brief->kind == SIGHT_SILENT || !was_seen_to_advance(brief, probe->at_ns))
		set_kind(brief, SIGHT_NO_PAIR, probe->at_ns);
}

// The middle of the bucket in which it lies.
static uint64_t brief_percentile(const struct path_brief *brief, uint32_t permille) {
	uint64_t total = 0, below = 0, rank;

	for (uint32_t n = 0; n < BUCKETS; n++)
		total += brief->buckets[n];
	rank = (total * permille + 999) / 1000;
	for (uint32_t n = 0; n < BUCKETS; n++) {
		below += brief->buckets[n];
		if (total > 0 && below >= rank)
			return (UINT64_C(3) << n) / 2;
	}
	return 0;
}

static void add_times(const struct path_brief *brief, struct path_summary *summary) {
	uint32_t count = brief->recent_count < BRIEF_RECENT ? brief->recent_count : BRIEF_RECENT;
	uint64_t sorted[BRIEF_RECENT];

	if (count == 0)
		return;
	for (uint32_t n = 0; n < count; n++)
		sorted[n] = brief->recent[n];
	path_sort(sorted, count);
	summary->min_ns = brief->min_ns;
	summary->median_ns = path_median(sorted, count);
	summary->p99_ns = brief_percentile(brief, PERMILLE_99);
	// A bucket is wide.
	if (summary->p99_ns < summary->median_ns)
		summary->p99_ns = summary->median_ns;
	summary->mad_ns = path_mad(sorted, count, summary->median_ns);
}

void path_brief_summary(const struct path_brief *brief, struct path_summary *ret_summary) {
	struct path_summary summary = {
		.last_answer_ns = brief->last_answer_ns,
		.last_probe_ns = brief->last_probe_ns,
		.advanced_ns = brief->advanced_ns,
		.kind = (enum sight_kind)brief->kind,
		.since_ns = brief->since_ns,
		.turned_ns = brief->kind == SIGHT_SILENT ? brief->last_probe_ns : brief->since_ns,
		.lost_bytes_place = PATH_SIZES,
		.unproven_place = PATH_SIZES,
	};

	for (uint32_t n = PATH_SIZES; n-- > 0;) {
		summary.size_sent[n] = brief->sent[n];
		summary.size_lost[n] = brief->lost[n];
		summary.count += brief->sent[n];
		summary.lost += brief->lost[n];
		if ((brief->passed & 1U << n) == 0)
			summary.unproven_place = n;
		if (brief->lost[n] == 0)
			continue;
		summary.lost_bytes_place = n;
		summary.lost_permille =
			(uint32_t)((uint64_t)brief->lost[n] * 1000 / brief->sent[n]);
	}
	add_times(brief, &summary);
	*ret_summary = summary;
}
