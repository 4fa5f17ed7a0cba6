// SPDX-License-Identifier: BSD-3-Clause
// tocsin-replay: plays recordings of NCCL's callbacks into a profiler plugin. Each recording has
// its own process, like the ranks of a job.
#include "replay.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_BYTES_MAX (INT64_C(1) << 30)
#define REPEATS_MAX 1000000
#define EXIT_WRONG_USE 2

struct request {
	struct replay_options options;
	uint64_t repeats;
	uint64_t hold_s;
	bool quiet;
};

static const char usage[] =
	"usage: tocsin-replay [OPTION...] RECORDING...\n"
	"\n"
	"Plays each RECORDING of NCCL's profiler callbacks into a plugin, in a process of its own,\n"
	"all at once. A recording is made by a job that runs with TOCSIN_NCCL_RECORD=PATH.\n"
	"\n"
	"  -l, --library PATH   the plugin (default: libnccl-profiler-tocsin.so)\n"
	"  -r, --real-time      at the recorded times, not as fast as can be\n"
	"  -a, --all            also events that the plugin does not ask for\n"
	"  -n, --repeat N       load, play and unload N times (default 1)\n"
	"  -H, --hold SECONDS   let the processes live so long after the last callback, as in a hang\n"
	"  -q, --quiet          say nothing of what was played\n"
	"  -h, --help           this text\n"
	"\n"
	"Exit status: 0, 1 (a recording cannot be read or played), 2 (wrong usage).\n";

// Each process has one thread.
// NOLINTBEGIN(concurrency-mt-unsafe)
static int file_read(const char *path, char **ret_text, size_t *ret_size) {
	FILE *file = fopen(path, "re");
	struct stat status;
	char *text = NULL;
	size_t size = 0;
	int err = 0;

	if (file == NULL)
		return -errno;
	if (fstat(fileno(file), &status) != 0)
		err = -errno;
	else if (!S_ISREG(status.st_mode))
		err = -EINVAL;
	else if (status.st_size > FILE_BYTES_MAX)
		err = -EFBIG;
	if (err == 0)
		text = malloc((size_t)status.st_size + 1);
	if (err == 0 && text == NULL)
		err = -ENOMEM;
	if (err == 0) {
		size = fread(text, 1, (size_t)status.st_size, file);
		err = ferror(file) != 0 ? -EIO : 0;
	}
	if (err == 0) {
		text[size] = '\0';
		*ret_text = text;
		*ret_size = size;
	} else {
		free(text);
	}
	(void)fclose(file);
	return err;
}

static void replay_print_result(
	const char *path, const struct replay *replay, const struct replay_result *result
) {
	fprintf(stdout,
		"%s: interface %d, %" PRIu64 " callbacks played, %" PRIu64
		" not asked for, %" PRIu64 " ns each\n",
		path, replay->version, result->played, result->left_out,
		result->played > 0 ? result->elapsed_ns / result->played : 0);
	(void)fflush(stdout);
}

static int play_one(const char *path, const struct request *request) {
	struct replay replay;
	struct replay_result result = {0};
	struct parse_error error = {0};
	char *text = NULL;
	size_t size = 0;
	uint32_t line;
	int err = file_read(path, &text, &size);

	if (err != 0) {
		fprintf(stderr, "tocsin-replay: %s: %s\n", path, strerror(-err));
		return EXIT_FAILURE;
	}
	err = replay_parse(&replay, text, size, &error, &line);
	if (err != 0)
		fprintf(stderr, "tocsin-replay: %s:%" PRIu32 ": %s\n", path, line,
			err == -ENOMEM ? strerror(ENOMEM) : error.text);
	for (uint64_t n = 0; n < request->repeats && err == 0; n++) {
		err = replay_play(&replay, &request->options, &result);
		if (err != 0)
			fprintf(stderr, "tocsin-replay: %s: %s\n", path,
				result.why[0] != '\0' ? result.why : strerror(-err));
	}
	if (err == 0 && result.failed > 0) {
		fprintf(stderr, "tocsin-replay: %s: %" PRId32 " callbacks did not return 0\n", path,
			result.failed);
		err = -EIO;
	}
	if (err == 0 && !request->quiet)
		replay_print_result(path, &replay, &result);
	replay_fini(&replay);
	if (err == 0 && request->hold_s > 0) {
		const struct timespec hold = {.tv_sec = (time_t)request->hold_s};

		(void)pselect(0, NULL, NULL, NULL, &hold, NULL);
	}
	return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Play each recording in its own process. The processes end with the parent.
static int play_each(char *const *paths, int count, const struct request *request) {
	int status, worst = EXIT_SUCCESS;

	for (int n = 0; n < count; n++) {
		pid_t pid = fork();

		if (pid < 0) {
			fprintf(stderr, "tocsin-replay: fork: %s\n", strerror(errno));
			return EXIT_FAILURE;
		}
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
			exit(play_one(paths[n], request));
		}
	}
	for (int n = 0; n < count; n++) {
		if (wait(&status) < 0)
			return EXIT_FAILURE;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			worst = EXIT_FAILURE;
		if (WIFSIGNALED(status))
			fprintf(stderr, "tocsin-replay: a process was ended by signal %d\n",
				WTERMSIG(status));
	}
	return worst;
}

// NOLINTEND(concurrency-mt-unsafe)

static bool option_number(const char *name, const char *text, uint64_t max, uint64_t *ret_value) {
	struct parse_error error;

	if (parse_u64(text, strlen(text), 1, max, &error, ret_value) == 0)
		return true;
	fprintf(stderr, "tocsin-replay: --%s: %s\n", name, error.text);
	return false;
}

int main(int argc, char **argv) {
	static const struct option options[] = {
		{"library", required_argument, NULL, 'l'}, {"real-time", no_argument, NULL, 'r'},
		{"all", no_argument, NULL, 'a'},	   {"repeat", required_argument, NULL, 'n'},
		{"hold", required_argument, NULL, 'H'},	   {"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},	   {0},
	};
	struct request request = {
		.options.library = "libnccl-profiler-tocsin.so",
		.repeats = 1,
	};
	int letter;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	while ((letter = getopt_long(argc, argv, "l:ran:H:qh", options, NULL)) != -1) {
		switch (letter) {
		case 'l':
			request.options.library = optarg;
			break;
		case 'r':
			request.options.in_real_time = true;
			break;
		case 'a':
			request.options.all = true;
			break;
		case 'n':
			if (!option_number("repeat", optarg, REPEATS_MAX, &request.repeats))
				return EXIT_WRONG_USE;
			break;
		case 'H':
			if (!option_number("hold", optarg, 1000000, &request.hold_s))
				return EXIT_WRONG_USE;
			break;
		case 'q':
			request.quiet = true;
			break;
		case 'h':
			fprintf(stdout, "%s", usage);
			return EXIT_SUCCESS;
		default:
			return EXIT_WRONG_USE;
		}
	}
	if (optind == argc) {
		fprintf(stderr, "tocsin-replay: no recording is given\n%s", usage);
		return EXIT_WRONG_USE;
	}
	if (argc - optind == 1 && request.hold_s == 0)
		return play_one(argv[optind], &request);
	return play_each(argv + optind, argc - optind, &request);
}
