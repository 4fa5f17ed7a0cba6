// SPDX-License-Identifier: BSD-3-Clause
// tocsin peers: the table of peers, the worst first.
#include "ask/ask.h"
#include "show/answers.h"

static const char *const states[] = {"alive", "suspect", "unreachable", "dead",
				     "left",  "missing", NULL};

static const struct word_spec words[] = {
	{"STATE", "only those that are alive, suspect, unreachable, dead, left or missing",
	 WORD_CHOICE, true, states},
};

static const char details[] =
	"States are of agents, not of hosts: a dead agent may be on a live host, see tocsin why. CAUSE\n"
	"is what led to the state; NOTE says self, maint (no alarms) or sole (one observer's word). Who\n"
	"is missing is expected ([overlay] expect) and was not seen.\n"
	"\n" ASK_EXIT_STATUS;

static int peers_run(const struct arguments *arguments) {
	char question[64];

	snprintf(
		question, sizeof(question), "PEERS %s",
		arguments->words[0] != NULL ? arguments->words[0] : ""
	);
	return ask(&peers_command, arguments, question, show_peers, NULL);
}

const struct command peers_command = {
	.name = "peers",
	.summary = "List all nodes and what they are, the worst first",
	.details = details,
	.words = words,
	.word_count = 1,
	.target = TARGET_READ,
	.run = peers_run,
};
