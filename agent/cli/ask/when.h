// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdbool.h>

#define WHEN_BYTES 40

// Write a time of an option as the agent reads it. Durations are passed on, since the agent's clock
// may be another one. Returns false after reporting an error.
bool when_translate(
	const char *command, const char *option, const char *text, char ret_when[static WHEN_BYTES]
);
