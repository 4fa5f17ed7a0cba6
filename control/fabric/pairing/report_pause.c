// SPDX-License-Identifier: BSD-3-Clause
// Decides which changes of a key are reported. A pair may fail again and again, because it never
// comes up or breaks as soon as it is used. Not each of these failures is reported.
//
// A failure is reported when its reason is new, then again after growing pauses. The report has the
// number of failures left out. Readiness is reported if the last report was a failure. So the last
// report about a wanted pair is wrong for one pause at most.
#include "fabric/pairing/pairing_inside.h"

#include <assert.h>

#define PAUSE_MIN_NS (2 * PAIRING_NS_PER_SEC)
#define PAUSE_MAX_NS (600 * PAIRING_NS_PER_SEC)

static bool failure_is_reported(
	struct report_pause *report_pause, uint64_t now_ns, enum pairing_reason reason
) {
	static_assert(PAIRING_REASON_COUNT <= 32, "one bit for each");
	uint32_t bit = UINT32_C(1) << reason;
	bool is_first =
		report_pause->pause_ns == 0 || now_ns >= report_pause->next_ns + PAUSE_MAX_NS;

	if (now_ns >= report_pause->next_ns) {
		report_pause->pause_ns = is_first ? PAUSE_MIN_NS : 2 * report_pause->pause_ns;
		if (report_pause->pause_ns > PAUSE_MAX_NS)
			report_pause->pause_ns = PAUSE_MAX_NS;
		report_pause->next_ns = now_ns + report_pause->pause_ns;
		report_pause->reasons = 0;
	}
	if ((report_pause->reasons & bit) != 0) {
		report_pause->untold++;
		return false;
	}
	report_pause->reasons |= bit;
	report_pause->last = PAIRING_FAILED;
	return true;
}

bool report_is_due(
	struct report_pause *report_pause,
	uint64_t now_ns,
	enum pairing_state state,
	enum pairing_reason reason
) {
	switch (state) {
	case PAIRING_FAILED:
		return failure_is_reported(report_pause, now_ns, reason);
	case PAIRING_READY:
		if (report_pause->last == PAIRING_READY && report_pause->untold > 0)
			return false;
		break;
	case PAIRING_ABSENT:
		// A pair that was never ready cannot have gone.
		if (report_pause->last != PAIRING_READY)
			return false;
		break;
	case PAIRING_PENDING:
	case PAIRING_DRAINING:
	case PAIRING_STATE_COUNT:
		return true;
	}
	report_pause->last = state;
	return true;
}
