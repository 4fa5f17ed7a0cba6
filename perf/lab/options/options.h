// SPDX-License-Identifier: BSD-3-Clause
// Options of the command line of tocsin-perf.
#pragma once

#include "history/runs.h"
#include "mesh/mesh_start.h"
#include "report/threshold.h"
#include "run/session.h"

#include <stdbool.h>
#include <stdint.h>

enum options_action {
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_MEASURE,
	OPTIONS_MESH,
	OPTIONS_NET,	// net.h
	OPTIONS_POLICY, // policies.h
	OPTIONS_FILES,	// kept.h
};

struct options {
	enum options_action action;
	struct lab_session session; // for lat and bw; the address is resolved
	bool is_server;		    // no HOST was given
	const char *trace_path;	    // from --arrivals trace:FILE
	// NULL: none; "-": standard output
	const char *json_path, *csv_path, *hgrm_path, *html_path, *svg_path;
	bool perftest; // print perftest's columns instead of the usual table
	struct threshold thresholds[THRESHOLDS_MAX];
	uint32_t threshold_count;
	// Target node of lat through agents; NULL: lat between two own ends.
	const char *via_node;
	const char *agent_socket; // NULL: default socket
	struct mesh_options mesh;
	struct runs runs; // several runs of a client; count 0: one run in this process
};

// Parse the command line. Returns 0, or -EINVAL after an error message on standard error.
int options_parse(int argc, char **argv, struct options *ret_options);
// Print the help of one command, or of all if there is no command of that name.
void options_print_help(const char *command);
