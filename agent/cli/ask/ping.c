// SPDX-License-Identifier: BSD-3-Clause
// tocsin ping: sends an echo over the overlay, or reads memory over RDMA.
#include "ask/ask.h"
#include "show/answers.h"

#include <lib/parse.h>

#include <inttypes.h>
#include <string.h>

#define NS_PER_US UINT64_C(1000)
#define READ_TIMEOUT_NS UINT64_C(2000000000) // the agent's timeout for one read

enum {
	OPTION_RDMA,
	OPTION_COUNT,
	OPTION_BYTES,
	OPTION_INTERVAL,
	OPTIONS,
};

static const struct option_spec options[OPTIONS] = {
	[OPTION_RDMA] = {"rdma", NULL, "read over RDMA instead, without the agent of that node"},
	[OPTION_COUNT] = {"count", "N", "with --rdma: number of reads, 1 to 1000000; default 100"},
	[OPTION_BYTES] = {"bytes", "N", "with --rdma: bytes of each read, 1 to 65536; default 8"},
	[OPTION_INTERVAL] =
		{"interval", "US",
		 "with --rdma: microseconds between two reads, 0 to\n"
		 "1000000; default 0"},
};

// Range and default of each numeric option.
static const struct {
	uint64_t min, max, unset;
} bounds[OPTIONS] = {
	[OPTION_COUNT] = {1, 1000000, 100},
	[OPTION_BYTES] = {1, 65536, 8},
	[OPTION_INTERVAL] = {0, 1000000, 0},
};

static const struct word_spec words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
};

static const char details[] =
	"The echo goes from agent to agent, by the same route as questions to other\n"
	"nodes. The default of --timeout is 5 s.\n"
	"\n"
	"With --rdma this node reads the memory page that every agent exposes, one read\n"
	"after the other. A pair is made if there is none. --timeout limits the first\n"
	"read and the making of the pair; its default is 5 s. Each further read may take\n"
	"2 s. A time is measured from the request until the bytes are here.\n"
	"\n"
	"Exit status: 0 the node answers, 1 it does not answer or is unknown, 2 a\n"
	"mistake in the command line, 3 no agent answered.\n";

static int ping_run(const struct arguments *arguments) {
	uint64_t numbers[OPTIONS];
	bool rdma = arguments->values[OPTION_RDMA] != NULL;
	struct parse_error error;
	uint64_t more_ns = 0;
	char question[192];

	for (int option = OPTION_COUNT; option < OPTIONS; option++) {
		const char *given = arguments->values[option];

		numbers[option] = bounds[option].unset;
		if (given == NULL)
			continue;
		if (!rdma) {
			command_error("ping", "--%s needs --rdma", options[option].name);
			return EXIT_USAGE;
		}
		if (parse_u64(
			    given, strlen(given), bounds[option].min, bounds[option].max, &error,
			    &numbers[option]
		    ) != 0) {
			command_error("ping", "--%s: %s", options[option].name, error.text);
			return EXIT_USAGE;
		}
	}
	if (!rdma)
		snprintf(question, sizeof(question), "PING %s", arguments->words[0]);
	else
		snprintf(
			question, sizeof(question), "PROBE %s %" PRIu64 " %" PRIu64 " %" PRIu64,
			arguments->words[0], numbers[OPTION_COUNT], numbers[OPTION_BYTES],
			numbers[OPTION_INTERVAL]
		);
	if (rdma)
		more_ns = numbers[OPTION_COUNT] *
			  (numbers[OPTION_INTERVAL] * NS_PER_US + READ_TIMEOUT_NS);
	return ask_with_extra_time(
		&ping_command, arguments, question, more_ns, rdma ? show_rdma_ping : show_ping, NULL
	);
}

const struct command ping_command = {
	.name = "ping",
	.summary = "Send an echo to a node over the overlay, or read its memory",
	.details = details,
	.options = options,
	.option_count = OPTIONS,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = ping_run,
};
