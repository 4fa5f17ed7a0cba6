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
	"One row a check: what it found last, how long ago, how long that took, when it\n"
	"looks again, and how often it found what. Below it stands the reason that its\n"
	"node is told to be in, if there is one, and the evidence. UNKNOWN are runs that\n"
	"timed out, were not to be started or made no sense; they neither fail a check\n"
	"nor clear it. One that \"hangs\" waits in the kernel, where nothing ends it; it\n"
	"is not started again before that is over. Checks are given by [check NAME] in\n"
	"tocsin.conf(5); the others are the agent's own.\n"
	"\n" ASK_EXIT_STATUS;

static int checks_run(const struct arguments *arguments) {
	return ask(&checks_command, arguments, "CHECKS", show_checks, NULL);
}

static const struct record *const checks_records[] = {&check_record, NULL};

const struct command checks_command = {
	.name = "checks",
	.summary = "List the local checks of this node, with their last results",
	.details = checks_details,
	.target = TARGET_READ,
	.records = checks_records,
	.run = checks_run,
};

static const struct option_spec links_options[] = {
	{"rdma", NULL, "the RDMA pairs instead, those that are not ready first"},
	{"all", NULL,
	 "those of all agents, summed up by transport, and the\n"
	 "slowest"},
};
enum { LINKS_RDMA, LINKS_ALL, LINKS_OPTIONS };

static const char links_details[] =
	"The ring comes first (next and prev, with their fallbacks), then the long rings\n"
	"by level. Another node's links: --node NAME.\n"
	"\n"
	"With --rdma: one line for each pair of an own device with a peer's; P50 and P99\n"
	"are of the operations since it was made. Behind them are the bytes a second\n"
	"that went out and came in since then, or why there is no pair: NoCommonFabric\n"
	"(with the device - if no rail of that node belongs to ours), LimitedMembers\n"
	"(both ports are limited members of their partition). With --json also errors,\n"
	"how often pairs of it broke; retransmits are the device's own business, so\n"
	"null. ready^ says that the device here counts congestion now, ready! that it\n"
	"sends pauses most of the time (JSON port_congestion). Below is what memory of\n"
	"GPUs is shown to peers, or why not.\n"
	"\n"
	"With --all: every agent is asked for its TCP links and RDMA pairs. A connection\n"
	"counts at either end; errors of a TCP link are reconnects, those of a pair how\n"
	"often it broke; what a device does not tell is unknown.\n"
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
	"Both ends are asked how they read the other: latency now and by size, what is\n"
	"usual (its median over the last good windows, and how far it spreads), the\n"
	"drift between the two, loss, for how long it has been seen so, the pair behind\n"
	"it. Then the verdicts on both nodes with their evidence, and whom or what a bad\n"
	"path is held against. An end that does not answer is said to.\n"
	"\n"
	"A neighbour on a ring is probed steadily. Others are visited in turn: of those\n"
	"there are fewer numbers, and no baseline. What the words mean: verdicts.md\n"
	"(docs/ in the source, share/doc/tocsin/ where it is installed).\n"
	"\n"
	"With --json: ends (node, answered, error, paths with all numbers in\n"
	"nanoseconds), verdicts, blame.\n"
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
	.summary = "Show what is known of the path between two nodes, from both ends",
	.details = path_details,
	.words = path_words,
	.word_count = 2,
	.target = TARGET_READ,
	.run = path_run,
};

static const char *const peers_states[] = {"alive", "suspect", "unreachable", "dead",
					   "left",  "missing", NULL};

static const struct word_spec peers_words[] = {
	{"STATE",
	 "only those that are alive, suspect, unreachable, dead,\n"
	 "left or missing",
	 WORD_CHOICE, true, peers_states},
};

static const char peers_details[] =
	"States are of agents, not of hosts: a dead agent may be on a live host, see\n"
	"tocsin why. CAUSE is what led to the state; NOTE says self, maint (no alarms)\n"
	"or sole (one observer's word). Who is missing is expected ([overlay] expect)\n"
	"and was not seen.\n"
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
	 "the node; or a job (slurm:1234.0, or 1234); or a\n"
	 "communicator (the first digits of its hash, at least\n"
	 "four)",
	 WORD_NAME, false, NULL},
};

static const char why_details[] =
	"What it is, since when, who says so, what that means, what will follow, and\n"
	"what was seen of it here before, also before the agent's last restart. Of a job\n"
	"or a communicator: which ranks wait in which operation, for whom and how long,\n"
	"and what these do; all nodes are asked.\n"
	"\n" ASK_EXIT_STATUS;

static int why_run(const struct arguments *arguments) {
	char question[128];

	snprintf(question, sizeof(question), "WHY %s", arguments->words[0]);
	return ask(&why_command, arguments, question, show_why, NULL);
}

static const struct record *const why_records[] = {&rank_record, NULL};

const struct command why_command = {
	.name = "why",
	.summary = "Explain the state of one node, job or communicator",
	.details = why_details,
	.words = why_words,
	.word_count = 1,
	.target = TARGET_READ,
	.records = why_records,
	.run = why_run,
};
