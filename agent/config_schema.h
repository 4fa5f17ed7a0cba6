// SPDX-License-Identifier: BSD-3-Clause
// Every key of tocsin.conf.
#pragma once

#include <lib/config.h>

#define CONFIG_PATH_MAX 512

extern const struct config_schema agent_config_schema;
// The same keys for --check-config: whether their values will do on this machine, too.
extern const struct config_schema agent_check_schema;

// check.c: values that contradict each other, and all of these that will not do here.
config_conflict_fn check_contradictions;
config_conflict_fn check_machine;
