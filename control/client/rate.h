// SPDX-License-Identifier: BSD-3-Clause
// Rate limit per user: units a second, with a burst. Unprivileged users also share a common limit,
// so that many users cannot exceed it together.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RATE_USERS 64 // a new user replaces the one with the oldest request
#define RATE_SHARED 4 // the common limit is this many times the limit of one user

struct rate_user {
	uint64_t who;
	bool used;
	uint64_t paid_until_ns; // time until which the consumed units have used the user's share
};

struct rate {
	uint64_t gap_ns; // time per unit
	uint64_t ahead_ns;
	uint64_t shared_until_ns;
	struct rate_user users[RATE_USERS];
};

// Set up a limit of at most 10^9 units a second.
void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst);
// Consume all units, or none. `shares`: the common limit applies too. Returns whether the units
// were consumed.
bool rate_try_consume(
	struct rate *rate, uint64_t who, uint64_t units, bool shares, uint64_t now_ns
);
