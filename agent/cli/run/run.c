// SPDX-License-Identifier: BSD-3-Clause
// tocsin run: runs an unmodified job together with libraries that count its operations for the
// agent.
//
// The command runs even if a library or the agent is missing, and keeps its output and exit status.
#include "command.h"
#include "run/child.h"
#include "run/preload.h"
#include "run/program.h"

#include <lib/error.h>
#include <lib/escape.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUOTED_BYTES 200
// Arguments of COMMAND that are inspected; options and programs of a launcher come first.
#define WORDS_INSPECTED_MAX 64
#define MPI_LIBRARY "libtocsin-mpi.so"
#define MPI_BUILT "../lib/job/mpi/"
#define NCCL_LIBRARY "libnccl-profiler-tocsin.so"
#define NCCL_BUILT "../lib/job/nccl/"
#define NCCL_VARIABLE "NCCL_PROFILER_PLUGIN"
#define NCCL_NEXT "TOCSIN_NCCL_PROFILER_NEXT"

enum {
	OPTION_MPI,
	OPTION_NCCL,
	OPTION_AUTO,
	OPTION_QUIET,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_MPI] = {"mpi", NULL, "count MPI operations: LD_PRELOAD gets\n" MPI_LIBRARY},
	[OPTION_NCCL] =
		{"nccl", NULL, "count NCCL operations: " NCCL_VARIABLE " gets\n" NCCL_LIBRARY},
	[OPTION_AUTO] = {"auto", NULL, "count both (the default)"},
	[OPTION_QUIET] = {"quiet", NULL, "do not report what is missing or cannot be followed"},
};

static const struct word_spec words[] = {
	{"COMMAND",
	 "the launcher of a job, or one of its ranks, with its\n"
	 "arguments; programs that it starts on this machine are\n"
	 "followed as well",
	 WORD_COMMAND, false, NULL},
};

static const char details[] =
	"The job is not changed, and never waits for the agent. Without an agent, with a\n"
	"missing library or on a full disk the job runs as it would alone.\n"
	"\n"
	"  tocsin run --mpi -- mpirun -n 4 ./program   follows all ranks\n"
	"  mpirun -n 4 tocsin run --mpi -- ./program   knows their ends, too\n"
	"  srun tocsin run -- ./train                  MPI and NCCL, on all nodes\n"
	"  tocsin comms                                which rank waits for which\n"
	"\n"
	"Launchers of several nodes pass LD_PRELOAD on only if they are told to (mpirun\n"
	"-x LD_PRELOAD); the second form does not need it. Signals, terminal, streams\n"
	"and exit status are those of COMMAND: signals sent to tocsin run reach COMMAND,\n"
	"and if a signal ends COMMAND, it ends tocsin run too. If tocsin run is killed,\n"
	"so is COMMAND. Only SIGSTOP stops tocsin run alone. The agent learns how\n"
	"COMMAND ended, and shows it for the ranks of COMMAND, if COMMAND is a rank.\n"
	"\n"
	"Exit status: that of COMMAND; 125 a mistake in the command line, 126 COMMAND\n"
	"cannot be run, 127 it is not found.\n";

static bool option_is_quiet(const struct arguments *arguments) {
	return arguments->values[OPTION_QUIET] != NULL;
}

// Return the path of a library, or NULL after reporting that it is missing.
static const char *library_find(
	const struct arguments *arguments,
	const char *name,
	const char *built,
	char path[static PATH_MAX]
) {
	if (preload_find(name, built, path) == 0)
		return path;
	if (!option_is_quiet(arguments))
		command_error(
			"run",
			"cannot find %s in %s/tocsin, relative to the directory of tocsin: COMMAND runs without it",
			name, TOCSIN_LIBRARY_FROM_BINDIR
		);
	return NULL;
}

