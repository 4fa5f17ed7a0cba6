// SPDX-License-Identifier: BSD-3-Clause
// Translates times of the command line for the agent.
#include "ask/when.h"

#include "command.h"

#include <lib/moment.h>
#include <lib/parse.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

bool when_translate(
	const char *command, const char *option, const char *text, char ret_when[static WHEN_BYTES]
) {
	struct parse_error error;
	struct timespec now;
	int64_t when_ns;
	uint64_t ago_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	if (moment_parse(
		    text, strlen(text), now.tv_sec * NS_PER_S + now.tv_nsec, &error, &when_ns
	    ) != 0) {
		command_error(command, "--%s: %s", option, error.text);
		return false;
	}
	// East of Greenwich, 1970 begins before UNIX time, which the agent reads without a sign.
	if (when_ns < 0)
		when_ns = 0;
	if (strlen(text) < WHEN_BYTES &&
	    parse_duration_ns(text, strlen(text), 1, INT64_MAX, NULL, &ago_ns) == 0)
		snprintf(ret_when, WHEN_BYTES, "%s", text);
	else
		snprintf(
			ret_when, WHEN_BYTES, "@%" PRId64 ".%09" PRId64, when_ns / NS_PER_S,
			when_ns % NS_PER_S
		);
	return true;
}
