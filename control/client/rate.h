// SPDX-License-Identifier: BSD-3-Clause
// Questions to other nodes cost the whole cluster: each user may ask so many a second.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RATE_USERS 64 // the one who asked longest ago makes room

struct rate_user {
	uint32_t uid;
	bool used;
	uint64_t paid_until_ns; // the time up to which questions have used their share
};

struct rate {
	uint64_t gap_ns; // a question's share
	uint64_t ahead_ns;
	struct rate_user users[RATE_USERS];
};

void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst);
bool rate_allows(struct rate *rate, uint32_t uid, uint64_t now_ns);
