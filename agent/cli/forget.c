// SPDX-License-Identifier: BSD-3-Clause
// tocsin forget: a dead node that will not come back.
#include "ask.h"

static const struct word_spec words[] = {
	{"NAME", "the node, which must be dead, unreachable or have left", WORD_NAME, false, NULL},
};

static const char details[] =
	"The order is passed on to all agents that are reached: each takes the node out of its table,\n"
	"where a dead one would otherwise stay for 7 days, and tries it no more. An agent that does not\n"
	"hear of it now may tell the others of the node again. One that comes back is welcome. Who may\n"
	"give the order: root, the agent's own user, and members of the group that [client] group names.\n"
	"\n" ASK_EXIT_STATUS;

static int run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "FORGET %s", arguments->words[0]);
	return ask_order(
		&forget_command, arguments, question, "%s is forgotten", arguments->words[0]
	);
}

const struct command forget_command = {
	.name = "forget",
	.summary = "Forget a node that is dead, unreachable or has left",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_ORDER,
	.run = run,
};
