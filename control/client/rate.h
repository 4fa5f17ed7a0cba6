// SPDX-License-Identifier: BSD-3-Clause
// What each user may cost the cluster: units a second, of which some may come at once. Those whom
// nothing sets apart share a bound beside it, so that many users are no way around it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RATE_USERS 64 // the one who asked longest ago makes room
#define RATE_SHARED 4 // all who share may take so many times what one may

struct rate_user {
	uint64_t who;
	bool used;
	uint64_t paid_until_ns; // the time up to which units have used their share
};

struct rate {
	uint64_t gap_ns; // a unit's share
	uint64_t ahead_ns;
	uint64_t shared_until_ns;
	struct rate_user users[RATE_USERS];
};

// At most 10^9 units a second.
void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst);
// Takes so many units, or none. shares: is bounded with all others who do.
bool rate_allows(struct rate *rate, uint64_t who, uint64_t units, bool shares, uint64_t now_ns);
