// SPDX-License-Identifier: BSD-3-Clause
// What tocsin-perf is asked for on its command line.
#pragma once

#include "mesh_start.h"
#include "runs.h"
#include "session.h"
#include "threshold.h"

#include <stdbool.h>
#include <stdint.h>

enum options_action {
	OPTIONS_HELP,
	OPTIONS_VERSION,
	OPTIONS_MEASURE,
	OPTIONS_MESH,
	OPTIONS_NET,	// net.h
	OPTIONS_POLICY, // policies.h
	OPTIONS_KEPT,	// kept.h
};

struct options {
	enum options_action action;
	struct lab_session session; // of lat and bw; the address is resolved
	bool is_server;		    // no HOST was given
	const char *trace_path;	    // of --arrivals trace:FILE
	// NULL: none; "-": standard output
	const char *json_path, *csv_path, *hgrm_path, *html_path, *svg_path;
	bool perftest; // its columns in place of our table
	struct threshold thresholds[THRESHOLDS_MAX];
	uint32_t threshold_count;
	const char *via_node;	  // lat through agents; NULL: between two ends of ours
	const char *agent_socket; // NULL: where agents have it
	struct mesh_options mesh;
	struct runs runs; // of a client; count 0: one run, of this process
};

// 0, or -EINVAL: what is wrong was said on standard error.
int options_parse(int argc, char **argv, struct options *ret_options);
// Of the command of that name; of all, if there is none such.
void options_print_help(const char *command);
