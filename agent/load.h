// SPDX-License-Identifier: BSD-3-Clause
// Reads the configuration that the options name.
#pragma once

#include "options.h"

struct config;

// 0, or -errno after every mistake has been reported on stderr.
int load_config(const struct options *options, struct config **ret_config);
