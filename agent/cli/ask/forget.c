// SPDX-License-Identifier: BSD-3-Clause
// tocsin forget: removes a dead node that will not come back.
#include "ask/ask.h"

enum {
	OPTION_UNREACHABLE,
	OPTION_REMEMBERED,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_UNREACHABLE] =
		{"unreachable", NULL,
		 "all whom this part of the cluster holds unreachable,\n"
		 "instead of NAME"},
	[OPTION_REMEMBERED] =
		{"remembered", NULL, "forget whom this agent remembers to join through"},
};

static const struct word_spec words[] = {
	{"NAME", "the node, which must be dead, unreachable or have left", WORD_NAME, true, NULL},
};

static const char details[] =
	"The order is passed on to all agents that are reached: each takes the node out\n"
	"of its table, where a dead one would otherwise stay for 7 days, and tries it no\n"
	"more. An agent that does not hear of it now may tell the others of the node\n"
	"again. One that comes back is welcome. Who may give the order: root, the\n"
	"agent's own user, and members of the group that [client] group names.\n"
	"\n"
	"A part that reaches no more than half of the agents declares nobody dead,\n"
	"however long it lasts, for the others may be the larger part. If they are gone\n"
	"for good, --unreachable ends that: all who are reached forget whom they hold\n"
	"unreachable. Give it again if tocsin status still misses some.\n"
	"\n"
	"--remembered takes no name: this agent alone forgets the members that it keeps\n"
	"in its state directory to join through after a restart, as where machines were\n"
	"given to another cluster. Who is a member now is remembered again within a\n"
	"minute or so.\n"
	"\n" ASK_EXIT_STATUS;

static int forget_run(const struct arguments *arguments) {
	bool unreachable = arguments->values[OPTION_UNREACHABLE] != NULL;
	bool remembered = arguments->values[OPTION_REMEMBERED] != NULL;
	char question[128];

	if (unreachable + remembered + (arguments->words[0] != NULL) != 1) {
		command_error("forget", "give one of: a node's NAME, --unreachable, --remembered");
		return EXIT_USAGE;
	}
	if (unreachable)
		return ask_order(
			&forget_command, arguments, "FORGET --unreachable",
			"whom this part holds unreachable is forgotten"
		);
	if (remembered)
		return ask_order(
			&forget_command, arguments, "FORGET --remembered",
			"the members that it remembered are forgotten"
		);
	snprintf(question, sizeof(question), "FORGET %s", arguments->words[0]);
	return ask_order(
		&forget_command, arguments, question, "%s is forgotten", arguments->words[0]
	);
}

const struct command forget_command = {
	.name = "forget",
	.summary = "Forget a node that is dead, unreachable or has left",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 1,
	.target = TARGET_ORDER,
	.run = forget_run,
};
