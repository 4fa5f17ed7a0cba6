// SPDX-License-Identifier: BSD-3-Clause
// Several runs, each of new processes at both ends, and contenders that take turns: A B B A A B ...
//
// A run is this program once more, with the client's own options and --run N/K: the server begins
// itself anew for the next one. What comes of each is its file, which `compare` takes.
#pragma once

#include "versus.h"
#include "why.h"

#include <stdbool.h>
#include <stdint.h>

#define RUNS_WORDS_MAX 64	// of --against
#define RUNS_PATH_BYTES_MAX 480 // of --json, before a run's name is put into it

struct runs {
	uint32_t count;	       // of each contender
	const char *against;   // options of B, which come after those of A; NULL: no B
	const char *json_path; // each run's name comes before its ".json"; NULL: files are dropped
	uint32_t margin_ppm;
	bool margin_given;
	int signal_fd;
	// How the client was called: the program's name and "lat" first.
	int argc;
	char *const *argv;
};

// Contender and number of the run that is the place'th of all, from 0: 0 is A.
void runs_turn(uint32_t place, bool contended, uint32_t *ret_side, uint32_t *ret_number);

// "r.json" gives "r.3.json", of contenders "r.a3.json".
void runs_file_name(
	const struct runs *runs, uint32_t side, uint32_t number, char *text, size_t size
);

// Plays all, says on standard error which is under way, and tells what they gave. Returns what the
// run that failed ended with, and no further one is played; *ret_result is of contenders.
int runs_play(
	const struct runs *runs,
	struct versus_result *ret_result,
	int *ret_status,
	struct lab_why *why
);
