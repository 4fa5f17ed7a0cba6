// SPDX-License-Identifier: BSD-3-Clause
// tocsin-perf: a laboratory for the latency of RDMA operations.
#include "exit_status.h"
#include "kept.h"
#include "options.h"
#include "output.h"
#include "page_run.h"

#include <lib/clock.h>
#include <lib/scoped.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

static int say(const struct lab_why *why) {
	fprintf(stderr, "tocsin-perf: %s\n", why->text);
	return EXIT_FAILED;
}

// Before any thread is made, so that all inherit it.
static int open_signals(void) {
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	if (pthread_sigmask(SIG_BLOCK, &wanted, NULL) != 0)
		return -EINVAL;
	return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int write_files(const struct options *options, const struct lab_run *run) {
	struct lab_why why = {.text = ""};
	int err = 0;

	if (options->json_path != NULL)
		err = output_json(run, options->json_path, &why);
	if (err == 0 && options->csv_path != NULL)
		err = output_csv(run, options->csv_path, &why);
	if (err == 0 && options->hgrm_path != NULL)
		err = output_hgrm(run, options->hgrm_path, &why);
	if (err == 0 && options->html_path != NULL)
		err = page_run(run, options->html_path, &why);
	return err == 0 ? EXIT_DONE : say(&why);
}

// A threshold that fails outweighs one that is undecided.
static int judge(const struct options *options, const struct lab_run *run) {
	int status = EXIT_DONE;

	for (uint32_t n = 0; n < options->threshold_count; n++) {
		for (uint32_t size = 0; size < run->count; size++) {
			struct lab_why why = {.text = ""};
			enum threshold_answer answer =
				threshold_judge(&options->thresholds[n], &run->results[size], &why);

			fprintf(stderr, "%s (%llu B)\n", why.text,
				(unsigned long long)run->results[size].size);
			if (answer == THRESHOLD_FAILS)
				status = EXIT_PASSED;
			else if (answer == THRESHOLD_UNDECIDED && status == EXIT_DONE)
				status = EXIT_UNDECIDED;
		}
	}
	return status;
}

static bool takes_standard_output(const char *path) {
	return path != NULL && path[0] == '-' && path[1] == '\0';
}

static int show(const struct options *options, const struct lab_run *run) {
	if (takes_standard_output(options->json_path) || takes_standard_output(options->csv_path) ||
	    takes_standard_output(options->hgrm_path) || takes_standard_output(options->html_path))
		return write_files(options, run);
	if (options->perftest)
		output_perftest(run);
	else
		output_table(run);
	return write_files(options, run);
}

static int run_client(const struct options *options) {
	struct lab_run *run = calloc(1, sizeof(*run));
	struct lab_why why = {.text = ""};
	int status, err, shown, judged;

	if (run == NULL)
		return EXIT_FAILED;
	err = session_client(&options->session, run, &why);
	shown = run->count > 0 ? show(options, run) : EXIT_DONE;
	judged = err == 0 ? judge(options, run) : EXIT_DONE;
	status = err != 0 ? say(&why) : shown != EXIT_DONE ? shown : judged;
	run_release(run);
	free(run);
	return status;
}

static int run_server(const struct options *options) {
	struct lab_why why = {.text = ""};

	return session_server(&options->session, &why) == 0 ? EXIT_DONE : say(&why);
}

static int run_lat(struct options *options) {
	scoped_fd int signals = open_signals();

	options->session.signal_fd = signals;
	return options->is_server ? run_server(options) : run_client(options);
}

int main(int argc, char **argv) {
	static struct options options;

	if (options_parse(argc, argv, &options) != 0)
		return EXIT_USAGE;
	switch (options.action) {
	case OPTIONS_HELP:
		options_print_help();
		return EXIT_DONE;
	case OPTIONS_VERSION:
		printf("tocsin-perf %s\n", TOCSIN_VERSION);
		return EXIT_DONE;
	case OPTIONS_LAT:
		return run_lat(&options);
	case OPTIONS_KEPT:
		return kept_main(argc, argv);
	}
	return EXIT_USAGE;
}
