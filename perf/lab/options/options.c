// SPDX-License-Identifier: BSD-3-Clause
// Find the command and parse its options.
#include "history/kept.h"
#include "options/options_impl.h"

#include <lib/escape.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_BYTES 80
#define COMMANDS "lat, bw, mesh, net, policy, compare, history, verify"

static bool has_option(int argc, char **argv, const char *long_name, const char *short_name) {
	for (int n = 1; n < argc; n++) {
		if (strcmp(argv[n], long_name) == 0 || strcmp(argv[n], short_name) == 0)
			return true;
	}
	return false;
}

int options_parse(int argc, char **argv, struct options *ret_options) {
	char quoted[QUOTED_BYTES];

	memset(ret_options, 0, sizeof(*ret_options));
	ret_options->action = OPTIONS_HELP;
	if (has_option(argc, argv, "--help", "-h"))
		return 0;
	ret_options->action = OPTIONS_VERSION;
	if (has_option(argc, argv, "--version", "-V"))
		return 0;
	if (argc < 2) {
		fprintf(stderr, "tocsin-perf: needs a command: " COMMANDS "; see --help\n");
		return -EINVAL;
	}
	if (strcmp(argv[1], "lat") == 0)
		return options_parse_measure(argc, argv, PLAN_LAT, ret_options);
	if (strcmp(argv[1], "bw") == 0)
		return options_parse_measure(argc, argv, PLAN_BW, ret_options);
	if (strcmp(argv[1], "mesh") == 0)
		return options_parse_mesh(argc, argv, ret_options);
	if (strcmp(argv[1], "net") == 0) {
		ret_options->action = OPTIONS_NET;
		return 0;
	}
	if (strcmp(argv[1], "policy") == 0) {
		ret_options->action = OPTIONS_POLICY;
		return 0;
	}
	if (kept_is_command(argv[1])) {
		ret_options->action = OPTIONS_FILES;
		return 0;
	}
	escape_quote(argv[1], strlen(argv[1]), quoted, sizeof(quoted));
	fprintf(stderr, "tocsin-perf: unknown command %s; known are: " COMMANDS "; see --help\n",
		quoted);
	return -EINVAL;
}
