// SPDX-License-Identifier: BSD-3-Clause
// Settings of software devices for unmodified programs: four texts. They come from the program's
// environment, or from options of `tocsin soft-run`, which checks them before it starts the
// program. Pure functions.
#pragma once

#include <dataplane/soft.h>
#include <lib/parse.h>

enum soft_setting {
	SOFT_SETTING_NAME,    // "soft0"; "soft0,soft1" for two devices
	SOFT_SETTING_WIRE,    // "udp", "dpdk:DEVARGS"
	SOFT_SETTING_ADDRESS, // one for each name; none: the first free addresses of 127.64.0.0/16
	SOFT_SETTING_FAULTS,  // see soft_faults_parse()
	SOFT_SETTING_COUNT,
};

// Names of the environment variables: TOCSIN_SOFT_NAME and so on.
extern const char *const soft_setting_variables[SOFT_SETTING_COUNT];

// Parse the texts, indexed by setting; NULL or "" selects the default. Returns -EINVAL or -ERANGE;
// *ret_wrong is then the faulty setting, and *ret_error says what is wrong and what is allowed.
int soft_settings_read(
	const char *const texts[static SOFT_SETTING_COUNT],
	struct parse_error *ret_error,
	enum soft_setting *ret_wrong,
	struct soft_config ret_configs[static SOFT_DEVICES_MAX],
	uint32_t *ret_count
);
