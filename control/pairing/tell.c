// SPDX-License-Identifier: BSD-3-Clause
// Which changes of a key are told: not each failure of a pair that fails again and again, whether
// it never comes up or breaks as soon as it is used.
//
// A failure is told when its reason is new, then again after pauses that grow, with the number of
// those left out. That the pair is ready is told if the last that was told is a failure. So what
// was told last of a pair that is wanted is wrong for a pause at most.
#include "pairing/pairing_inside.h"

#include <assert.h>

#define PAUSE_MIN_NS (2 * PAIRING_NS_PER_SEC)
#define PAUSE_MAX_NS (600 * PAIRING_NS_PER_SEC)

static void pause_anew(struct telling *telling, uint64_t now_ns) {
	bool is_first = telling->pause_ns == 0 || now_ns >= telling->next_ns + PAUSE_MAX_NS;

	telling->pause_ns = is_first ? PAUSE_MIN_NS : 2 * telling->pause_ns;
	if (telling->pause_ns > PAUSE_MAX_NS)
		telling->pause_ns = PAUSE_MAX_NS;
	telling->next_ns = now_ns + telling->pause_ns;
	telling->reasons = 0;
}

static bool failure_is_told(struct telling *telling, uint64_t now_ns, enum pairing_reason reason) {
	static_assert(PAIRING_REASON_COUNT <= 32, "one bit for each");
	uint32_t bit = UINT32_C(1) << reason;

	if (now_ns >= telling->next_ns)
		pause_anew(telling, now_ns);
	if ((telling->reasons & bit) != 0) {
		telling->untold++;
		return false;
	}
	telling->reasons |= bit;
	telling->last = PAIRING_FAILED;
	return true;
}

bool tell_is_due(
	struct telling *telling,
	uint64_t now_ns,
	enum pairing_state state,
	enum pairing_reason reason
) {
	switch (state) {
	case PAIRING_FAILED:
		return failure_is_told(telling, now_ns, reason);
	case PAIRING_READY:
		if (telling->last == PAIRING_READY && telling->untold > 0)
			return false;
		break;
	case PAIRING_ABSENT:
		// What never came about has not gone.
		if (telling->last != PAIRING_READY)
			return false;
		break;
	case PAIRING_PENDING:
	case PAIRING_DRAINING:
	case PAIRING_STATE_COUNT:
		return true;
	}
	telling->last = state;
	return true;
}
