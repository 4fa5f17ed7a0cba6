// SPDX-License-Identifier: BSD-3-Clause
// Counts the observers with bad and good reads of a node, and decides whether they suffice for
// blame.
//
// A port is bad when enough observers read it badly, on different hosts if possible, and no
// observer reads it well. A good read excuses the port unless it is older than the bad ones by more
// than the time to turn bad. An observer on the subject's own host reads it without the fabric,
// which excuses nothing.
#include "tally.h"

#include <string.h>

static void tally_add_bad(
	const struct verdict_engine *engine, const struct evidence *evidence, struct tally *tally
) {
	const struct member_row *observer = evidence_observer_row(engine, evidence);
	uint32_t host = observer != NULL ? observer->host : NAMES_NONE;
	uint32_t n;

	if (evidence->since_ns > tally->bad_since_ns || tally->bad_count == 0)
		tally->bad_since_ns = evidence->since_ns;
	if (tally->bad_count == 0)
		tally->in_process = true;
	if (evidence->observation.responder != OBSERVATION_RESPONDER_IN_PROCESS)
		tally->in_process = false;
	if (tally->example == NULL || evidence->seen_ns > tally->example->seen_ns ||
	    (evidence->seen_ns == tally->example->seen_ns &&
	     evidence->observation.observer < tally->example->observation.observer))
		tally->example = evidence;
	for (n = 0; n < tally->bad_count; n++) {
		if (tally->bad[n] != evidence->observation.observer)
			continue;
		if (evidence->since_ns < tally->bad_since[n])
			tally->bad_since[n] = evidence->since_ns;
		return;
	}
	tally->bad_since[n] = evidence->since_ns;
	tally->bad[tally->bad_count++] = evidence->observation.observer;
	for (n = 0; host != NAMES_NONE && n < tally->host_count; n++) {
		if (tally->bad_hosts[n] == host)
			return;
	}
	tally->bad_hosts[tally->host_count++] = host;
}

static void tally_add_good(const struct evidence *evidence, struct tally *tally) {
	uint32_t at = 0;

	if (evidence->seen_ns > tally->good_ns)
		tally->good_ns = evidence->seen_ns;
	while (at < tally->good_count && tally->good[at] != evidence->observation.observer)
		at++;
	if (at == tally->good_count) {
		tally->good[tally->good_count++] = evidence->observation.observer;
		tally->good_at[at] = 0;
		tally->good_first[at] = evidence->first_ns;
	}
	if (evidence->first_ns < tally->good_first[at])
		tally->good_first[at] = evidence->first_ns;
	if (evidence->seen_ns > tally->good_at[at])
		tally->good_at[at] = evidence->seen_ns;
}

void tally_fill(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port,
	struct tally *ret_tally
) {
	memset(ret_tally, 0, sizeof(*ret_tally));
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (port != NULL && strcmp(evidence->observation.peer_device, port) != 0)
			continue;
		if (!triangulate_counts(engine, evidence))
			continue;
		if (evidence->seen_ns > ret_tally->newest_ns)
			ret_tally->newest_ns = evidence->seen_ns;
		if (evidence->observation.kind == kind &&
		    evidence_is_explained(engine, subject, evidence))
			continue;
		if (evidence->observation.kind == kind)
			tally_add_bad(engine, evidence, ret_tally);
		else if (evidence_contradicts_blame(engine, subject, evidence, kind))
			tally_add_good(evidence, ret_tally);
	}
}

// Return when enough observers for blame had turned bad, and more than half of all bad ones. Later
// observers, with a new overlay link to the node, must not make earlier good reads look outdated.
// Otherwise each observer with good reads would have to answer again at once.
static uint64_t tally_turned_ns(const struct tally *tally, uint32_t need) {
	uint32_t most = tally->bad_count / 2 + 1;
	uint32_t wanted = most > need ? most : need;

	for (uint32_t n = 0; n < tally->bad_count; n++) {
		uint32_t earlier = 0;
		uint32_t same = 0;

		for (uint32_t m = 0; m < tally->bad_count; m++) {
			earlier += tally->bad_since[m] < tally->bad_since[n];
			same += tally->bad_since[m] == tally->bad_since[n];
		}
		if (earlier < wanted && wanted <= earlier + same)
			return tally->bad_since[n];
	}
	return tally->bad_since_ns;
}

// Return whether a good read counts against bad reads that are judged over windows. An observer
// with a new overlay link began to read after the fault was known. Its windows do not show the
// fault yet, so it calls the path good. Earlier observers have answered by then.
static bool good_read_is_valid(const struct tally *tally, uint32_t n, uint64_t turned_ns) {
	bool came_late = tally->good_first[n] > turned_ns + GOOD_WINDOW_VALID_NS;

	if (came_late && tally->good_at[n] < tally->good_first[n] + GOOD_WINDOW_VALID_NS)
		return false;
	return tally->good_at[n] + GOOD_WINDOW_VALID_NS >= tally->bad_since_ns;
}

bool tally_is_enough_for_blame(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const struct tally *tally
) {
	uint32_t need = triangulate_observers_needed(engine, subject);
	uint64_t turned_ns;
	uint32_t good = 0;

	if (tally->bad_count < need)
		return false;
	// Two agents on one host count as one observer, if there are three hosts to choose from.
	if (need > 1 && tally->host_count < 2 && engine->members.hosts_alive > 2)
		return false;
	if (kind == OBSERVATION_SILENT || kind == OBSERVATION_STANDING)
		return tally->good_ns == 0 ||
		       tally->good_ns + GOOD_READ_VALID_NS < tally_turned_ns(tally, need);
	// Degraded and lossy are judged over windows, so observers do not notice at the same time.
	// A new path has no baseline yet. Two thirds of the observers are enough.
	turned_ns = tally_turned_ns(tally, need);
	for (uint32_t n = 0; n < tally->good_count; n++)
		good += good_read_is_valid(tally, n, turned_ns);
	return 2 * good <= tally->bad_count;
}

bool triangulate_blames_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
) {
	struct tally tally;

	tally_fill(engine, subject, kind, port, &tally);
	return tally_is_enough_for_blame(engine, subject, kind, &tally);
}
