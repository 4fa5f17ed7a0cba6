// SPDX-License-Identifier: BSD-3-Clause
// tocsin level: changes how much detail jobs report to the agents of their nodes.
#include "ask/ask.h"

#include <lib/parse.h>

#include <inttypes.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define FOR_MAX_NS (86400 * SECOND_NS)
#define FOR_UNSET_NS (600 * SECOND_NS)
#define JOB_BYTES_MAX 63

enum {
	OPTION_JOB,
	OPTION_FOR,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_JOB] =
		{"job", "ID",
		 "only this job: slurm:1234.0, 1234.0, or 1234 for all its\n"
		 "steps"},
	[OPTION_FOR] =
		{"for", "TIME",
		 "how long the level holds, 1s to 1d, in whole seconds;\n"
		 "default 10m"},
};

static const char *const levels[] = {"default", "launches",	  "network", "sampled",
				     "kernels", "kernels-always", NULL};

static const struct word_spec words[] = {
	{"LEVEL",
	 "launches: operations that each rank launched; network:\n"
	 "also operations that the network completed; kernels:\n"
	 "also begin and end on the GPU; kernels-always: the same,\n"
	 "with NCCL 2.31 and later too; sampled: the same for one\n"
	 "second of each minute; default: as the job chose",
	 WORD_CHOICE, false, levels},
};

static const char details[] =
	"For jobs with Tocsin's NCCL plugin. The level replaces the one that\n"
	"TOCSIN_NCCL_LEVEL chose at the start of the job, except in jobs where the\n"
	"variable switched the plugin off. The level applies to operations that are\n"
	"launched from now on, so it shows nothing more of an operation that already\n"
	"hangs. All agents that can be reached take the order, also for jobs that start\n"
	"later. The newest order for a job holds. Agents that start later do not know of\n"
	"the order.\n" ASK_ORDER_RIGHTS "\n" ASK_EXIT_STATUS;

static int level_run(const struct arguments *arguments) {
	const char *job = arguments->values[OPTION_JOB], *time = arguments->values[OPTION_FOR];
	uint64_t for_ns = FOR_UNSET_NS;
	struct parse_error error;
	char question[128];

	if (time != NULL &&
	    (parse_duration_ns(time, strlen(time), SECOND_NS, FOR_MAX_NS, &error, &for_ns) != 0 ||
	     for_ns % SECOND_NS != 0)) {
		command_error(
			"level", "--for: \"%.40s\" is not a time from 1s to 1d in whole seconds",
			time
		);
		return EXIT_USAGE;
	}
	if (job != NULL &&
	    (job[0] == '\0' || strlen(job) > JOB_BYTES_MAX || strpbrk(job, " \t\r\n") != NULL)) {
		command_error(
			"level", "--job: \"%.40s\" is not a job: give one word of at most %d bytes",
			job, JOB_BYTES_MAX
		);
		return EXIT_USAGE;
	}
	snprintf(
		question, sizeof(question), "LEVEL %s %" PRIu64 "%s%s", arguments->words[0],
		for_ns / SECOND_NS, job != NULL ? " " : "", job != NULL ? job : ""
	);
	return ask_order(
		&level_command, arguments, question, "%s%s %s asked for level %s for %" PRIu64 " s",
		job != NULL ? "job " : "all jobs", job != NULL ? job : "",
		job != NULL ? "is" : "are", arguments->words[0], for_ns / SECOND_NS
	);
}

const struct command level_command = {
	.name = "level",
	.summary = "Change for a limited time how much detail jobs report",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = 1,
	.target = TARGET_ORDER,
	.run = level_run,
};
