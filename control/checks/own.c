// SPDX-License-Identifier: BSD-3-Clause
// The checks that are built in, by name and reason.
#include "checks/own.h"

#include <lib/fields.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// The second is what schedulers and alerts see: it never changes.
static const struct {
	const char *name, *reason;
} names[OWN_CHECK_COUNT] = {
	[OWN_LINKS] = {"link-state", "LinkDown"},
	[OWN_RATES] = {"link-rate", "LinkSlow"},
	[OWN_ERRORS] = {"link-errors", "LinkErrors"},
	[OWN_PAUSES] = {"pauses", "PauseStorm"},
	[OWN_DRIVERS] = {"drivers", "DeviceStuck"},
	[OWN_PORTS] = {"ports", "PortDown"},
	[OWN_MEMORY] = {"agent-memory", "AgentMemory"},
	[OWN_PRESSURE] = {"memory-pressure", "MemoryPressure"},
	[OWN_WORKERS] = {"workers", "WorkerStuck"},
	[OWN_DISK] = {"state-directory", "StateDirectory"},
};

const char *checks_own_name(uint32_t own) {
	return own < OWN_CHECK_COUNT ? names[own].name : NULL;
}

void own_check_reasons(enum own_check own, struct check_reasons *ret_reasons) {
	struct check_reasons reasons;

	must(check_reasons_of(names[own].name, &reasons) == 0);
	snprintf(reasons.bad, sizeof(reasons.bad), "%s", names[own].reason);
	*ret_reasons = reasons;
}

int checks_rate_parse(
	const char *text, size_t length, struct parse_error *error, uint32_t *ret_mbps
) {
	static const char unit[] = "Gb/s";
	size_t used = length;
	uint32_t mbps;

	if (used > strlen(unit) && memcmp(text + used - strlen(unit), unit, strlen(unit)) == 0)
		used -= strlen(unit);
	while (used > 0 && text[used - 1] == ' ')
		used--;
	if (!fixed_parse(text, used, &mbps) || mbps == 0)
		return parse_fail(
			error, -EINVAL, text, length,
			"is no rate such as 100 or 2.5Gb/s, of 0.001 to 99999.999"
		);
	*ret_mbps = mbps;
	return 0;
}
