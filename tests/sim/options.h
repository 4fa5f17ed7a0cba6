// SPDX-License-Identifier: BSD-3-Clause
// The command line.
#pragma once

#include "run.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum options_act {
	OPTIONS_PLAY,
	OPTIONS_SWARM,
	OPTIONS_BENCH,
	OPTIONS_LIST,
	OPTIONS_HELP,
};

struct options {
	enum options_act act;
	struct run_options run;
	uint32_t swarm;
	bool json;
	const char *trace; // path
};

// `act` is what is done unless an option says otherwise. 0, or -EINVAL with the reason, which
// names the value and what is allowed.
int options_parse(
	int argc,
	char **argv,
	enum options_act act,
	struct options *ret_options,
	struct parse_error *error
);
void options_help(FILE *to);
void options_list(FILE *to);
