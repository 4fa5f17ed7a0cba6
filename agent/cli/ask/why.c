// SPDX-License-Identifier: BSD-3-Clause
// tocsin why: the story of one node.
#include "ask/ask.h"

static const struct word_spec words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
};

static const char details[] =
	"What it is, since when, who says so, what that means, what will follow, and what was seen of it\n"
	"here before, also before the agent's last restart.\n"
	"\n" ASK_EXIT_STATUS;

static int why_run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "WHY %s", arguments->words[0]);
	return ask(&why_command, arguments, question, NULL);
}

const struct command why_command = {
	.name = "why",
	.summary = "Tell the story of one node: what it is, who says so, what follows",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = why_run,
};
