// SPDX-License-Identifier: BSD-3-Clause
// Helpers shared by the blame of nodes and the blame of paths.
#pragma once

#include "inside.h"

// Return the observer's row; NULL: no member.
static inline const struct member_row *
evidence_observer_row(const struct verdict_engine *engine, const struct evidence *evidence) {
	return evidence->observer != MEMBERS_NONE ? &engine->members.rows[evidence->observer]
						  : NULL;
}

static inline bool observation_kind_uses_windows(enum observation_kind kind) {
	return kind == OBSERVATION_DEGRADED || kind == OBSERVATION_LOSSY;
}

// Return whether the member is held lossy or slow. Its own bad reads then prove nothing about the
// other ends, and it may read little for seconds.
static inline bool member_is_lossy_or_slow(const struct member_row *row) {
	return row != NULL && row->subject != NULL &&
	       (row->subject->held.verdict == VERDICT_PATH_LOSSY ||
		row->subject->held.verdict == VERDICT_PATH_DEGRADED);
}

// Return whether the node reports its own port bad, which explains its failed reads. `subject` may
// be NULL.
bool triangulate_own_port_is_bad(const struct subject *subject);

// Return whether the observer runs on `host`: it reads agents there without the fabric.
bool evidence_observer_is_on_host(
	const struct verdict_engine *engine, const struct evidence *evidence, uint32_t host
);

// Return whether a read of kind `look` disproves a bad read of kind `kind`.
bool observation_kind_excuses(enum observation_kind look, enum observation_kind kind);

// The same, but false for an observer on `host`, the subject's.
bool evidence_excuses_from_other_host(
	const struct verdict_engine *engine,
	const struct evidence *look,
	enum observation_kind kind,
	uint32_t host
);

// Return whether this read contradicts blame for bad reads of kind `kind`.
bool evidence_contradicts_blame(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *look,
	enum observation_kind kind
);

// Return whether the observer's own fault, or the path between, explains its observation.
bool evidence_is_explained(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
);

// Return whether a port is to blame. `port` NULL: all ports together.
bool triangulate_blames_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);

// Return whether the node is bad by its own reads: its bad paths end at nodes that others read
// well, and no observer reads it well. Fills `look` if so.
bool triangulate_outward(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
);

// Return how far a node's own ports explain a bad path of theirs. `subject` may be NULL.
enum path_blame triangulate_path_end(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);
