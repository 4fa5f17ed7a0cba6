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
		 "forget all nodes that are unreachable from this side of\n"
		 "a partition; takes no NAME"},
	[OPTION_REMEMBERED] =
		{"remembered", NULL, "forget the members that this agent would join through"},
};

static const struct word_spec words[] = {
	{"NAME", "the node, which must be dead, unreachable or have left", WORD_NAME, true, NULL},
};

static const char details[] =
	"The order goes to all agents that can be reached. Each of them removes the node\n"
	"from its table, where a dead node would otherwise stay for 7 days, and no\n"
	"longer connects to it. An agent that misses the order may announce the node\n"
	"again. A forgotten node can join again.\n" ASK_ORDER_RIGHTS "\n"
	"A side of a partition that reaches half of the agents or less declares no node\n"
	"dead, however long the partition lasts, because the other side may be the\n"
	"larger one. If the other nodes are gone for good, --unreachable ends that: all\n"
	"agents of this side forget the unreachable nodes. Repeat the order if tocsin\n"
	"status still shows some.\n"
	"\n"
	"--remembered takes no name. Only this agent forgets the members in its state\n"
	"directory, which it would join through after a restart. Use this option for\n"
	"example if machines moved to another cluster. Present members are remembered\n"
	"again within about a minute.\n"
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
			"the nodes that are unreachable from this side are forgotten"
		);
	if (remembered)
		return ask_order(
			&forget_command, arguments, "FORGET --remembered",
			"the members that the agent remembered are forgotten"
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
