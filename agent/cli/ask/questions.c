// SPDX-License-Identifier: BSD-3-Clause
// tocsin checks, links, path, peers and why: each sends one request to the agent and shows the
// answer.
#include "ask/ask.h"
#include "show/answers.h"

#include <records/checks.h>
#include <records/connections.h>
#include <records/links.h>
#include <records/pairs.h>
#include <records/peers.h>
#include <records/ranks.h>

static const char checks_details[] =
	"One row a check: what it found last, how long ago, how long that took, when it looks again, and\n"
	"how often it found what. Below it stands the reason that its node is told to be in, if there is\n"
	"one, and the evidence. UNKNOWN are runs that timed out, were not to be started or made no sense;\n"
	"they neither fail a check nor clear it. One that \"hangs\" waits in the kernel, where nothing\n"
	"ends it; it is not started again before that is over. Checks are given by [check NAME] in\n"
	"tocsin.conf(5); the others are the agent's own.\n"
	"\n" ASK_EXIT_STATUS;

static int checks_run(const struct arguments *arguments) {
	return ask(&checks_command, arguments, "CHECKS", show_checks, NULL);
}

static const struct record *const checks_records[] = {&check_record, NULL};

const struct command checks_command = {
	.name = "checks",
	.summary = "List the local checks of this node: what they found, when they look again",
	.details = checks_details,
	.target = TARGET_READ,
	.records = checks_records,
	.run = checks_run,
};

static const struct option_spec links_options[] = {
	{"rdma", NULL, "the RDMA pairs instead, those that are not ready first"},
	{"all", NULL, "those of all agents, summed up by transport, and the slowest"},
};
enum { LINKS_RDMA, LINKS_ALL, LINKS_OPTIONS };

static const char links_details[] =
	"The ring comes first (next and prev, with their fallbacks), then the long rings by level.\n"
	"Another node's links: --node NAME.\n"
	"\n"
	"With --rdma: one line for each pair of an own device with a peer's; P50 and P99 are of the\n"
	"operations since it was made. Behind them are the bytes a second that went out and came in since\n"
	"then, or why there is no pair: NoCommonFabric (with the device - if no rail of that node belongs to\n"
	"ours), LimitedMembers (both ports are limited members of their partition). With --json also errors,\n"
	"how often pairs of it broke; retransmits are the device's own business, so null. ready^ says that\n"
	"the device here counts congestion now, ready! that it sends pauses most of the time (JSON\n"
	"port_congestion). Below is what memory of GPUs is shown to peers, or why not.\n"
	"\n"
	"With --all: every agent is asked for its TCP links and RDMA pairs. A connection counts at\n"
	"either end; errors of a TCP link are reconnects, those of a pair how often it broke; what a\n"
	"device does not tell is unknown.\n"
	"\n" ASK_EXIT_STATUS;

static int links_run(const struct arguments *arguments) {
	bool rdma = arguments->values[LINKS_RDMA] != NULL;
	bool all = arguments->values[LINKS_ALL] != NULL;

	if (rdma && all) {
		command_error("links", "--all shows RDMA pairs too, it does not go with --rdma");
		return EXIT_USAGE;
	}
	if (all)
		return ask(&links_command, arguments, "CONNS", show_conns, NULL);
	if (rdma)
		return ask(&links_command, arguments, "PAIRS", show_pairs, NULL);
	return ask(&links_command, arguments, "LINKS", show_links, NULL);
}

static const struct record *const links_records[] = {
	&link_record, &pair_record, &transport_record, &connection_record, NULL};

const struct command links_command = {
	.name = "links",
	.summary = "List the agent's own connections, with round trips and traffic",
	.details = links_details,
	.options = links_options,
	.option_count = LINKS_OPTIONS,
	.target = TARGET_READ,
	.records = links_records,
	.run = links_run,
};

static const struct word_spec path_words[] = {
	{"A", "a node", WORD_NAME, false, NULL},
	{"B", "another, or the same: its devices with themselves", WORD_NAME, false, NULL},
};

static const char path_details[] =
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
	.details = path_details,
	.words = path_words,
	.word_count = 2,
	.target = TARGET_READ,
	.run = path_run,
};

static const char *const peers_states[] = {"alive", "suspect", "unreachable", "dead",
					   "left",  "missing", NULL};

static const struct word_spec peers_words[] = {
	{"STATE", "only those that are alive, suspect, unreachable, dead, left or missing",
	 WORD_CHOICE, true, peers_states},
};

static const char peers_details[] =
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

static const struct record *const peers_records[] = {&peer_record, NULL};

const struct command peers_command = {
	.name = "peers",
	.summary = "List all nodes and what they are, the worst first",
	.details = peers_details,
	.words = peers_words,
	.word_count = 1,
	.target = TARGET_READ,
	.records = peers_records,
	.run = peers_run,
};

static const struct word_spec why_words[] = {
	{"NAME",
	 "the node; or a job (slurm:1234.0, or 1234); or a communicator (the first\n"
	 "digits of its hash, at least four)",
	 WORD_NAME, false, NULL},
};

static const char why_details[] =
	"What it is, since when, who says so, what that means, what will follow, and what was seen of it\n"
	"here before, also before the agent's last restart. Of a job or a communicator: which ranks\n"
	"wait in which operation, for whom and how long, and what these do; all nodes are asked.\n"
	"\n" ASK_EXIT_STATUS;

static int why_run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "WHY %s", arguments->words[0]);
	return ask(&why_command, arguments, question, show_why, NULL);
}

static const struct record *const why_records[] = {&rank_record, NULL};

const struct command why_command = {
	.name = "why",
	.summary = "Tell the story of one node, job or communicator: what it is, and why",
	.details = why_details,
	.words = why_words,
	.word_count = 1,
	.target = TARGET_READ,
	.records = why_records,
	.run = why_run,
};
