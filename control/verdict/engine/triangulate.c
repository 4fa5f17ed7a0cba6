// SPDX-License-Identifier: BSD-3-Clause
// Triangulation: decides whether one port of a node, the whole node, or nothing is to blame for bad
// reads.
//
// tally.c blames a node by others' reads of it, triangulate_outward.c by its own reads of others.
#include "tally.h"

#include <string.h>

// Return whether this is the first observation of its port.
static bool observation_is_first_of_port(const struct subject *subject, uint32_t at) {
	for (uint32_t n = 0; n < at; n++) {
		if (strcmp(subject->observations[n].observation.peer_device,
			   subject->observations[at].observation.peer_device) == 0)
			return false;
	}
	return true;
}

// Return whether an observer on another host reads a port other than this one.
static bool other_port_is_read(
	const struct verdict_engine *engine, const struct subject *subject, const char *port
) {
	uint32_t host = subject_peer(engine, subject)->host;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];

		if (observation_kind_excuses(evidence->observation.kind, OBSERVATION_SILENT) &&
		    strcmp(evidence->observation.peer_device, port) != 0 &&
		    triangulate_counts(engine, evidence) &&
		    !evidence_observer_is_on_host(engine, evidence, host))
			return true;
	}
	return false;
}

// Return whether others read this observer badly, and no observer reads it well.
static bool observer_is_badly_seen(const struct verdict_engine *engine, uint64_t observer) {
	const struct subject *subject = subject_find(engine, observer);

	return subject != NULL &&
	       (triangulate_blames_port(engine, subject, OBSERVATION_SILENT, NULL) ||
		triangulate_blames_port(engine, subject, OBSERVATION_STANDING, NULL));
}

bool triangulate_is_doubtful(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look
) {
	uint32_t need = triangulate_observers_needed(engine, subject), sound = 0;
	struct tally tally;

	if (look->alone)
		return true;
	tally_fill(engine, subject, look->kind, look->port, &tally);
	// Readers that found the node quick before but sent no recent observation may still
	// contradict.
	if (look->kind == OBSERVATION_DEGRADED && 2 * tally.good_count > tally.bad_count)
		return true;
	for (uint32_t n = 0; n < tally.bad_count && sound < need; n++)
		sound += !observer_is_badly_seen(engine, tally.bad[n]);
	return sound < need;
}

static void fabric_look_fill(
	const struct verdict_engine *engine,
	const struct tally *tally,
	enum fabric fabric,
	struct fabric_look *look
) {
	look->fabric = fabric;
	look->bad = tally->bad_count;
	look->bad_host_count =
		engine->members.hosts_alive > 1 ? tally->host_count : tally->bad_count;
	look->bad_ns = tally->bad_since_ns;
	look->in_process = tally->in_process;
	look->example = &tally->example->observation;
	look->observer_count = 0;
	for (uint32_t n = 0; n < tally->bad_count && n < VERDICT_OBSERVERS_MAX; n++)
		look->observers[look->observer_count++] = tally->bad[n];
}

static bool subject_has_kind(const struct subject *subject, enum observation_kind kind) {
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		if (subject->observations[n].observation.kind == kind)
			return true;
	}
	return false;
}

static bool fabric_look_by_kind(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	struct tally tally;

	if (!subject_has_kind(subject, kind))
		return false;
	tally_fill(engine, subject, kind, NULL, &tally);
	if (!tally_is_enough_for_blame(engine, subject, kind, &tally))
		return false;
	fabric_look_fill(engine, &tally, fabric, look);
	look->kind = kind;
	return true;
}

static bool fabric_look_by_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
) {
	if (!subject_has_kind(subject, kind))
		return false;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const char *port = subject->observations[n].observation.peer_device;
		struct tally tally;

		if (port[0] == '\0' || !observation_is_first_of_port(subject, n))
			continue;
		tally_fill(engine, subject, kind, port, &tally);
		if (!tally_is_enough_for_blame(engine, subject, kind, &tally))
			continue;
		fabric_look_fill(engine, &tally, fabric, look);
		look->kind = kind;
		look->port = port;
		return true;
	}
	return false;
}

