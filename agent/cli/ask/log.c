// SPDX-License-Identifier: BSD-3-Clause
// tocsin log: how much the agent writes into its log.
#include "ask/ask.h"

static const char *const levels[] = {"error", "warn", "info", "debug", NULL};

static const struct word_spec words[] = {
	{"LEVEL", "error, warn, info or debug", WORD_CHOICE, false, levels},
};

static const char details[] =
	"From now on, until it is changed again or the agent restarts. Who may give the order: root, the\n"
	"agent's own user, and members of the group that [client] group names.\n"
	"\n" ASK_EXIT_STATUS;

static int log_run(const struct arguments *arguments) {
	char question[64];

	snprintf(question, sizeof(question), "LOG %s", arguments->words[0]);
	return ask_order(
		&log_command, arguments, question, "the agent logs at level %s", arguments->words[0]
	);
}

const struct command log_command = {
	.name = "log",
	.summary = "Change how much the agent logs",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_ORDER,
	.run = log_run,
};
