// SPDX-License-Identifier: BSD-3-Clause
// The parts of --check-config.
#pragma once

#include <lib/config.h>

struct agent;

// check_commands.c: [check NAME], key against key and name against name; and, on this machine, that
// the programs are there.
void check_user_checks(const struct config *config, struct config_load *load);
void check_programs(const struct config *config, struct config_load *load);

// check_devices.c. probe: only its configuration, and its keys if has_address: then the overlay's
// address can be chosen.
void check_devices(struct agent *probe, bool has_address, struct config_load *load);
