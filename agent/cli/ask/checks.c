// SPDX-License-Identifier: BSD-3-Clause
// tocsin checks: the local checks of the node, as its agent runs them.
#include "ask/ask.h"
#include "show/answers.h"

static const char details[] =
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

const struct command checks_command = {
	.name = "checks",
	.summary = "List the local checks of this node: what they found, when they look again",
	.details = details,
	.target = TARGET_READ,
	.run = checks_run,
};
