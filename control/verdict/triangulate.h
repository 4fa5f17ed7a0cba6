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

// Of all ports if `port` is NULL.
bool triangulate_blames_port(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);

// What a node's own ports have to do with a bad path of theirs. `subject` may be NULL.
enum path_blame triangulate_end(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port
);
