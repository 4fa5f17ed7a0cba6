// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdbool.h>

#define WHEN_BYTES 40

// Convert the time of an option to the form that the agent parses. A duration stays a duration,
// because the clock of the agent may differ. Returns false after reporting an error.
bool when_translate(
	const char *command, const char *option, const char *text, char ret_when[static WHEN_BYTES]
);
