// SPDX-License-Identifier: BSD-3-Clause
// Every key of tocsin.conf.
#pragma once

#include <lib/config.h>

#define CONFIG_PATH_MAX 512

extern const struct config_schema agent_config_schema;
