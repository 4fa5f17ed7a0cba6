// SPDX-License-Identifier: BSD-3-Clause
// What blames nodes and what blames paths have in common.
#pragma once

#include "inside.h"

// Its observer; NULL: that is no member.
static inline const struct member_row *
triangulate_observer(const struct verdict_engine *engine, const struct evidence *evidence) {
	return evidence->observer != MEMBERS_NONE ? &engine->members.rows[evidence->observer]
						  : NULL;
}

// Of one id. NULL: nobody knows it.
static inline const struct member_row *
triangulate_row(const struct verdict_engine *engine, uint64_t id) {
	uint32_t row = members_find(&engine->members, id);

	return row != MEMBERS_NONE ? &engine->members.rows[row] : NULL;
}

static inline bool observation_is_of_windows(enum observation_kind kind) {
	return kind == OBSERVATION_DEGRADED || kind == OBSERVATION_LOSSY;
}

// It is held to lose packets, or to be slow: what its own paths lose or how slow they are says
// nothing of those at their other ends, and of what it reads it may have read little for seconds.
static inline bool triangulate_is_hampered(const struct member_row *row) {
	return row != NULL && row->subject != NULL &&
	       (row->subject->held.verdict == VERDICT_PATH_LOSSY ||
		row->subject->held.verdict == VERDICT_PATH_DEGRADED);
}

// What it says of its own port explains what it does not see. `subject` may be NULL.
bool triangulate_own_port_is_bad(const struct subject *subject);

// Who shares the host reads it without the fabric.
bool triangulate_shares_host(
	const struct verdict_engine *engine, const struct evidence *evidence, uint32_t host
);

// Whether a good look at this port excuses one of the kind.
bool triangulate_excuses(enum observation_kind look, enum observation_kind kind);

// The same by one who does not share `host`, the subject's.
bool triangulate_excuses_from(
	const struct verdict_engine *engine,
	const struct evidence *look,
	enum observation_kind kind,
	uint32_t host
);

// Whether this look speaks against blaming the subject for badness of this kind.
bool triangulate_speaks_against(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *look,
	enum observation_kind kind
);

// Whether the observer's own fault, or the path between, explains what it says of the subject.
bool triangulate_is_explained(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
);

// Of all ports if `port` is NULL.
bool triangulate_blames_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);

// Its own bad paths end at nodes that others see well, and nobody sees it well. Fills `look` if so.
bool triangulate_outward(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	enum fabric fabric,
	struct fabric_look *look
);

// What a node's own ports have to do with a bad path of theirs. `subject` may be NULL.
enum path_blame triangulate_end(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);
