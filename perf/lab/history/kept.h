// SPDX-License-Identifier: BSD-3-Clause
// Commands on stored results: verify, compare and history.
#pragma once

#include "history/versus.h"

#include <stdbool.h>

bool kept_is_command(const char *word);
// Run a command; argv[1] is its name. Returns the exit status.
int kept_main(int argc, char **argv);

// Return the exit status of a comparison; slower takes precedence over undecided.
int versus_exit_status(const struct versus_result *result);
