// SPDX-License-Identifier: BSD-3-Clause
// What unmodified programs are told about software devices: four words, in the environment of the
// program, or as options of tocsin soft-run, which checks them before it starts one. Pure.
#pragma once

#include <dataplane/soft.h>
#include <lib/parse.h>

enum soft_setting {
	SOFT_SETTING_NAME,    // "soft0"; "soft0,soft1": as many devices
	SOFT_SETTING_WIRE,    // "udp", "dpdk:DEVARGS"
	SOFT_SETTING_ADDRESS, // one for each name; none: the first free ones of 127.64.0.0/16
	SOFT_SETTING_FAULTS,  // see soft_faults_parse()
	SOFT_SETTING_COUNT,
};

// TOCSIN_SOFT_NAME and so on.
extern const char *const soft_setting_variables[SOFT_SETTING_COUNT];

// Texts by setting; NULL or "" is what it is without. -EINVAL, -ERANGE: *ret_wrong is the setting,
// and *ret_error says what is wrong with it and what is allowed.
int soft_settings_read(
	const char *const texts[static SOFT_SETTING_COUNT],
	struct parse_error *ret_error,
	enum soft_setting *ret_wrong,
	struct soft_config ret_configs[static SOFT_DEVICES_MAX],
	uint32_t *ret_count
);
