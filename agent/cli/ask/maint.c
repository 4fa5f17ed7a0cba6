// SPDX-License-Identifier: BSD-3-Clause
// tocsin maint: no alarms about a node that is being worked on.
#include "ask/ask.h"

#include <string.h>

static const char *const switches[] = {"on", "off", NULL};

static const struct word_spec words[] = {
	{"NAME", "the node", WORD_NAME, false, NULL},
	{"on|off", "whether it is in maintenance", WORD_CHOICE, false, switches},
};

static const char details[] =
	"All agents learn of it. A node in maintenance raises no alarm and is shown as such. Who may give\n"
	"the order: root, the agent's own user, and members of the group that [client] group names.\n"
	"\n" ASK_EXIT_STATUS;

static int maint_run(const struct arguments *arguments) {
	const char *const *given = arguments->words;
	bool on = strcmp(given[1], "on") == 0;
	char question[128];

	snprintf(question, sizeof(question), "MAINT %s %s", given[0], given[1]);
	return ask_order(
		&maint_command, arguments, question, "%s is %s", given[0],
		on ? "in maintenance: no alarms" : "in service: alarms are raised"
	);
}

const struct command maint_command = {
	.name = "maint",
	.summary = "Switch a node's maintenance on or off",
	.details = details,
	.words = words,
	.word_count = 2,
	.target = TARGET_ORDER,
	.run = maint_run,
};
