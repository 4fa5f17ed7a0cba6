// SPDX-License-Identifier: BSD-3-Clause
// tocsin-sim: RAS cores of thousands of nodes with faults, in virtual time.
#include "bench.h"
#include "exhaust.h"
#include "options.h"
#include "result.h"
#include "run.h"
#include "swarm.h"

#include <lib/scoped.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_BROKEN = 1,
	EXIT_USAGE = 2,
	EXIT_TROUBLE = 3,
};

static int main_fail(const char *what, int err) {
	fprintf(stderr, "tocsin-sim: %s: %s\n", what, strerrorname_np(-err));
	return EXIT_TROUBLE;
}

static int main_play(struct options *options) {
	scoped_file FILE *trace = NULL;
	struct result result;
	int err;

	if (options->trace != NULL) {
		trace = fopen(options->trace, "we");
		if (trace == NULL)
			return main_fail(options->trace, -errno);
		options->run.trace = trace;
	}
	err = run_play(&options->run, &result);
	if (err != 0)
		return main_fail(options->run.scenario->name, err);
	if (options->json)
		err = result_print_json(&result, stdout);
	else
		result_print(&result, stdout);
	if (err != 0)
		return main_fail("json", err);
	return result.broken ? EXIT_BROKEN : EXIT_DONE;
}

static int main_swarm(struct options *options) {
	uint32_t broken;
	int err = swarm_play(&options->run, options->swarm, stdout, &broken);

	if (err != 0)
		return main_fail("swarm", err);
	printf("swarm: %u of %u mixes broke an invariant\n", broken, options->swarm);
	return broken > 0 ? EXIT_BROKEN : EXIT_DONE;
}

static int main_exhaust(struct options *options) {
	uint64_t broken;
	int err = exhaust_play(&options->run, &options->exhaust, stdout, &broken);

	if (err != 0)
		return main_fail("exhaust", err);
	return broken > 0 ? EXIT_BROKEN : EXIT_DONE;
}

static int main_bench(struct options *options) {
	bool met;
	int err = bench_play(&options->run, options->json, stdout, &met);

	if (err != 0)
		return main_fail("bench", err);
	return met ? EXIT_DONE : EXIT_BROKEN;
}

int main(int argc, char **argv) {
	struct options options;
	struct parse_error error;

	if (options_parse(argc, argv, OPTIONS_PLAY, &options, &error) != 0) {
		fprintf(stderr, "tocsin-sim: %s\n", error.text);
		return EXIT_USAGE;
	}
	switch (options.act) {
	case OPTIONS_PLAY:
		return main_play(&options);
	case OPTIONS_SWARM:
		return main_swarm(&options);
	case OPTIONS_EXHAUST:
		return main_exhaust(&options);
	case OPTIONS_BENCH:
		return main_bench(&options);
	case OPTIONS_LIST:
		options_list(stdout);
		return EXIT_DONE;
	default:
		options_help(stdout);
		return EXIT_DONE;
	}
}
