// SPDX-License-Identifier: BSD-3-Clause
// The command line of tocsind.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_SETTINGS_MAX 256

// What tocsind exits with; tocsind(8) lists them.
enum agent_exit {
	AGENT_EXIT_DONE = 0,	 // left on request
	AGENT_EXIT_FAILED = 1,	 // could not start, or could not go on
	AGENT_EXIT_USAGE = 2,	 // a mistake on the command line or in the configuration
	AGENT_EXIT_CONFLICT = 3, // another live agent holds this node's name
	AGENT_EXIT_REFUSED = 4,	 // the cluster does not let us in: its name or protocol differs
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK, // --check-config
	OPTIONS_PRINT, // --print-config
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_MAN, // the configuration's part of tocsin.conf(5), for the build
};

struct options {
	enum options_action action;
	const char *config_path;
	bool config_given; // else a file that is not there is no error
	bool foreground;
	const char *settings[OPTIONS_SETTINGS_MAX];
	size_t setting_count;
};

// 0, or -EINVAL after a complaint on stderr. The texts stay argv's.
int options_parse(int argc, char **argv, struct options *ret_options);
void options_print_help(void);

struct config;

// Reads the configuration that the options name. 0, or -errno after every mistake has been reported
// on stderr.
int load_config(const struct options *options, struct config **ret_config);