static void fabric_look_count_readers(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *look
) {
	uint64_t seen[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t good[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t seen_count = 0;
	uint32_t good_count = 0;

	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct evidence *evidence = &subject->observations[n];
		enum observation_kind kind = evidence->observation.kind;
		bool advances = kind == OBSERVATION_GOOD || kind == OBSERVATION_DEGRADED ||
				kind == OBSERVATION_LOSSY;
		bool outlives_overlay =
			verdict_reach_is_unanswered(evidence->observation.reach) &&
			evidence->seen_ns >= evidence->unanswered_since_ns + OUTLIVES_OVERLAY_NS;
		uint32_t at = 0;

		if (kind == OBSERVATION_NO_PAIR || !triangulate_counts(engine, evidence))
			continue;
		if (evidence->seen_ns > look->newest_ns)
			look->newest_ns = evidence->seen_ns;
		while (at < seen_count && seen[at] != evidence->observation.observer)
			at++;
		if (at == seen_count)
			seen[seen_count++] = evidence->observation.observer;
		if (!advances)
			continue;
		if (evidence->seen_ns > look->good_ns)
			look->good_ns = evidence->seen_ns;
		for (at = 0; at < good_count && good[at] != evidence->observation.observer; at++)
			;
		if (at == good_count && (evidence->seen_ns >= good_after_ns || outlives_overlay))
			good[good_count++] = evidence->observation.observer;
	}
	look->reader_count = seen_count;
	look->good = good_count;
	if (look->good_ns != 0)
		look->fabric = FABRIC_READABLE;
	for (uint32_t n = 0; n < good_count && n < VERDICT_OBSERVERS_MAX; n++)
		look->observers[look->observer_count++] = good[n];
}

// Find the worst fabric state that the evidence supports.
void triangulate(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
) {
	memset(ret_look, 0, sizeof(*ret_look));
	fabric_look_count_readers(engine, subject, good_after_ns, ret_look);
	// The states are tried from the worst on.
	if (fabric_look_by_kind(engine, subject, OBSERVATION_SILENT, FABRIC_SILENT, ret_look) ||
	    fabric_look_by_kind(engine, subject, OBSERVATION_STANDING, FABRIC_STANDING, ret_look) ||
	    triangulate_outward(engine, subject, OBSERVATION_SILENT, FABRIC_PEERS, ret_look) ||
	    fabric_look_by_port(engine, subject, OBSERVATION_SILENT, FABRIC_PORT, ret_look) ||
	    fabric_look_by_port(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, ret_look) ||
	    triangulate_outward(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, ret_look) ||
	    fabric_look_by_port(engine, subject, OBSERVATION_DEGRADED, FABRIC_SLOW, ret_look) ||
	    triangulate_outward(engine, subject, OBSERVATION_DEGRADED, FABRIC_SLOW, ret_look))
		return;
}

void triangulate_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	uint64_t good_after_ns,
	struct fabric_look *ret_look
) {
	memset(ret_look, 0, sizeof(*ret_look));
	fabric_look_count_readers(engine, subject, good_after_ns, ret_look);
	if (!fabric_look_by_kind(engine, subject, OBSERVATION_STANDING, FABRIC_STANDING, ret_look))
		(void
		)fabric_look_by_port(engine, subject, OBSERVATION_LOSSY, FABRIC_LOSSY, ret_look);
}

enum path_blame triangulate_path_end(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
) {
	struct fabric_look look = {0};

	if (subject == NULL)
		return PATH_BLAME_PATH;
	if (triangulate_blames_port(engine, subject, kind, port))
		return other_port_is_read(engine, subject, port) ? PATH_BLAME_PORT
								 : PATH_BLAME_NODE;
	if (triangulate_outward(engine, subject, kind, FABRIC_PEERS, &look))
		return PATH_BLAME_NODE;
	return PATH_BLAME_PATH;
}
