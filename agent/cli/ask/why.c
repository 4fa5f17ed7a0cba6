// SPDX-License-Identifier: BSD-3-Clause
// tocsin why: the story of one node, job or communicator.
#include "ask/ask.h"
#include "show/answers.h"

static const struct word_spec words[] = {
	{"NAME",
	 "the node; or a job (slurm:1234.0, or 1234); or a communicator (the first\n"
	 "digits of its hash, at least four)",
	 WORD_NAME, false, NULL},
};

static const char details[] =
	"What it is, since when, who says so, what that means, what will follow, and what was seen of it\n"
	"here before, also before the agent's last restart. Of a job or a communicator: which ranks\n"
	"wait in which operation, for whom and how long, and what these do; all nodes are asked.\n"
	"\n" ASK_EXIT_STATUS;

static int why_run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "WHY %s", arguments->words[0]);
	return ask(&why_command, arguments, question, show_why, NULL);
}

const struct command why_command = {
	.name = "why",
	.summary = "Tell the story of one node, job or communicator: what it is, and why",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = why_run,
};
