// SPDX-License-Identifier: BSD-3-Clause
// The peers of the table, sorted for people: the worst first, then by name.
#pragma once

#include "client/session.h"

#include <lib/show.h>

struct peer_list_row {
	uint64_t id;
	uint32_t slot;
};

// Filter and order of a list. Each function may be NULL: all peers, ordered by state.
struct peer_list_filter {
	bool (*keep)(const struct ras_peer *peer, const void *ctx);
	uint32_t (*badness)(const struct ras_peer *peer, const void *ctx); // the highest first
	const void *ctx;
};

// Make the list in *ret_rows, which the caller must free. Returns 0 or -ENOMEM.
int peer_list_make(
	const struct ras *ras,
	const struct peer_list_filter *wish,
	struct peer_list_row **ret_rows,
	uint32_t *ret_count
);
// Look up the peer of a row. Returns false if the peer is no longer in the table.
bool peer_list_find_peer(
	const struct ras *ras, const struct peer_list_row *row, struct ras_peer *ret_peer
);

// Return the object of a peer, for PEERS and WHY.
json_t *peer_list_json(struct session *session, const struct ras_peer *peer);
uint64_t time_age_ns(struct session *session, uint64_t since_ns);
// Return the age, or RECORD_UNKNOWN for a time of 0.
uint64_t time_for_ns(struct session *session, uint64_t since_ns);
// Write and return a time in UTC.
const char *time_text(struct session *session, uint64_t at_ns, char text[static SHOW_BYTES]);
// Parse a time: a duration before now, or @ and UNIX time in seconds. The local time zone is not
// read, because its file may hang. Returns false for anything else.
bool time_parse(struct session *session, const char *text, size_t size, int64_t *ret_ns);
json_t *safe_string_json(const char *name);
// Return the names of the first `max` nodes of a list of `count` ids.
json_t *node_names_json(const struct ras *ras, const uint64_t *ids, uint32_t count, uint32_t max);
