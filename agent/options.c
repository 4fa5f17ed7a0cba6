// SPDX-License-Identifier: BSD-3-Clause
// Command line of tocsind, and the loading of the configuration.
#include "options.h"

#include "config_schema.h"

#include <lib/escape.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUOTED_BYTES 80

static const char help_text[] =
	"Usage: tocsind [OPTION]...\n"
	"\n"
	"The agent of one node: watches the other nodes of its cluster, and is watched by\n"
	"them.\n"
	"\n"
	"Options:\n"
	"  --config FILE            configuration file; default:\n"
	"                           " TOCSIN_CONFIG_PATH "\n"
	"  --set SECTION.KEY=VALUE  set one key; overrides the file, may be repeated\n"
	"  --check-config [FILE]    report every mistake of the configuration, and what\n"
	"                           does not work on this machine: names, addresses,\n"
	"                           directories, devices, programs; report addresses\n"
	"                           that a running agent holds, and keys that a new\n"
	"                           cluster needs, with the commands; start nothing\n"
	"  --print-config           print the configuration with its defaults and the\n"
	"                           origin of each value; start nothing\n"
	"  --foreground             log for people, not for the journal; tocsind never\n"
	"                           goes to the background by itself\n"
	"  --help, --version, -V\n"
	"\n"
	"Signals: TERM and INT leave the cluster and exit; a second one exits at once.\n"
	"HUP reads the configuration again.\n"
	"\n"
	"Exit status: 0 left on request, 1 could not start or continue, 2 a mistake in an\n"
	"option or the configuration, 3 another live agent has this node's name, 4 the\n"
	"cluster refuses this agent.\n";

static const char *const option_names[] = {
	"--config",	"--set",  "--check-config", "--print-config",
	"--foreground", "--help", "--version",
};

// Report an argument that is not an option. The user probably meant a command of `tocsin`, or gave
// a second file.
static void report_unknown_argument(const char *given) {
	struct suggestion suggestion;
	char quoted[QUOTED_BYTES];

	escape_quote(given, strlen(given), quoted, sizeof(quoted));
	if (given[0] != '-') {
		fprintf(stderr,
			"tocsind: takes no argument %s; see tocsind --help, and tocsin --help for "
			"commands\n",
			quoted);
		return;
	}
	suggestion_init(&suggestion, given);
	for (size_t n = 0; n < sizeof(option_names) / sizeof(option_names[0]); n++)
		suggestion_add(&suggestion, option_names[n], strlen(option_names[n]));
	fprintf(stderr, "tocsind: unknown option %s; %s\n", quoted, suggestion_text(&suggestion));
}

// Return true if argv[*at] is --name; the value is taken from "--name VALUE" or "--name=VALUE".
// *ret_value is NULL if the value is missing.
static bool option_value(int argc, char **argv, int *at, const char *name, const char **ret_value) {
	size_t length = strlen(name);

	if (strncmp(argv[*at], name, length) != 0)
		return false;
	if (argv[*at][length] == '=') {
		*ret_value = argv[*at] + length + 1;
		return true;
	}
	if (argv[*at][length] != '\0')
		return false;
	*ret_value = *at + 1 < argc ? argv[++*at] : NULL;
	return true;
}

static int options_set_path(struct options *options, const char *path) {
	char quoted[QUOTED_BYTES];

	if (path == NULL || path[0] == '\0') {
		fprintf(stderr, "tocsind: --config needs a FILE\n");
		return -EINVAL;
	}
	if (options->config_given && strcmp(options->config_path, path) != 0) {
		escape_quote(path, strlen(path), quoted, sizeof(quoted));
		fprintf(stderr,
			"tocsind: only one configuration file is allowed; %s is a second one\n",
			quoted);
		return -EINVAL;
	}
	options->config_path = path;
	options->config_given = true;
	return 0;
}

static int options_parse_argument(int argc, char **argv, int *at, struct options *options) {
	const char *given = argv[*at];
	const char *value;

	if (strcmp(given, "--help") == 0 || strcmp(given, "-h") == 0)
		options->action = OPTIONS_HELP;
	else if (strcmp(given, "--version") == 0 || strcmp(given, "-V") == 0)
		options->action = OPTIONS_VERSION;
	else if (strcmp(given, "--print-config") == 0)
		options->action = OPTIONS_PRINT;
	else if (strcmp(given, "--print-config-man") == 0)
		options->action = OPTIONS_MAN;
	else if (strcmp(given, "--foreground") == 0)
		options->foreground = true;
	else if (strcmp(given, "--check-config") == 0) {
		options->action = OPTIONS_CHECK;
		if (*at + 1 < argc && argv[*at + 1][0] != '-') // the FILE is optional
			return options_set_path(options, argv[++*at]);
	} else if (option_value(argc, argv, at, "--check-config", &value)) {
		options->action = OPTIONS_CHECK;
		return options_set_path(options, value);
	} else if (option_value(argc, argv, at, "--config", &value)) {
		return options_set_path(options, value);
	} else if (option_value(argc, argv, at, "--set", &value)) {
		if (value == NULL || options->setting_count == OPTIONS_SETTINGS_MAX) {
			fprintf(stderr,
				"tocsind: --set needs SECTION.KEY=VALUE, at most %d times\n",
				OPTIONS_SETTINGS_MAX);
			return -EINVAL;
		}
		options->settings[options->setting_count++] = value;
	} else {
		report_unknown_argument(given);
		return -EINVAL;
	}
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options) {
	struct options options = {.config_path = TOCSIN_CONFIG_PATH};

	for (int at = 1; at < argc; at++) {
		if (options_parse_argument(argc, argv, &at, &options) != 0)
			return -EINVAL;
		if (options.action == OPTIONS_HELP || options.action == OPTIONS_VERSION)
			break;
	}
	*ret_options = options;
	return 0;
}

void options_print_help(void) {
	fputs(help_text, stdout);
}

static void config_print_error(void *context, const char *message) {
	(void)context;
	fprintf(stderr, "tocsind: %s\n", message);
}

int load_config(const struct options *options, struct config **ret_config) {
	const struct config_reporter reporter = {.report = config_print_error};
	struct config_input input = {
		.path = options->config_path,
		.settings = options->settings,
		.setting_count = options->setting_count,
	};

	// Without --config a missing file is no error; the defaults apply.
	if (!options->config_given && access(options->config_path, F_OK) != 0)
		input.path = NULL;
	return config_load(
		options->action == OPTIONS_CHECK ? &agent_check_schema : &agent_config_schema,
		&input, &reporter, ret_config
	);
}