// Return true for the first rank, which alone reports problems if every rank has its own tocsin
// run. Also returns true if no launcher has set a rank.
static bool is_first_rank(void) {
	static const char *const names[] = {
		"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		const char *rank = getenv(names[n]);

		if (rank != NULL)
			return strcmp(rank, "0") == 0;
	}
	return true;
}

static void set_mpi_environment(const struct arguments *arguments) {
	bool reports = !option_is_quiet(arguments) && is_first_rank();
	char *const *command = arguments->command;
	char library_path[PATH_MAX], path[PATH_MAX], quoted[QUOTED_BYTES];
	const char *library = library_find(arguments, MPI_LIBRARY, MPI_BUILT, library_path);
	int err = library != NULL ? preload_add(library) : 0;

	if (err != 0 && !option_is_quiet(arguments))
		command_error(
			"run", "%s: %s: COMMAND runs without it", library,
			err == -EINVAL
				? "the path has a blank or a colon, which LD_PRELOAD does not allow"
				: strerrordesc_np(-err)
		);
	// Report programs that cannot be followed. COMMAND may be a launcher, so each argument that
	// is a program is inspected.
	for (size_t n = 0; n < WORDS_INSPECTED_MAX && reports && command[n] != NULL; n++) {
		bool is_repeated = false;
		const char *why;

		for (size_t k = 0; k < n && !is_repeated; k++)
			is_repeated = strcmp(command[k], command[n]) == 0;
		if (is_repeated || preload_find_program(command[n], path) != 0)
			continue;
		why = program_no_preload_reason(path);
		if (why == NULL)
			continue;
		escape_quote(path, strlen(path), quoted, sizeof(quoted));
		command_error("run", "%s is not followed: %s", quoted, why);
	}
	// The first rank prints which operations the MPI library cannot follow.
	if (!option_is_quiet(arguments))
		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		(void)setenv("TOCSIN_MPI_NOTES", "stderr", 0);
}

// Set the NCCL profiler plugin. A plugin that the job gives by path runs after ours. Any other
// value, such as none, stays unchanged.
static void set_nccl_environment(const struct arguments *arguments) {
	char path[PATH_MAX];
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *before = getenv(NCCL_VARIABLE);
	const char *library = library_find(arguments, NCCL_LIBRARY, NCCL_BUILT, path);

	if (library == NULL || (before != NULL && before[0] != '\0' && before[0] != '/'))
		return;
	// NOLINTBEGIN(concurrency-mt-unsafe): one thread
	if (before != NULL && before[0] == '/' && strcmp(before, library) != 0)
		(void)setenv(NCCL_NEXT, before, 1);
	(void)setenv(NCCL_VARIABLE, library, 1);
	// NOLINTEND(concurrency-mt-unsafe)
}

static int run_exec(const struct arguments *arguments) {
	const char *const *given = arguments->values;
	bool is_all = given[OPTION_AUTO] != NULL ||
		      (given[OPTION_MPI] == NULL && given[OPTION_NCCL] == NULL);
	char path[PATH_MAX];
	int err = preload_find_program(arguments->command[0], path);

	if (err != 0)
		return preload_report_exec_failure("run", arguments->command[0], err);
	if (is_all || given[OPTION_MPI] != NULL)
		set_mpi_environment(arguments);
	if (is_all || given[OPTION_NCCL] != NULL)
		set_nccl_environment(arguments);
	err = child_run(path, arguments->command);
	if (err == -EAGAIN || err == -ENOMEM || err == -EMFILE || err == -ENFILE) {
		// If no child can be created, the command replaces this process, and its exit is
		// not reported to the agent.
		execvp(path, arguments->command);
		err = neg_errno();
	}
	return preload_report_exec_failure("run", arguments->command[0], err);
}

const struct command run_job_command = {
	.name = "run",
	.summary = "Run a job of MPI or NCCL, and count what its ranks do",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.words = words,
	.word_count = sizeof(words) / sizeof(words[0]),
	.usage_status = EXIT_NOT_RUN,
	.run = run_exec,
};
