// SPDX-License-Identifier: BSD-3-Clause
// The peers of the table in an order for people: the worst first, then by name.
#pragma once

#include "session.h"

struct roll_row {
	uint64_t id;
	uint32_t slot;
};

typedef bool roll_keep_fn(const struct ras_peer *peer, const void *ctx);

// Those that `keep` wants, in *ret_rows (the caller's to free). -ENOMEM.
int roll_call(
	const struct ras *ras,
	roll_keep_fn *keep,
	const void *ctx,
	struct roll_row **ret_rows,
	uint32_t *ret_count
);
// false if it is not in the table any more.
bool roll_peer(const struct ras *ras, const struct roll_row *row, struct ras_peer *ret_peer);

// What both PEERS and WHY say of a peer.
json_t *roll_json(struct session *session, const struct ras_peer *peer);
uint64_t roll_age_ns(struct session *session, uint64_t since_ns);
json_t *roll_time_json(struct session *session, uint64_t at_ns);
json_t *roll_name_json(const char *name);
