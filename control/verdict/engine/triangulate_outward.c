// SPDX-License-Identifier: BSD-3-Clause
// Blame by a node's own reads: the node cannot read peers that others read, and no observer reads
// the node.
#include "tally.h"

// Return whether others read the subject while this observer does not. Only reads from the first to
// the latest bad one count, since both nodes may have been repaired later.
static bool subject_is_read_by_others(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *bad
) {
	uint32_t host = subject_peer(engine, subject)->host;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (evidence->observation.observer != bad->observation.observer &&
		    observation_kind_excuses(evidence->observation.kind, bad->observation.kind) &&
		    !observation_is_blind_to_loss(
			    &evidence->observation, bad->observation.kind,
			    bad->observation.lost_bytes
		    ) &&
		    triangulate_counts(engine, evidence) &&
		    !evidence_observer_is_on_host(engine, evidence, host) &&
		    evidence->seen_ns >= bad->since_ns &&
		    evidence->seen_ns <= bad->seen_ns + GOOD_READ_VALID_NS)
			return true;
	}
	return false;
}

// Summary of one node's reads of the others, for one kind of bad read.
struct outward {
	uint32_t bad_elsewhere_good;
	uint64_t bad_since_ns;
	// Lossy: largest size that passed somewhere, and the largest of the smallest lost sizes.
	// Other kinds: a good read sets `passes` to the maximum, and `lost` stays 0.
	uint32_t passes, lost;
	const struct evidence *example;
};

static void outward_add_sizes(
	const struct verdict_engine *engine,
	const struct subject *other,
	enum observation_kind kind,
	uint64_t observer,
	struct outward *outward
) {
	uint32_t host = subject_peer(engine, other)->host;

	for (uint32_t n = 0; n < other->observation_count; n++) {
		const struct evidence *evidence = &other->observations[n];
		const struct observation *seen = &evidence->observation;
		uint32_t passes = UINT32_MAX;

		if (seen->observer != observer || !triangulate_counts(engine, evidence))
			continue;
		if (seen->kind == kind) {
			if (kind == OBSERVATION_LOSSY && seen->lost_bytes > outward->lost)
				outward->lost = seen->lost_bytes;
			continue;
		}
		if (!evidence_excuses_from_other_host(engine, evidence, kind, host))
			continue;
		if (kind == OBSERVATION_LOSSY && seen->lost_bytes != 0)
			passes = seen->lost_bytes;
		if (passes > outward->passes)
			outward->passes = passes;
	}
}

static void outward_add_bad(
	const struct verdict_engine *engine,
	const struct subject *other,
	enum observation_kind kind,
	uint64_t observer,
	struct outward *outward
) {
	bool counted = false;

	// The other end itself is lossy or slow.
	if (observation_kind_uses_windows(kind) &&
	    member_is_lossy_or_slow(subject_peer(engine, other)))
		return;
	for (uint32_t n = 0; n < other->observation_count; n++) {
		const struct evidence *evidence = &other->observations[n];

		if (evidence->observation.observer != observer ||
		    !triangulate_counts(engine, evidence))
			continue;
		if (evidence->observation.kind != kind || counted ||
		    !subject_is_read_by_others(engine, other, evidence))
			continue;
		counted = true;
		outward->bad_elsewhere_good++;
		if (evidence->since_ns > outward->bad_since_ns)
			outward->bad_since_ns = evidence->since_ns;
		if (outward->example == NULL ||
		    evidence->observation.subject < outward->example->observation.subject)
			outward->example = evidence;
	}
}

// Return the n-th subject of this observer.
static bool observer_subject_nth(
	const struct verdict_engine *engine,
	uint32_t row,
	uint32_t n,
	const struct subject **ret_told
) {
	const struct observer_index *list = engine->members.rows[row].told;

	if (list == NULL || n >= list->count)
		return false;
	*ret_told = engine->members.rows[list->rows[n]].subject;
	return true;
}

bool triangulate_outward(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	uint64_t self = subject_peer(engine, subject)->id;
	// Slowness is judged over windows, so a quick read stays valid for as long as a window.
	uint64_t valid_ns =
		kind == OBSERVATION_DEGRADED ? GOOD_WINDOW_VALID_NS : GOOD_READ_VALID_NS;
	struct outward outward = {0};
	const struct subject *other;
	struct tally tally;

	if (subject->tells[kind] < 2)
		return false;
	// Most nodes read some peer well. Then it does not matter who else reads the other peers.
	for (uint32_t n = 0; observer_subject_nth(engine, subject->peer, n, &other); n++) {
		outward_add_sizes(engine, other, kind, self, &outward);
		look->walked++;
		if (kind != OBSERVATION_LOSSY && outward.passes > outward.lost)
			return false;
	}
	if (outward.passes > outward.lost)
		return false;
	for (uint32_t n = 0; observer_subject_nth(engine, subject->peer, n, &other); n++) {
		outward_add_bad(engine, other, kind, self, &outward);
		look->walked++;
	}
	tally_fill(engine, subject, kind, NULL, &tally);
	if (outward.bad_elsewhere_good < 2 ||
	    (tally.good_ns != 0 && tally.good_ns + valid_ns >= outward.bad_since_ns))
		return false;
	// Two slow paths of many may be due to their other ends. A node publishes no good read
	// until another agent asks for one, so the paths that it does not report count as quick.
	if (kind == OBSERVATION_DEGRADED && 3 * outward.bad_elsewhere_good < 2 * look->reader_count)
		return false;
	look->fabric = fabric;
	look->bad = look->bad_host_count = outward.bad_elsewhere_good;
	look->bad_ns = outward.bad_since_ns;
	look->in_process = false;
	look->alone = true;
	look->example = &outward.example->observation;
	look->observer_count = 1;
	look->observers[0] = self;
	return true;
}

uint32_t triangulate_accused_count(
	const struct verdict_engine *engine, uint64_t observer, uint64_t *ret_since_ns
) {
	uint32_t row = members_find(&engine->members, observer);
	const struct subject *other;
	uint64_t since_ns = 0;
	uint32_t accused = 0;

	for (uint32_t n = 0; row != MEMBERS_NONE && observer_subject_nth(engine, row, n, &other);
	     n++) {
		bool silent = false;

		if (other->held.verdict > VERDICT_HEALTHY ||
		    subject_peer(engine, other)->state != RAS_ALIVE)
			continue;
		for (uint32_t m = 0; m < other->observation_count; m++) {
			const struct evidence *evidence = &other->observations[m];

			if (evidence->observation.observer != observer ||
			    evidence->observation.kind != OBSERVATION_SILENT)
				continue;
			silent = true;
			if (evidence->since_ns > since_ns)
				since_ns = evidence->since_ns;
		}
		accused += silent;
	}
	*ret_since_ns = since_ns;
	return accused;
}
