// SPDX-License-Identifier: BSD-3-Clause
// tocsin-perf: a laboratory for the latency of RDMA operations.
#include "history/kept.h"
#include "history/policies.h"
#include "mesh_main.h"
#include "options/options.h"
#include "report/net.h"
#include "report/output.h"
#include "report/page_run.h"
#include "run/exit_status.h"
#include "run/schedule.h"
#include "run/via_agent.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/scoped.h>
#include <lib/standard_streams.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SERVER_ARGS_MAX 256
#define RUN_BYTES 40

static int print_failure(const struct lab_why *why) {
	fprintf(stderr, "tocsin-perf: %s\n", why->text);
	return EXIT_FAILED;
}

// Block the signals and open a descriptor for them. Must be called before any thread is created,
// because threads inherit the mask.
static int open_signals(void) {
	struct sigaction hangup;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);

	// Under nohup SIGHUP is ignored, because the loss of the terminal must not end the run.
	if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
		sigaddset(&wanted, SIGHUP);

	// The reader of standard output may exit; the run and its files must survive that.
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return neg_errno();
	if (pthread_sigmask(SIG_BLOCK, &wanted, NULL) != 0)
		return -EINVAL;
	return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Judge the validity of a run and all thresholds. A failed threshold takes precedence over an
// undecided one and over a saturated run.
static int run_judge(const struct options *options, const struct lab_run *run) {
	int status = EXIT_DONE;

	for (uint32_t size = 0; size < run->count; size++) {
		const struct lab_result *result = &run->results[size];

		if (!result_is_saturated(result))
			continue;
		fprintf(stderr, "tocsin-perf: the run is not valid: saturated, %s (%llu B)\n",
			result->load.reason, (unsigned long long)result->size);
		status = EXIT_UNDECIDED;
	}
	for (uint32_t n = 0; n < options->threshold_count; n++) {
		for (uint32_t size = 0; size < run->count; size++) {
			struct lab_why why = {.text = ""};
			enum threshold_answer answer =
				threshold_judge(&options->thresholds[n], &run->results[size], &why);

			fprintf(stderr, "%s (%llu B)\n", why.text,
				(unsigned long long)run->results[size].size);
			if (answer == THRESHOLD_FAILS)
				status = EXIT_EXCEEDED;
			else if (answer == THRESHOLD_UNDECIDED && status == EXIT_DONE)
				status = EXIT_UNDECIDED;
		}
	}
	return status;
}

// Print the result, unless standard output is one of the requested files, and write these files.
// If one cannot be written, still write the others.
static int run_output(const struct options *options, const struct lab_run *run) {
	const struct {
		const char *path;
		int (*write)(const struct lab_run *run, const char *path, struct lab_why *why);
	} files[] = {
		{options->json_path, output_json},
		{options->csv_path, output_csv},
		{options->hgrm_path, output_hgrm},
		{options->html_path, page_run},
	};
	bool file_is_stdout = false;
	int status = EXIT_DONE;

	for (size_t n = 0; n < sizeof(files) / sizeof(files[0]); n++)
		file_is_stdout |= files[n].path != NULL && strcmp(files[n].path, "-") == 0;
	if (!file_is_stdout) {
		if (options->perftest)
			output_perftest(run);
		else if (run->plan.command == PLAN_BW)
			output_rates(run);
		else
			output_table(run);
	}
	for (size_t n = 0; n < sizeof(files) / sizeof(files[0]); n++) {
		struct lab_why why = {.text = ""};

		if (files[n].path != NULL && files[n].write(run, files[n].path, &why) != 0)
			status = print_failure(&why);
	}
	return status;
}

static int run_several(const struct options *options) {
	static struct versus_result result;
	struct lab_why why = {.text = ""};
	struct runs runs = options->runs;
	int status;

	runs.signal_fd = options->session.signal_fd;
	if (runs_play(&runs, &result, &status, &why) != 0)
		return print_failure(&why);
	if (status != EXIT_DONE)
		fprintf(stderr,
			"tocsin-perf: a run ended with status %d: the remaining runs are skipped\n",
			status);
	return status == EXIT_DONE && runs.against != NULL ? versus_exit_status(&result) : status;
}

static int run_client(const struct options *options) {
	const struct via_agent via = {
		.node = options->via_node,
		.socket = options->agent_socket,
		.plan = options->session.plan,
		.file_bytes = options->session.file_bytes,
		.signal_fd = options->session.signal_fd,
	};
	struct lab_run *run = calloc(1, sizeof(*run));
	struct lab_why why = {.text = ""};
	int status, err, shown, judged;

	if (run == NULL)
		return EXIT_FAILED;
	err = via.node != NULL ? via_agent_run(&via, run, &why)
			       : session_client(&options->session, run, &why);
	shown = run->count > 0 ? run_output(options, run) : EXIT_DONE;
	judged = err == 0 ? run_judge(options, run) : EXIT_DONE;
	status = err != 0 ? print_failure(&why) : shown != EXIT_DONE ? shown : judged;
	run_release(run);
	free(run);
	return status;
}

