// SPDX-License-Identifier: BSD-3-Clause
// tocsin path: all that is known of the path between two nodes.
#include "ask/ask.h"
#include "show/answers.h"

static const struct word_spec words[] = {
	{"A", "a node", WORD_NAME, false, NULL},
	{"B", "another, or the same: its devices with themselves", WORD_NAME, false, NULL},
};

static const char details[] =
	"Both ends are asked how they read the other: latency now and by size, what is usual (its median\n"
	"over the last good windows, and how far it spreads), the drift between the two, loss, for how\n"
	"long it has been seen so, the pair behind it. Then the verdicts on both nodes with their evidence,\n"
	"and whom or what a bad path is held against. An end that does not answer is said to.\n"
	"\n"
	"A neighbour on a ring is probed steadily. Others are visited in turn: of those there are fewer\n"
	"numbers, and no baseline. What the words mean: verdicts.md (docs/ in the source,\n"
	"share/doc/tocsin/ where it is installed).\n"
	"\n"
	"With --json: ends (node, answered, error, paths with all numbers in nanoseconds), verdicts, blame.\n"
	"\n" ASK_EXIT_STATUS;

static int path_run(const struct arguments *arguments) {
	char question[192];

	snprintf(
		question, sizeof(question), "PATH %s %s", arguments->words[0], arguments->words[1]
	);
	return ask(&path_command, arguments, question, show_path, NULL);
}

const struct command path_command = {
	.name = "path",
	.summary = "Tell all that is known of the path between two nodes, from both ends",
	.details = details,
	.words = words,
	.word_count = 2,
	.target = TARGET_READ,
	.run = path_run,
};
