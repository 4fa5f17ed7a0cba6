// SPDX-License-Identifier: BSD-3-Clause
// Names and reasons of the built-in checks.
#include "checks/builtin.h"

#include <lib/fields.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Schedulers and alerts match `reason`, so it never changes.
static const struct {
	const char *name, *reason;
} names[BUILTIN_CHECK_COUNT] = {
	[BUILTIN_LINKS] = {"link-state", "LinkDown"},
	[BUILTIN_RATES] = {"link-rate", "LinkSlow"},
	[BUILTIN_ERRORS] = {"link-errors", "LinkErrors"},
	[BUILTIN_PAUSES] = {"pauses", "PauseStorm"},
	[BUILTIN_DRIVERS] = {"drivers", "DeviceStuck"},
	[BUILTIN_PORTS] = {"ports", "PortDown"},
	[BUILTIN_MEMORY] = {"agent-memory", "AgentMemory"},
	[BUILTIN_PRESSURE] = {"memory-pressure", "MemoryPressure"},
	[BUILTIN_WORKERS] = {"workers", "WorkerStuck"},
	[BUILTIN_PROCESSOR] = {"processor", PROCESSOR_SHORT},
	[BUILTIN_DISK] = {"state-directory", "StateDirectory"},
};

const char *checks_builtin_name(uint32_t builtin) {
	return builtin < BUILTIN_CHECK_COUNT ? names[builtin].name : NULL;
}

void builtin_check_reasons(enum builtin_check builtin, struct check_reasons *ret_reasons) {
	struct check_reasons reasons;

	must(check_reasons_build(names[builtin].name, &reasons) == 0);
	snprintf(reasons.bad, sizeof(reasons.bad), "%s", names[builtin].reason);
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
	if (!thousandths_parse(text, used, &mbps) || mbps == 0)
		return parse_fail(
			error, -EINVAL, text, length,
			"is not a rate such as 100 or 2.5Gb/s, from 0.001 to 99999.999"
		);
	*ret_mbps = mbps;
	return 0;
}
