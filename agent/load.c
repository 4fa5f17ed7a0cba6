// SPDX-License-Identifier: BSD-3-Clause
// Loads the configuration file and complains about what is wrong in it.
#include "load.h"

#include "config_schema.h"

#include <stdio.h>
#include <unistd.h>

static void config_complain(void *context, const char *message) {
	(void)context;
	fprintf(stderr, "tocsind: %s\n", message);
}

int load_config(const struct options *options, struct config **ret_config) {
	const struct config_reporter reporter = {.report = config_complain};
	struct config_input input = {
		.path = options->config_path,
		.settings = options->settings,
		.setting_count = options->setting_count,
	};

	// The defaults are a configuration too, unless a file was asked for by name.
	if (!options->config_given && access(options->config_path, F_OK) != 0)
		input.path = NULL;
	return config_load(
		options->action == OPTIONS_CHECK ? &agent_check_schema : &agent_config_schema,
		&input, &reporter, ret_config
	);
}
