// SPDX-License-Identifier: BSD-3-Clause
// Limits how many messages of one source this agent forwards in a second of observed time.
//
// Counters are found by a hash of the source, so that a source needs no memory. The hash changes
// with each second and differs between agents. So a source that shares its counter with a flood
// does so for one second, and the next try of its message mostly succeeds.
#include "relay/relay_state.h"

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15) // 2^64 by the golden ratio

static_assert(RELAY_LIMIT_COUNTERS == 256, "the upper 8 bits of the hash are the index");

bool relay_limit_admit(struct ras *ras, uint64_t source) {
	struct relay_limit *limit = &ras->relay->limit;
	uint32_t second = (uint32_t)(ras->observed_ns / RAS_NS_PER_SEC);
	uint64_t hash = (source ^ (ras->self_id + second) * HASH_FACTOR) * HASH_FACTOR;
	uint16_t *count = &limit->counts[hash >> 56];

	if (limit->second != second)
		*limit = (struct relay_limit){.second = second};
	if (*count >= RELAY_FORWARD_MAX)
		return false;
	(*count)++;
	return true;
}
