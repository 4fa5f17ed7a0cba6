// SPDX-License-Identifier: BSD-3-Clause
// Several runs, each with new processes at both ends, optionally alternating between two
// contenders: A B B A A B ...
//
// A run is this program with the client's options and --run N/K. The server restarts itself for the
// next run. The result of each run is a file, as `compare` needs it.
#pragma once

#include "history/versus.h"
#include "run/why.h"

#include <stdbool.h>
#include <stdint.h>

#define RUNS_PATH_BYTES_MAX 480 // limit for --json without the name of a run
#define RUNS_DIRECTORY_BYTES 512
#define RUNS_FILE_BYTES (RUNS_DIRECTORY_BYTES + 8)

struct runs {
	uint32_t count;	     // runs per contender
	const char *against; // options of B, added to those of A; NULL: no B
	// The name of a run is inserted before ".json"; NULL: files are deleted.
	const char *json_path;
	uint32_t margin_ppm;
	bool margin_given;
	int signal_fd;
	// Command line of the client; it begins with the program's name and "lat".
	int argc;
	char *const *argv;
};

// Create a temporary directory, and the name of a file in it. Returns 0, or -errno with the reason
// in `why`.
int runs_make_directory(
	char directory[static RUNS_DIRECTORY_BYTES],
	char path[static RUNS_FILE_BYTES],
	struct lab_why *why
);

// Play all runs, report progress on standard error and print the results. The first run that fails
// ends the series, and *ret_status is its exit status. *ret_result is set if there are contenders.
// Returns 0, or -errno with the reason in `why`.
int runs_play(
	const struct runs *runs,
	struct versus_result *ret_result,
	int *ret_status,
	struct lab_why *why
);
