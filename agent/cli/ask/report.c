// SPDX-License-Identifier: BSD-3-Clause
// tocsin report: a person or a job suspects a node.
#include "ask/ask.h"

static const struct word_spec words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
	{"REASON", "what was seen, in words: at most 160 bytes", WORD_TEXT, false, NULL},
};

static const char details[] =
	"A report makes others look: it is never enough to declare a node dead. Who may give it: root, the\n"
	"agent's own user, and members of the group that [client] group names.\n"
	"\n" ASK_EXIT_STATUS;

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
	.summary = "Report a node as faulty, so that others look at it",
	.details = details,
	.words = words,
	.word_count = 2,
	.target = TARGET_ORDER,
	.run = report_run,
};
