// SPDX-License-Identifier: BSD-3-Clause
// tocsin links: the connections that the agent has in the overlay.
#include "ask.h"

static const char details[] =
	"The ring comes first (next and prev, with their fallbacks), then the long rings by level.\n"
	"Another node's links: --node NAME.\n"
	"\n" ASK_EXIT_STATUS;

static int run(const struct arguments *arguments) {
	return ask(&links_command, arguments, "LINKS", NULL);
}

const struct command links_command = {
	.name = "links",
	.summary = "List the agent's own connections, with round trips and traffic",
	.details = details,
	.target = TARGET_READ,
	.run = run,
};
