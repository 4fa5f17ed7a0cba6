// SPDX-License-Identifier: BSD-3-Clause
// tocsin log and report: each sends one order to the agent.
#include "ask/ask.h"

#include <string.h>

static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};

static const struct word_spec log_words[] = {
	{"LEVEL", "error, warn, info or debug", WORD_CHOICE, false, log_levels},
};

static const char log_details[] =
	"The level holds until it is changed again or the agent restarts.\n" ASK_ORDER_RIGHTS
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
	.details = log_details,
	.words = log_words,
	.word_count = 1,
	.target = TARGET_ORDER,
	.run = log_run,
};

static const struct word_spec report_words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
	{"REASON", "what was observed, as text of at most 160 bytes", WORD_TEXT, false, NULL},
};

static const char report_details[] =
	"Other agents check a node that is reported. A report alone never suffices to\n"
	"declare a node dead.\n" ASK_ORDER_RIGHTS "\n" ASK_EXIT_STATUS;

static int report_run(const struct arguments *arguments) {
	const char *const *given = arguments->words;
	char question[512];

	snprintf(question, sizeof(question), "REPORT %s %s", given[0], given[1]);
	return ask_order(
		&report_command, arguments, question,
		"%s is reported; tocsin why %s tells what follows", given[0], given[0]
	);
}

const struct command report_command = {
	.name = "report",
	.summary = "Report a node as faulty, so that other agents check it",
	.details = report_details,
	.words = report_words,
	.word_count = 2,
	.target = TARGET_ORDER,
	.run = report_run,
};
