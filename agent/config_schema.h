// SPDX-License-Identifier: BSD-3-Clause
// Every key of tocsin.conf.
#pragma once

#include <lib/config.h>

#define CONFIG_PATH_MAX 512

extern const struct config_schema agent_config_schema;
// The same keys for --check-config, which also tests whether the values work on this machine.
extern const struct config_schema agent_check_schema;

// check.c: check_contradictions() finds values that contradict each other. check_machine() also
// finds values that do not work on this machine.
config_conflict_fn check_contradictions;
config_conflict_fn check_machine;
