// SPDX-License-Identifier: BSD-3-Clause
// tocsin ping: an echo over the overlay's links.
#include "ask.h"

static const struct word_spec words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
};

static const char details[] =
	"The echo goes from agent to agent, by the way that questions to other nodes take. --timeout is\n"
	"5 s if it is not given.\n"
	"\n"
	"Exit status: 0 it answers, 1 it does not or is unknown, 2 a mistake in the command line, 3 no\n"
	"agent answered.\n";

static int run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "PING %s", arguments->words[0]);
	return ask(&ping_command, arguments, question, NULL);
}

const struct command ping_command = {
	.name = "ping",
	.summary = "Send an echo to another node over the overlay",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = run,
};
