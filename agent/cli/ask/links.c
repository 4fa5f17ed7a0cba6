// SPDX-License-Identifier: BSD-3-Clause
// tocsin links: the connections that the agent has in the overlay, its pairs, or those of all.
#include "ask/ask.h"
#include "show/answers.h"

static const struct option_spec options[] = {
	{"rdma", NULL, "the RDMA pairs instead, those that are not ready first"},
	{"all", NULL, "those of all agents, summed up by transport, and the slowest"},
};
enum { OPTION_RDMA, OPTION_ALL, OPTIONS };

static const char details[] =
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
	bool rdma = arguments->values[OPTION_RDMA] != NULL;
	bool all = arguments->values[OPTION_ALL] != NULL;

	if (rdma && all) {
		command_complain("links", "--all shows RDMA pairs too, it does not go with --rdma");
		return EXIT_USAGE;
	}
	if (all)
		return ask(&links_command, arguments, "CONNS", show_conns, NULL);
	if (rdma)
		return ask(&links_command, arguments, "PAIRS", show_pairs, NULL);
	return ask(&links_command, arguments, "LINKS", show_links, NULL);
}

const struct command links_command = {
	.name = "links",
	.summary = "List the agent's own connections, with round trips and traffic",
	.details = details,
	.options = options,
	.option_count = OPTIONS,
	.target = TARGET_READ,
	.run = links_run,
};
