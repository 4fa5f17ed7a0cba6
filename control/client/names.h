// SPDX-License-Identifier: BSD-3-Clause
// Finds nodes by name, and names for the ids of the core.
#pragma once

#include "client/session.h"

#define NAMES_TEXT_BYTES (RAS_NAME_MAX + 1)

// Parse `rest` as the name of one known node, and nothing else. Returns false after an error
// message to the session.
bool names_parse_single(struct session *session, const char *rest, struct ras_peer *ret_peer);
// Return the refutations of an incarnation, or RECORD_UNKNOWN for that of a departure, which is the
// last one of its start whatever the node refuted.
uint64_t names_refutations(uint64_t incarnation);
bool names_is_known(struct session *session, const char *word);
// Send an error if the word names a missing or a former node. Returns false if it names neither.
bool names_fail_former_node(struct session *session, const char *word);
// Send the error about a name that no node has, with a suggestion.
void names_fail_unknown_node(struct session *session, const char *word);
// Same, for the first word of *rest, which is advanced.
bool names_parse_next(struct session *session, const char **rest, struct ras_peer *ret_peer);

// Copy a text, and replace each byte that would break a line or control a terminal with "?". Names
// come from other agents and are not trusted.
void names_sanitize_text(const char *text, size_t length, char *clean, size_t size);
void names_sanitize_name(const char *text, size_t length, char name[static NAMES_TEXT_BYTES]);
void names_format_record(const struct ras_record *record, char name[static NAMES_TEXT_BYTES]);
void names_format_host(const struct ras_record *record, char host[static NAMES_TEXT_BYTES]);
// Return the name of a node id; "#" and the id if the node is not known any more.
void names_format_id(const struct ras *ras, uint64_t id, char name[static NAMES_TEXT_BYTES]);
// Write the names of observers, as in "n1 and n2"; "" if there are none.
#define NAMES_PAIR_BYTES (2 * NAMES_TEXT_BYTES + 8)
void names_format_observers(
	const struct ras *ras,
	const uint64_t *ids,
	uint32_t count,
	char text[static NAMES_PAIR_BYTES]
);