// Serve one run, and start the next one by execv() with the same arguments. So the next run
// inherits no state.
static int run_server(const struct options *options) {
	struct lab_why why = {.text = ""};
	struct lab_session session = options->session;
	struct plan plan = options->session.plan;
	char *words[SERVER_ARGS_MAX + 2], run[RUN_BYTES];
	scoped_token char token[TOKEN_BYTES] = "";
	scoped_secrets struct proof_secrets secrets = {.count = 0};
	int count = 0;

	if (access_begin_server(&session.access, &secrets, token, &session.token_is_new, &why) != 0)
		return print_failure(&why);
	session.secrets = &secrets;
	session.token = token;
	if (session_server(&session, &plan, &why) != 0)
		return print_failure(&why);
	if (plan.run >= plan.runs)
		return EXIT_DONE;
	for (int n = 0; n < options->runs.argc && count < SERVER_ARGS_MAX; n++) {
		const char *word = options->runs.argv[n];

		if (strncmp(word, "--run=", 6) == 0)
			continue;
		if (strcmp(word, "--run") == 0)
			n++;
		else
			words[count++] = options->runs.argv[n];
	}
	snprintf(run, sizeof(run), "--run=%u/%u", plan.run + 1, plan.runs);
	words[count++] = run;
	words[count] = NULL;
	// All runs have one token. The environment is readable for this user only.
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the process is replaced at once
	setenv(TOKEN_ENVIRONMENT, token, 1);
	execv("/proc/self/exe", words);
	lab_fail(&why, -errno, "the next run cannot begin: %s", strerrordesc_np(errno));
	return print_failure(&why);
}

static int run_measure(struct options *options) {
	const char *const paths[] = {
		options->json_path, options->csv_path, options->hgrm_path, options->html_path};
	struct lab_trace *trace = &options->session.trace;
	bool several = options->runs.count > 0;
	struct lab_why why = {.text = ""};
	bool prepares = !options->is_server && !several;
	scoped_fd int signals = -1;
	int status, err = 0;

	// Check the output files and read the trace before the run, so that no run is lost because
	// of them. Opening a trace may block if it is a pipe. Until it is read, signals still end
	// this process.
	for (size_t n = 0; prepares && n < sizeof(paths) / sizeof(paths[0]) && err == 0; n++)
		err = output_check(paths[n], &why);
	if (err == 0 && prepares && options->session.plan.arrivals == PLAN_TRACE)
		err = schedule_make(
			&options->session.plan, options->trace_path, &why, &trace->due_ns,
			&trace->count
		);
	if (err != 0)
		return print_failure(&why);
	signals = open_signals();
	options->session.signal_fd = signals;
	if (options->is_server)
		return run_server(options);
	status = several ? run_several(options) : run_client(options);
	free(trace->due_ns);
	return status;
}

int main(int argc, char **argv) {
	static struct options options;
	scoped_fd int signals = -1;
	int status = EXIT_USAGE, err;

	standard_streams_open();
	if (options_parse(argc, argv, &options) != 0)
		return EXIT_USAGE;
	switch (options.action) {
	case OPTIONS_HELP:
		options_print_help(argc > 1 ? argv[1] : NULL);
		status = EXIT_DONE;
		break;
	case OPTIONS_VERSION:
		printf("tocsin-perf %s\n", TOCSIN_VERSION);
		status = EXIT_DONE;
		break;
	case OPTIONS_MEASURE:
		status = run_measure(&options);
		break;
	case OPTIONS_MESH:
		signals = open_signals();
		options.session.signal_fd = signals;
		status = mesh_main(&options);
		break;
	case OPTIONS_NET:
		status = net_main(argc, argv);
		break;
	case OPTIONS_POLICY:
		signals = open_signals();
		status = policies_main(argc, argv, signals);
		break;
	case OPTIONS_FILES:
		status = kept_main(argc, argv);
		break;
	}

	// Standard output may be the only copy of a result, so check that it was written.
	err = fflush(stdout) == 0 ? 0 : errno; // 0: an earlier write failed
	if (err == 0 && ferror(stdout) == 0)
		return status;
	fprintf(stderr, "tocsin-perf: standard output cannot be written%s%s\n",
		err != 0 ? ": " : "", err != 0 ? strerrordesc_np(err) : "");
	return status == EXIT_DONE ? EXIT_FAILED : status;
}
