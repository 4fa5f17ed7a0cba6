// SPDX-License-Identifier: BSD-3-Clause
// Nodes by the names that people type, and names for the ids that the core speaks of.
#pragma once

#include "client/session.h"

#define NAMES_TEXT_BYTES (RAS_NAME_MAX + 1)

// The one word of `rest`, as a node that is known. Else the session was told what is wrong.
bool names_only(struct session *session, const char *rest, struct ras_peer *ret_peer);
bool names_is_known(struct session *session, const char *word);
// The first word of *rest, which moves on.
bool names_first(struct session *session, const char **rest, struct ras_peer *ret_peer);

// As it stands, but for what would break a line or steer a terminal: that
// becomes "?". Names come from other agents.
void names_text(const char *text, size_t length, char *clean, size_t size);
void names_clean(const char *text, size_t length, char name[static NAMES_TEXT_BYTES]);
void names_record(const struct ras_record *record, char name[static NAMES_TEXT_BYTES]);
void names_host(const struct ras_record *record, char host[static NAMES_TEXT_BYTES]);
// "#" and the id if it is not known any more.
void names_id(const struct ras *ras, uint64_t id, char name[static NAMES_TEXT_BYTES]);
// "n1 and n2"; empty if there is none.
#define NAMES_PAIR_BYTES (2 * NAMES_TEXT_BYTES + 8)
void names_observers(
	const struct ras *ras,
	const uint64_t *ids,
	uint32_t count,
	char text[static NAMES_PAIR_BYTES]
);
