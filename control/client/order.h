// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the commands that change something. Each order is logged with its user.
#pragma once

#include "client/names.h"
#include "client/session.h"

// The node of an order, as it was before. A copy, because the order may delete its record.
struct order_target {
	uint64_t id;
	enum ras_state state;
	char name[NAMES_TEXT_BYTES];
};

void order_target_init(const struct ras_peer *peer, struct order_target *ret_target);
// Log the order and answer OK, or answer with the error.
void order_finish(
	struct session *session, const struct order_target *target, const char *order, int err
);
