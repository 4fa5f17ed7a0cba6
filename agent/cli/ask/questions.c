// SPDX-License-Identifier: BSD-3-Clause
// tocsin checks, links, path, peers and why: each sends one request to the agent and shows the
// answer.
#include "ask/ask.h"
#include "ask/when.h"
#include "show/answers.h"

#include <records/checks.h>
#include <records/communicators.h>
#include <records/connections.h>
#include <records/events.h>
#include <records/gpus.h>
#include <records/history.h>
#include <records/links.h>
#include <records/pairs.h>
#include <records/path.h>
#include <records/paths.h>
#include <records/peers.h>
#include <records/ranks.h>
#include <records/why.h>

static const char checks_details[] =
	"One row for each check: its last result, how long ago it ran, how long the run\n"
	"took, when it runs next, and how often it had each result. Below the row are\n"
	"the reason for which the check marks its node, if there is one, and the\n"
	"evidence. UNKNOWN counts runs that timed out, could not be started or gave no\n"
	"valid result; such a run neither fails a check nor clears it. A check that\n"
	"\"hangs\" waits in the kernel, where no signal ends it; it is not started again\n"
	"until then. [check NAME] in tocsin.conf(5) defines checks; the others are built\n"
	"into the agent.\n"
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
	{"rdma", NULL,
	 "list the RDMA pairs instead; those that are not ready\n"
	 "come first"},
	{"all", NULL,
	 "ask all agents; print a sum for each transport, and the\n"
	 "slowest connections"},
};
enum { LINKS_RDMA, LINKS_ALL, LINKS_OPTIONS };

static const char links_details[] =
	"The ring comes first (next and prev, with their fallbacks), then the longer\n"
	"links by level. For the links of another node: --node NAME.\n"
	"\n"
	"With --rdma there is one line for each pair of an own device with a device of a\n"
	"peer. P50 and P99 are latencies of the operations since the pair was made. Then\n"
	"follow the bytes sent and received per second since then, or the reason why\n"
	"there is no pair: NoCommonFabric (the device is - if no rail of that node is on\n"
	"a fabric of this node), LimitedMembers (both ports are limited members of their\n"
	"partition). --json also has errors, which counts how often the pair broke;\n"
	"retransmits is null, because only the device counts them. ready^ means that the\n"
	"device of this node counts congestion now, ready! that it sends pause frames\n"
	"most of the time (JSON port_congestion). Below the table is the GPU memory that\n"
	"peers can read, or why they cannot.\n"
	"\n"
	"With --all every agent is asked for its TCP links and RDMA pairs. A connection\n"
	"is counted at each of its ends. Errors of a TCP link are reconnects; errors of\n"
	"a pair count how often it broke. Values that a device does not report are\n"
	"unknown.\n"
	"\n" ASK_EXIT_STATUS;

static int links_run(const struct arguments *arguments) {
	bool rdma = arguments->values[LINKS_RDMA] != NULL;
	bool all = arguments->values[LINKS_ALL] != NULL;

	if (rdma && all) {
		command_error("links", "--all shows RDMA pairs too; give it without --rdma");
		return EXIT_USAGE;
	}
	if (all)
		return ask(&links_command, arguments, "CONNS", show_conns, NULL);
	if (rdma)
		return ask(&links_command, arguments, "PAIRS", show_pairs, NULL);
	return ask(&links_command, arguments, "LINKS", show_links, NULL);
}

static const struct record *const links_records[] = {&link_record,
						     &pair_record,
						     &gpu_page_record,
						     &gpu_page_place_record,
						     &transport_record,
						     &connection_record,
						     NULL};

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
	{"B", "another node, or A again: its devices read each other", WORD_NAME, false, NULL},
};

static const char path_details[] =
	"Both ends are asked how they read the other end: latency now and by size, the\n"
	"usual latency (the median of the last good windows, and its spread), the drift\n"
	"between the two, loss, for how long this has been so, and the pair that is\n"
	"used. Then follow the verdicts on both nodes with their evidence, and what is\n"
	"blamed for a bad path. The answer says which end did not answer.\n"
	"\n"
	"A neighbour on a ring is probed all the time. Other nodes are visited in turn,\n"
	"so there are fewer numbers and no baseline for them. verdicts.md explains the\n"
	"words (docs/ in the source, share/doc/tocsin/ where it is installed).\n"
	"\n"
	"With --json: ends (node, answered, error, devices, probing, paths), verdicts,\n"
	"blame.\n"
	"\n" ASK_EXIT_STATUS;

static int path_run(const struct arguments *arguments) {
	char question[192];

	snprintf(
		question, sizeof(question), "PATH %s %s", arguments->words[0], arguments->words[1]
	);
	return ask(&path_command, arguments, question, show_path, NULL);
}

static const struct record *const path_records[] = {
	&path_record,	      &path_detail_record, &path_size_record,
	&path_flow_record,    &gpu_read_record,	   &port_congestion_record,
	&path_verdict_record, &path_blame_record,  NULL};

