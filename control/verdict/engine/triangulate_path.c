// SPDX-License-Identifier: BSD-3-Clause
// Finds what a bad path shares with other bad paths: a port, a node, a host, a leaf, or nothing.
#include "triangulate.h"

// Return whether all observed agents of a host are to blame, and there are at least two.
static bool
host_is_bad(const struct verdict_engine *engine, uint32_t host, enum observation_kind kind) {
	uint32_t bad = 0;

	if (host == NAMES_NONE)
		return false;
	for (uint32_t n = 0; n < engine->subject_count; n++) {
		const struct subject *other = engine->subjects[n];
		bool seen = false;
		bool blamed = false;

		if (subject_peer(engine, other)->host != host)
			continue;
		for (uint32_t m = 0; m < other->observation_count && !blamed; m++) {
			const struct evidence *evidence = &other->observations[m];

			if (!triangulate_counts(engine, evidence) ||
			    evidence_observer_is_on_host(engine, evidence, host))
				continue;
			seen = true;
			blamed = evidence->observation.kind == kind &&
				 triangulate_blames_port(
					 engine, other, kind, evidence->observation.peer_device
				 );
		}
		if (seen && !blamed)
			return false;
		bad += blamed;
	}
	return bad > 1;
}

// Return whether all paths that cross the border of a leaf are bad, at two nodes of the leaf or
// more.
static bool
leaf_is_bad(const struct verdict_engine *engine, uint32_t leaf, const struct observation *bad) {
	uint64_t nodes[2] = {0, 0};
	uint32_t count = 0;

	if (leaf == NAMES_NONE)
		return false;
	for (uint32_t n = 0; n < engine->subject_count; n++) {
		const struct subject *other = engine->subjects[n];
		bool inside = subject_peer(engine, other)->leaf == leaf;

		for (uint32_t m = 0; m < other->observation_count; m++) {
			const struct evidence *evidence = &other->observations[m];
			const struct member_row *observer = evidence_observer_row(engine, evidence);
			uint64_t node = inside ? evidence->observation.subject
					       : evidence->observation.observer;

			if (observer == NULL || (observer->leaf == leaf) == inside ||
			    !triangulate_counts(engine, evidence))
				continue;
			if (observation_kind_excuses(evidence->observation.kind, bad->kind) &&
			    !observation_is_blind_to_loss(
				    &evidence->observation, bad->kind, bad->lost_bytes
			    ))
				return false;
			if (evidence->observation.kind != bad->kind || node == nodes[0] ||
			    node == nodes[1])
				continue;
			nodes[count < 2 ? count : 1] = node;
			count++;
		}
	}
	return count > 1;
}

// Blame a link with many retransmissions on an end whose verdict is not healthy.
static enum path_blame
blame_for_losses(const struct member_row *const ends[2], uint64_t *ret_node) {
	for (uint32_t n = 0; n < 2; n++) {
		if (ends[n] == NULL || ends[n]->subject == NULL ||
		    ends[n]->subject->held.verdict <= VERDICT_HEALTHY)
			continue;
		*ret_node = ends[n]->id;
		return PATH_BLAME_NODE;
	}
	return PATH_BLAME_PATH;
}

enum path_blame triangulate_path(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence,
	uint64_t *ret_node,
	const char **ret_what
) {
	const struct member_row *far = subject_peer(engine, subject);
	const struct member_row *near = evidence_observer_row(engine, evidence);
	const struct member_row *ends[2] = {far, near};
	const char *ports[2] = {evidence->observation.peer_device, evidence->observation.device};
	enum observation_kind kind = evidence->observation.kind;

	*ret_node = 0;
	*ret_what = "";
	// The observer's own statement about its port needs no other evidence.
	if (near != NULL &&
	    (!evidence->observation.own_good || triangulate_own_port_is_bad(near->subject))) {
		*ret_node = near->id;
		*ret_what = evidence->observation.device;
		return PATH_BLAME_PORT;
	}
	if (!observation_is_bad(kind))
		return blame_for_losses(ends, ret_node);
	for (uint32_t n = 0; n < 2 && near != NULL; n++) {
		if (far->leaf != near->leaf &&
		    leaf_is_bad(engine, ends[n]->leaf, &evidence->observation)) {
			*ret_what = member_name(&engine->members.leaves, ends[n]->leaf);
			return PATH_BLAME_LEAF;
		}
	}
	for (uint32_t n = 0; n < 2 && ends[n] != NULL; n++) {
		enum path_blame blame =
			triangulate_path_end(engine, ends[n]->subject, kind, ports[n]);

		if (blame == PATH_BLAME_PATH)
			continue;
		*ret_node = ends[n]->id;
		if (host_is_bad(engine, ends[n]->host, kind)) {
			*ret_what = member_name(&engine->members.hosts, ends[n]->host);
			return PATH_BLAME_HOST;
		}
		*ret_what = blame == PATH_BLAME_PORT ? ports[n] : "";
		return blame;
	}
	return PATH_BLAME_PATH;
}
