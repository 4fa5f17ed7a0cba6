// SPDX-License-Identifier: BSD-3-Clause
#include "own.h"

#include <lib/must.h>

#include <stdio.h>

// The second is what schedulers and alerts see: it never changes.
static const struct {
	const char *name, *reason;
} names[OWN_CHECK_COUNT] = {
	[OWN_LINKS] = {"link-state", "LinkDown"},	  [OWN_RATES] = {"link-rate", "LinkSlow"},
	[OWN_ERRORS] = {"link-errors", "LinkErrors"},  [OWN_DRIVERS] = {"drivers", "DeviceStuck"},
	[OWN_MEMORY] = {"agent-memory", "AgentMemory"}, [OWN_PRESSURE] = {"memory-pressure", "MemoryPressure"},
	[OWN_DISK] = {"state-directory", "StateDirectory"},
};

const char *own_check_name(enum own_check own) {
	return names[own].name;
}

void own_check_reasons(enum own_check own, struct check_reasons *ret_reasons) {
	struct check_reasons reasons;

	must(check_reasons_of(names[own].name, &reasons) == 0);
	snprintf(reasons.bad, sizeof(reasons.bad), "%s", names[own].reason);
	*ret_reasons = reasons;
}
