// SPDX-License-Identifier: BSD-3-Clause
// Limits the costly questions of each user.
#include "client/rate.h"

#include <ras/types.h>

void rate_init(struct rate *rate, uint32_t per_s, uint32_t burst) {
	*rate = (struct rate){.gap_ns = RAS_NS_PER_SEC / (per_s > 0 ? per_s : 1)};
	rate->ahead_ns = rate->gap_ns * (burst > 0 ? burst : 1);
}

static struct rate_user *rate_user_find(struct rate *rate, uint64_t who) {
	struct rate_user *oldest = &rate->users[0];

	for (uint32_t n = 0; n < RATE_USERS; n++) {
		struct rate_user *user = &rate->users[n];

		if (user->used && user->who == who)
			return user;
		if (!user->used || (oldest->used && user->paid_until_ns < oldest->paid_until_ns))
			oldest = user;
	}
	*oldest = (struct rate_user){.who = who, .used = true};
	return oldest;
}

static uint64_t time_later(uint64_t a_ns, uint64_t b_ns) {
	return a_ns > b_ns ? a_ns : b_ns;
}

bool rate_try_consume(
	struct rate *rate, uint64_t who, uint64_t units, bool shares, uint64_t now_ns
) {
	struct rate_user *user;
	uint64_t shared_ns, own_ns;

	if (units > rate->ahead_ns / rate->gap_ns)
		return false;
	user = rate_user_find(rate, who);
	own_ns = time_later(user->paid_until_ns, now_ns) + units * rate->gap_ns;
	shared_ns = time_later(rate->shared_until_ns, now_ns) + units * rate->gap_ns / RATE_SHARED;
	if (own_ns > now_ns + rate->ahead_ns || (shares && shared_ns > now_ns + rate->ahead_ns))
		return false;
	user->paid_until_ns = own_ns;
	if (shares)
		rate->shared_until_ns = shared_ns;
	return true;
}
