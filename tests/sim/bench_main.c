// SPDX-License-Identifier: BSD-3-Clause
// tocsin-sim-bench [--json] [--minutes M] [--seed S]: program behind ./dev bench sim.
#include "bench.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

enum exit_status {
	EXIT_MET = 0,
	EXIT_MISSED = 1,
	EXIT_USAGE = 2,
	EXIT_TROUBLE = 3,
};

int main(int argc, char **argv) {
	struct options options;
	struct parse_error error;
	bool met;
	int err;

	if (options_parse(argc, argv, OPTIONS_BENCH, &options, &error) != 0) {
		fprintf(stderr, "tocsin-sim-bench: %s\n", error.text);
		return EXIT_USAGE;
	}
	err = bench_play(&options.run, options.json, stdout, &met);
	if (err != 0) {
		fprintf(stderr, "tocsin-sim-bench: %s\n", strerrorname_np(-err));
		return EXIT_TROUBLE;
	}
	return met ? EXIT_MET : EXIT_MISSED;
}
