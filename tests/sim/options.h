// SPDX-License-Identifier: BSD-3-Clause
// Command line of the simulator.
#pragma once

#include "exhaust.h"
#include "run.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum options_act {
	OPTIONS_PLAY,
	OPTIONS_SWARM,
	OPTIONS_EXHAUST,
	OPTIONS_BENCH,
	OPTIONS_LIST,
	OPTIONS_HELP,
};

struct options {
	enum options_act act;
	struct run_options run;
	uint32_t swarm;
	struct exhaust_options exhaust;
	bool json;
	const char *trace; // path of the trace file
};

// Parse the command line; `act` is the default action. Returns 0, or -EINVAL with a reason that
// names the value and the allowed range.
int options_parse(
	int argc,
	char **argv,
	enum options_act act,
	struct options *ret_options,
	struct parse_error *error
);
void options_help(FILE *to);
void options_list(FILE *to);
