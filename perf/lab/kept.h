// SPDX-License-Identifier: BSD-3-Clause
// Commands on files that runs left: verify, compare, history.
#pragma once

#include "versus.h"

#include <stdbool.h>

bool kept_is_verb(const char *word);
// The whole command; argv[1] is its verb. Returns the exit status.
int kept_main(int argc, char **argv);

// Of a comparison: slower outweighs what is undecided.
int kept_status(const struct versus_result *result);
