// SPDX-License-Identifier: BSD-3-Clause
// The command line of tocsind.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_SETTINGS_MAX 256

// Exit status of tocsind; tocsind(8) lists them.
enum agent_exit {
	AGENT_EXIT_DONE = 0,	 // left on request
	AGENT_EXIT_FAILED = 1,	 // could not start, or could not continue
	AGENT_EXIT_USAGE = 2,	 // error on the command line or in the configuration
	AGENT_EXIT_CONFLICT = 3, // another live agent holds this node's name
	AGENT_EXIT_REFUSED = 4,	 // refused by the cluster: cluster name or protocol version differs
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK, // --check-config
	OPTIONS_PRINT, // --print-config
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_MAN, // configuration part of tocsin.conf(5), used by the build
};

struct options {
	enum options_action action;
	const char *config_path;
	bool config_given; // --config was given, so a missing file is an error
	bool foreground;
	const char *settings[OPTIONS_SETTINGS_MAX];
	size_t setting_count;
};

// Parse the command line. Returns 0, or -EINVAL after an error message on stderr. The strings still
// belong to argv.
int options_parse(int argc, char **argv, struct options *ret_options);
void options_print_help(void);

struct config;

// Read the configuration that the options name. Returns 0, or -errno after reporting every error on
// stderr.
int load_config(const struct options *options, struct config **ret_config);
