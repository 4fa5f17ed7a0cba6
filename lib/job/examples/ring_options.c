// SPDX-License-Identifier: BSD-3-Clause
// The command line of the ring example.
#include "ring.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option_row {
	const char *name;
	size_t offset; // offset of a uint32_t or a bool
	bool flag;
	uint32_t max;
	const char *help;
};

#define NUMBER(name, field, max, help) \
	{ name, offsetof(struct ring_options, field), false, max, help }
#define FLAG(name, field, help) \
	{ name, offsetof(struct ring_options, field), true, 0, help }

static const struct option_row rows[] = {
	NUMBER("--ranks", ranks, RANKS_MAX, "N processes, each a rank (8)"),
	NUMBER("--kill",
	       kill,
	       RANKS_MAX - 1,
	       "rank N kills itself; survivors print the delay of the event"),
	NUMBER("--freeze", freeze, RANKS_MAX - 1, "rank N stops itself (SIGSTOP)"),
	NUMBER("--straggle", straggle, RANKS_MAX - 1, "rank N is 20 ms late in each operation"),
	NUMBER("--mismatch", mismatch, RANKS_MAX - 1, "rank N passes another count than all others"
	),
	NUMBER("--pause", pause, RANKS_MAX - 1, "rank N computes for 30 s, then goes on"),
	FLAG("--deadlock", deadlock, "all ranks enter an operation that never ends"),
	FLAG("--cycle", cycle, "odd ranks enter two communicators in the other order"),
	NUMBER("--after", after_s, 3600, "inject the fault after N seconds (1)"),
	FLAG("--signal", on_signal, "inject the fault when ring receives SIGUSR1"),
	NUMBER("--seconds", seconds, 86400, "the job ends after N seconds (60)"),
	NUMBER("--compute", operation_us, 1000000, "N us of computing before each operation (1000)"
	),
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void print_help(FILE *out) {
	fprintf(out,
		"ring [OPTION]...: a job of processes on this machine, for Tocsin to look at\n\n");
	for (size_t n = 0; n < ROW_COUNT; n++)
		fprintf(out, "  %-11s%s   %s\n", rows[n].name, rows[n].flag ? "  " : " N",
			rows[n].help);
	fprintf(out, "  --socket PATH   an agent's job socket; ranks use several sockets in turn\n"
		     "\nWithout --socket: TOCSIN_JOB_SOCKET, else the default path of an agent.\n");
}

static bool read_number(const char *text, uint32_t max, uint32_t *ret_number) {
	uint64_t number = 0;

	if (text == NULL || text[0] == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > max)
			return false;
	}
	*ret_number = (uint32_t)number;
	return true;
}

static void exit_bad_option(const char *name, const char *value, const struct option_row *row) {
	if (row == NULL)
		fprintf(stderr, "ring: unknown option %s; --help lists all options\n", name);
	else
		fprintf(stderr, "ring: %s %s: a number from 0 to %u is needed\n", name,
			value != NULL ? value : "", row->max);
	exit(2); // NOLINT(concurrency-mt-unsafe): one thread
}

// Read one option. Returns the number of words used.
static int read_option(char **words, struct ring_options *options) {
	if (strcmp(words[0], "--socket") == 0) {
		if (words[1] == NULL || options->socket_count == SOCKETS_MAX) {
			fprintf(stderr,
				"ring: --socket needs a path, and can be given at most %u times\n",
				SOCKETS_MAX);
			exit(2); // NOLINT(concurrency-mt-unsafe): one thread
		}
		options->sockets[options->socket_count++] = words[1];
		return 2;
	}
	for (size_t n = 0; n < ROW_COUNT; n++) {
		char *field = (char *)options + rows[n].offset;

		if (strcmp(words[0], rows[n].name) != 0)
			continue;
		if (rows[n].flag) {
			*(bool *)field = true;
			return 1;
		}
		if (!read_number(words[1], rows[n].max, (uint32_t *)(void *)field))
			exit_bad_option(words[0], words[1], &rows[n]);
		return 2;
	}
	exit_bad_option(words[0], NULL, NULL);
	return 0;
}

void ring_options_read(int argc, char **argv, struct ring_options *ret_options) {
	*ret_options = (struct ring_options){
		.ranks = 8,
		.kill = NOBODY,
		.freeze = NOBODY,
		.straggle = NOBODY,
		.mismatch = NOBODY,
		.pause = NOBODY,
		.after_s = 1,
		.seconds = 60,
		.operation_us = 1000,
	};
	for (int n = 1; n < argc;) {
		if (strcmp(argv[n], "--help") == 0) {
			print_help(stdout);
			exit(0); // NOLINT(concurrency-mt-unsafe): one thread
		}
		n += read_option(argv + n, ret_options);
	}
	if (ret_options->ranks < 2) {
		fprintf(stderr, "ring: --ranks %u: at least 2 are needed\n", ret_options->ranks);
		exit(2); // NOLINT(concurrency-mt-unsafe): one thread
	}
	const uint32_t ranks[] = {
		ret_options->kill, ret_options->freeze, ret_options->straggle,
		ret_options->mismatch, ret_options->pause};

	for (size_t n = 0; n < sizeof(ranks) / sizeof(ranks[0]); n++)
		if (ranks[n] != NOBODY && ranks[n] >= ret_options->ranks) {
			fprintf(stderr, "ring: rank %u does not exist: the ranks are 0 to %u\n",
				ranks[n], ret_options->ranks - 1);
			exit(2); // NOLINT(concurrency-mt-unsafe): one thread
		}
}
