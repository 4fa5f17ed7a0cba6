// SPDX-License-Identifier: BSD-3-Clause
// tocsin comms: the communicators of all jobs, collected from all nodes.
#include "ask/ask.h"

static const char details[] =
	"All nodes are asked; who has not answered by --timeout (1 s to 3600 s, in whole seconds) is\n"
	"counted. tocsin status --nccl tells the same as NCCL's own tools do.\n"
	"\n" ASK_EXIT_STATUS;

static int comms_run(const struct arguments *arguments) {
	return ask(&comms_command, arguments, "COMMS", NULL);
}

const struct command comms_command = {
	.name = "comms",
	.summary = "List the communicators of all jobs: sizes, missing ranks, errors",
	.details = details,
	.target = TARGET_READ,
	.whole_seconds = true,
	.run = comms_run,
};
