// SPDX-License-Identifier: BSD-3-Clause
// The peers of the table in an order for people: the worst first, then by name.
#pragma once

#include "client/session.h"

#include <lib/show.h>

struct roll_row {
	uint64_t id;
	uint32_t slot;
};

// Who is wanted, and how bad it is with each: either may be NULL, for everybody and by state.
struct roll_wish {
	bool (*keep)(const struct ras_peer *peer, const void *ctx);
	uint32_t (*badness)(const struct ras_peer *peer, const void *ctx); // the highest first
	const void *ctx;
};

// Those that are wanted, in *ret_rows (the caller's to free). -ENOMEM.
int roll_call(
	const struct ras *ras,
	const struct roll_wish *wish,
	struct roll_row **ret_rows,
	uint32_t *ret_count
);
// false if it is not in the table any more.
bool roll_peer(const struct ras *ras, const struct roll_row *row, struct ras_peer *ret_peer);

// What both PEERS and WHY say of a peer.
json_t *roll_json(struct session *session, const struct ras_peer *peer);
uint64_t roll_age_ns(struct session *session, uint64_t since_ns);
// "12 s"; "-" where the time is 0, not known.
void roll_show_age(struct session *session, uint64_t since_ns, char text[static SHOW_BYTES]);
// The same times in JSON: null where they are 0.
json_t *roll_since_json(struct session *session, uint64_t since_ns);
json_t *roll_for_json(struct session *session, uint64_t since_ns);
json_t *roll_time_json(struct session *session, uint64_t at_ns);
json_t *roll_name_json(const char *name);
