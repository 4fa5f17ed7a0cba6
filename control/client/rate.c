// SPDX-License-Identifier: BSD-3-Clause
#include "rate.h"

#include <ras/types.h>

void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst) {
	*rate = (struct rate){.gap_ns = RAS_NS_PER_SEC / (per_s > 0 ? per_s : 1)};
	rate->ahead_ns = rate->gap_ns * (burst > 0 ? burst : 1);
}

static struct rate_user *user_of(struct rate *rate, uint32_t uid) {
	struct rate_user *oldest = &rate->users[0];

	for (uint32_t n = 0; n < RATE_USERS; n++) {
		struct rate_user *user = &rate->users[n];

		if (user->used && user->uid == uid)
			return user;
		if (!user->used || (oldest->used && user->paid_until_ns < oldest->paid_until_ns))
			oldest = user;
	}
	*oldest = (struct rate_user){.uid = uid, .used = true};
	return oldest;
}

bool rate_allows(struct rate *rate, uint32_t uid, uint64_t now_ns) {
	struct rate_user *user = user_of(rate, uid);
	uint64_t from_ns = user->paid_until_ns > now_ns ? user->paid_until_ns : now_ns;

	if (from_ns + rate->gap_ns > now_ns + rate->ahead_ns)
		return false;
	user->paid_until_ns = from_ns + rate->gap_ns;
	return true;
}