const struct command path_command = {
	.name = "path",
	.summary = "Show what is known of the path between two nodes, from both ends",
	.details = path_details,
	.words = path_words,
	.word_count = 2,
	.target = TARGET_READ,
	.records = path_records,
	.run = path_run,
};

static const char *const peers_states[] = {"alive", "suspect", "unreachable", "dead",
					   "left",  "missing", NULL};

static const struct option_spec peers_options[] = {
	{"keys", NULL, "fingerprints of the agents' keys instead of causes"},
	{"versions", NULL, "show the version of each agent instead of the cause"},
};

static const struct word_spec peers_words[] = {
	{"STATE",
	 "only nodes in this state: alive, suspect, unreachable,\n"
	 "dead, left or missing",
	 WORD_CHOICE, true, peers_states},
};

static const char peers_details[] =
	"States are those of agents, not of hosts: a host may be alive while its agent\n"
	"is dead; tocsin why NAME tells. CAUSE is what led to the state. NOTE is self,\n"
	"maint (no alarms) or sole (only one observer reports the state). A missing node\n"
	"is expected ([overlay] expect) and was never seen.\n"
	"\n" ASK_EXIT_STATUS;

static int peers_run(const struct arguments *arguments) {
	show_fn *show = show_peers;
	char question[64];

	if (arguments->values[0] != NULL && arguments->values[1] != NULL) {
		command_error("peers", "--keys and --versions are two tables; give one of them");
		return EXIT_USAGE;
	}
	if (arguments->values[0] != NULL)
		show = show_peers_keys;
	else if (arguments->values[1] != NULL)
		show = show_peers_versions;
	snprintf(
		question, sizeof(question), "PEERS %s",
		arguments->words[0] != NULL ? arguments->words[0] : ""
	);
	return ask(&peers_command, arguments, question, show, NULL);
}

static const struct record *const peers_records[] = {&peer_record, NULL};

const struct command peers_command = {
	.name = "peers",
	.summary = "List all nodes and their states, the worst first",
	.details = peers_details,
	.options = peers_options,
	.option_count = 2,
	.words = peers_words,
	.word_count = 1,
	.target = TARGET_READ,
	.records = peers_records,
	.run = peers_run,
};

static const struct word_spec why_words[] = {
	{"NAME",
	 "a node; or a job (slurm:1234.0, or 1234, or the name\n"
	 "that was given to it); or a communicator (the first\n"
	 "digits of its hash, at least four)",
	 WORD_NAME, false, NULL},
};

static const struct option_spec why_options[] = {
	{"at", "TIME",
	 "what this agent knew of a node then: 02:14,\n"
	 "2026-11-29T02:14Z, 3h (ago); see tocsin events --help"},
};

static const char why_details[] =
	"For a node: its state, since when, who reports the state, what it means, what\n"
	"happens next, and the node's history as this agent saw it, including what it\n"
	"saw before its last restart. For a job or a communicator, all nodes are asked:\n"
	"which ranks wait, in which operation, how long, for which ranks, and what those\n"
	"ranks do.\n"
	"\n"
	"With --at: the state and verdict of the node at that time, the evidence, the\n"
	"last events before it, and the paths to it in the half hour before. It is\n"
	"answered from the journal and the history of the agent that is asked; --node\n"
	"asks another one. --json has node, at, state, since, verdict, verdict_since,\n"
	"evidence, oldest (the oldest record), events, paths.\n"
	"\n" ASK_EXIT_STATUS;

static int why_run(const struct arguments *arguments) {
	const char *at = arguments->values[0];
	char question[128 + WHEN_BYTES], when[WHEN_BYTES];

	if (at != NULL) {
		if (!when_translate("why", "at", at, when))
			return EXIT_USAGE;
		snprintf(question, sizeof(question), "WHY %s %s", arguments->words[0], when);
		return ask(&why_command, arguments, question, show_why_at, NULL);
	}
	snprintf(question, sizeof(question), "WHY %s", arguments->words[0]);
	return ask(&why_command, arguments, question, show_why, NULL);
}

static const struct record *const why_records[] = {
	&observation_record,
	&statement_record,
	&past_verdict_record,
	&peer_link_record,
	&peer_pair_record,
	&bad_flow_record,
	&gpu_read_record,
	&gpu_read_place_record,
	&port_congestion_record,
	&event_record,
	&communicator_story_record,
	&diagnosis_record,
	&rank_record,
	&history_path_record,
	&history_point_record,
	NULL};

const struct command why_command = {
	.name = "why",
	.summary = "Explain the state of one node, job or communicator",
	.details = why_details,
	.options = why_options,
	.option_count = 1,
	.words = why_words,
	.word_count = 1,
	.target = TARGET_READ,
	.records = why_records,
	.run = why_run,
};
