// SPDX-License-Identifier: BSD-3-Clause
// Arguments of policy, its runs, and its files.
#include "history/page_policies.h"
#include "history/policies.h"
#include "history/runs.h"
#include "report/json.h"
#include "report/output.h"
#include "run/again.h"
#include "run/exit_status.h"
#include "run/session.h"

#include <lib/error.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MAX 64
#define ARGUMENT_BYTES (RUNS_FILE_BYTES + 16)
#define CLIENT_NS UINT64_C(30000000000)
#define SERVER_MS 30000
#define RATE_MAX 1000000u
#define ROWS_BYTES ((size_t)24 << 10) // for the file without its runs

static const char *const names[] = {"spin", "window", "event", "adaptive"};
#define POLICY_COUNT (sizeof(names) / sizeof(names[0]))

static const char help[] =
	"is not an option of policy; policy has --rates, --op, --size, --duration, "
	"--device, --timeout, --port, --token-file, --key-file, --json and --html";

struct words {
	char *passed[WORDS_MAX]; // arguments passed to lat unchanged
	uint32_t passed_count;
	char *host;
	const char *json_path, *html_path, *device, *timeout;
	bool duration_given, op_given, port_given, token_given;
	uint32_t rates[POLICIES_LOADS_MAX]; // 0: closed loop
	uint32_t rate_count;
};

struct play {
	const struct words *words;
	int signal_fd;
	int64_t started_ns;
	struct policies policies;
	json_t *runs;
	char path[RUNS_FILE_BYTES]; // file of the current run
};

static int parse_rates(struct words *words, const char *value) {
	struct parse_error error = {.text = ""};

	words->rate_count = 0;
	for (;;) {
		size_t length = strcspn(value, ",");
		uint64_t rate = 0;

		if (words->rate_count == POLICIES_LOADS_MAX)
			return output_usage_error("--rates", "at most 8 loads");
		if ((length != strlen("closed") || strncmp(value, "closed", length) != 0) &&
		    parse_u64(value, length, 1, RATE_MAX, &error, &rate) != 0)
			return output_usage_error("--rates", error.text);
		words->rates[words->rate_count++] = (uint32_t)rate;
		if (value[length] == '\0')
			return 0;
		value += length + 1;
	}
}

static int pass_option_to_lat(struct words *words, char *option, char *value) {
	if (words->passed_count + 2 > WORDS_MAX / 2)
		return output_usage_error(option, "too many options");
	if (strcmp(option, "--size") == 0 &&
	    (strchr(value, ',') != NULL || strcmp(value, "all") == 0))
		return output_usage_error(
			option, "takes one size, because policy measures one message size"
		);
	words->passed[words->passed_count++] = option;
	words->passed[words->passed_count++] = value;
	words->op_given |= strcmp(option, "--op") == 0;
	words->port_given |= strcmp(option, "--port") == 0;
	words->token_given |= strcmp(option, "--token-file") == 0;
	words->duration_given |= strcmp(option, "--duration") == 0;
	if (strcmp(option, "--device") == 0)
		words->device = value;
	if (strcmp(option, "--timeout") == 0)
		words->timeout = value;
	return 0;
}

static int parse_arguments(int argc, char **argv, struct words *words) {
	static const char *const passed[] = {
		"--op",	     "--size", "--duration",   "--device",
		"--timeout", "--port", "--token-file", "--key-file",
	};
	int status = parse_rates(words, "closed,100,1000,5000");

	for (int n = 2; n < argc && status == 0; n++) {
		bool known = strcmp(argv[n], "--json") == 0 || strcmp(argv[n], "--html") == 0 ||
			     strcmp(argv[n], "--rates") == 0;

		for (size_t at = 0; at < sizeof(passed) / sizeof(passed[0]); at++)
			known |= strcmp(argv[n], passed[at]) == 0;
		if (argv[n][0] != '-' && words->host == NULL) {
			words->host = argv[n];
			continue;
		}
		if (!known)
			return output_usage_error(argv[n], help);
		if (n + 1 >= argc)
			return output_usage_error(argv[n], "needs a value");
		if (strcmp(argv[n], "--json") == 0)
			words->json_path = argv[n + 1];
		else if (strcmp(argv[n], "--html") == 0)
			words->html_path = argv[n + 1];
		else if (strcmp(argv[n], "--rates") == 0)
			status = parse_rates(words, argv[n + 1]);
		else
			status = pass_option_to_lat(words, argv[n], argv[n + 1]);
		n++;
	}
	if (status == 0 && words->json_path != NULL && words->html_path != NULL &&
	    strcmp(words->json_path, words->html_path) == 0)
		return output_usage_error("--html", "another option has this file");
	if (status == 0 && words->token_given && words->host == NULL)
		return output_usage_error(
			"--token-file", "needs a HOST; without a HOST policy makes its own token"
		);
	if (status == 0 && words->port_given && words->host == NULL)
		return output_usage_error(
			"--port", "needs a HOST; without a HOST policy starts both ends itself"
		);
	return status;
}

// Make the token of the servers on this machine, and pass it on to both ends of each run.
static int share_token(struct lab_why *why) {
	scoped_token char token[TOKEN_BYTES] = "";
	int err = token_make(token, why);

	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread yet
	if (err == 0 && setenv(TOKEN_ENVIRONMENT, token, 1) != 0)
		err = lab_fail(why, neg_errno(), "setenv: %s", strerrordesc_np(errno));
	return err;
}

// Server process on this machine for one run. It writes its port to the descriptor.
static void write_port(void *ctx, const struct sock_addr *address) {
	const int *fd = ctx;

	if (write(*fd, &address->port, sizeof(address->port)) < 0)
		_exit(EXIT_FAILED);
}

__attribute__((noreturn)) static void server_main(const struct words *words, int fd) {
	struct lab_session session = {
		.address = channel_loopback(),
		.device = words->device,
		.settings = device_settings_default,
		.plan = plan_default,
		.announce = write_port,
		.announce_ctx = &fd,
		.patience_ns = CLIENT_NS,
		.signal_fd = -1,
	};
	struct proof_secrets secrets;
	struct lab_why why = {.text = ""};
	struct parse_error error;
	char token[TOKEN_BYTES];
	struct plan plan;
	uint64_t timeout;
	bool is_new;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (words->timeout != NULL &&
	    parse_u64(words->timeout, strlen(words->timeout), 0, 31, &error, &timeout) == 0)
		session.settings.timeout = (uint8_t)timeout;
	// The client is started by the same process and has the same environment.
	if (access_begin_server(&session.access, &secrets, token, &is_new, &why) != 0)
		_exit(output_failure(&why));
	session.secrets = &secrets;
	_exit(session_server(&session, &plan, &why) == 0 ? EXIT_DONE : output_failure(&why));
}

// Wait until a server process is ready or has ended, which makes `fd` readable. Returns false after
// 30 s, and when the user interrupts.
static bool await_server(int fd, int signal_fd) {
	struct pollfd polled[2] = {
		{.fd = fd, .events = POLLIN},
		{.fd = signal_fd, .events = POLLIN},
	};
	int ready;

	do
		ready = poll(polled, 2, SERVER_MS);
	while (ready < 0 && errno == EINTR);
	return polled[0].revents != 0;
}

static int
start_server(const struct play *play, pid_t *ret_pid, uint16_t *ret_port, struct lab_why *why) {
	int fds[2], err = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return lab_fail(
			why, neg_errno(), "cannot create a pipe: %s", strerrordesc_np(errno)
		);
	pid = fork();
	if (pid == 0)
		server_main(play->words, fds[1]);
	close(fds[1]);
	if (pid < 0 || !await_server(fds[0], play->signal_fd) ||
	    read(fds[0], ret_port, sizeof(*ret_port)) != sizeof(*ret_port))
		err = lab_fail(why, -EIO, "the server process on this machine did not start");
	close(fds[0]);
	// A server that hangs would not end by itself.
	if (err != 0 && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (err == 0)
		*ret_pid = pid;
	return err;
}

static void end_server(pid_t pid, int signal_fd, bool at_once) {
	scoped_fd int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);

	// A server that does not end after its client would block this process for ever.
	if (at_once || (pid_fd >= 0 && !await_server(pid_fd, signal_fd)))
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct arguments {
	char *words[WORDS_MAX + 1];
	uint32_t count;
	char own[9][ARGUMENT_BYTES];
	uint32_t own_count;
};

__attribute__((format(printf, 2, 3))) static void
argument_add(struct arguments *arguments, const char *format, ...) {
	char *text = arguments->own[arguments->own_count++];
	va_list list;

	va_start(list, format);
	vsnprintf(text, ARGUMENT_BYTES, format, list);
	va_end(list);
	arguments->words[arguments->count++] = text;
}

static void arguments_compose(
	const struct play *play,
	const struct policies_row *row,
	uint16_t port,
	struct arguments *arguments
) {
	static char loopback[SOCK_ADDR_TEXT_BYTES], poisson[] = "--arrivals=poisson";
	const struct sock_addr own = channel_loopback();
	const struct words *words = play->words;
	uint32_t place = play->policies.count, total = (uint32_t)POLICY_COUNT * words->rate_count;

	argument_add(arguments, "tocsin-perf");
	argument_add(arguments, "lat");
	for (uint32_t n = 0; n < words->passed_count; n++)
		arguments->words[arguments->count++] = words->passed[n];
	argument_add(arguments, "--policy=%s", row->policy);
	if (!words->op_given)
		argument_add(arguments, "--op=send");
	if (!words->duration_given)
		argument_add(arguments, "--duration=1s");
	if (row->rate > 0) {
		arguments->words[arguments->count++] = poisson;
		argument_add(arguments, "--rate=%u", row->rate);
	}
	if (port > 0)
		argument_add(arguments, "--port=%u", port);
	else
		argument_add(arguments, "--run=%u/%u", place + 1, total);
	argument_add(arguments, "--json=%s", play->path);
	argument_add(arguments, "--json-bytes=%zu", (RESULT_FILE_BYTES - ROWS_BYTES) / total);
	sock_addr_format_host(&own, loopback);
	arguments->words[arguments->count++] = words->host != NULL ? words->host : loopback;
	arguments->words[arguments->count] = NULL;
}

static int
play_row(struct play *play, struct policies_row *row, int *ret_status, struct lab_why *why) {
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	json_t *root = NULL;
	uint16_t port = 0;
	pid_t server = 0;
	int status = 0, err = arguments != NULL ? 0 : lab_fail(why, -ENOMEM, "no memory");
	bool played;

	if (err == 0 && play->words->host == NULL)
		err = start_server(play, &server, &port, why);
	if (err == 0) {
		arguments_compose(play, row, port, arguments);
		err = again_run_child(arguments->words, play->signal_fd, &status, why);
	}
	played = err == 0 && (status == EXIT_DONE || status == EXIT_UNDECIDED);
	if (server > 0)
		end_server(server, play->signal_fd, !played);
	free(arguments);
	*ret_status = status;
	if (err != 0)
		return err;
	if (played) // undecided: the run was saturated
		root = json_load_file(play->path, 0, NULL);
	unlink(play->path);
	if (root != NULL)
		policies_row_read(root, row);
	else
		snprintf(row->why, sizeof(row->why), "its run ended with exit status %d", status);
	return json_array_append_new(play->runs, root != NULL ? root : json_null()) == 0
		       ? 0
		       : lab_fail(why, -ENOMEM, "no memory");
}

// Play all rows. An impossible combination, such as a write with policy event, becomes a row
// without figures. Any other failure ends the series. If the first run, which spins, is rejected,
// no policy is possible: -EINVAL.
static int play_all_rows(struct play *play, struct lab_why *why) {
	const struct words *words = play->words;
	int err = 0, status;

	for (uint32_t load = 0; load < words->rate_count && err == 0; load++) {
		for (size_t n = 0; n < POLICY_COUNT && err == 0; n++) {
			struct policies_row *row = &play->policies.rows[play->policies.count];

			snprintf(row->policy, sizeof(row->policy), "%s", names[n]);
			row->rate = words->rates[load];
			fprintf(stderr, "run %u of %u: %s\n", play->policies.count + 1,
				(uint32_t)POLICY_COUNT * words->rate_count, names[n]);
			err = play_row(play, row, &status, why);
			play->policies.count += err == 0;
			if (err == 0 && play->policies.count == 1 && status == EXIT_USAGE)
				err = lab_fail(
					why, -EINVAL,
					"the first run was rejected, so no policy is measured"
				);
			if (err == 0 && status != EXIT_DONE && status != EXIT_UNDECIDED &&
			    status != EXIT_USAGE)
				err = lab_fail(
					why, -EIO, "a run failed, so the remaining runs are skipped"
				);
		}
	}
	return err;
}

// Build the JSON of the file.
static int make_json(const struct play *play, json_t **ret_root, struct lab_why *why) {
	json_t *root = json_object(), *rows = json_array();
	char started[SHOW_BYTES];
	int failed = 0;

	show_time(play->started_ns, started);
	for (uint32_t n = 0; n < play->policies.count; n++)
		failed |=
			json_array_append_new(rows, policies_row_to_json(&play->policies.rows[n]));
	failed |= json_object_set_new(root, "schema", json_string(POLICIES_JSON_SCHEMA));
	failed |= json_object_set_new(root, "program", json_string("tocsin-perf " TOCSIN_VERSION));
	failed |= json_object_set_new(root, "started", json_string(started));
	failed |= json_object_set_new(root, "rows", rows);
	failed |= json_object_set(root, "runs", play->runs);
	if (failed == 0)
		failed = json_add_digests(root);
	if (failed == 0) {
		*ret_root = root;
		return 0;
	}
	json_decref(root);
	return lab_fail(why, -ENOMEM, "no memory for JSON");
}

static bool path_is_standard_output(const char *path) {
	return path != NULL && strcmp(path, "-") == 0;
}

static int policies_output(const struct play *play) {
	const struct words *words = play->words;
	struct lab_why why = {.text = ""};
	json_t *root = NULL;
	int err;

	if (!path_is_standard_output(words->json_path) &&
	    !path_is_standard_output(words->html_path))
		policies_print(&play->policies);
	if (words->json_path == NULL && words->html_path == NULL)
		return EXIT_DONE;
	err = make_json(play, &root, &why);
	if (err != 0)
		return output_failure(&why);
	if (words->json_path != NULL)
		err = output_json_root(root, words->json_path, &why);
	if (err == 0 && words->html_path != NULL)
		err = page_policies(root, words->html_path, &why);
	json_decref(root);
	return err == 0 ? EXIT_DONE : output_failure(&why);
}

int policies_main(int argc, char **argv, int signal_fd) {
	struct play *play = calloc(1, sizeof(*play));
	struct words words = {.host = NULL};
	int status = parse_arguments(argc, argv, &words), err;
	struct lab_why why = {.text = ""};
	char directory[RUNS_DIRECTORY_BYTES];
	struct timespec now;

	if (status != 0 || play == NULL) {
		free(play);
		return status != 0 ? status : EXIT_FAILED;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	play->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	play->words = &words;
	play->signal_fd = signal_fd;
	play->runs = json_array();
	// Check the output files before the runs.
	err = output_check(words.json_path, &why);
	if (err == 0)
		err = output_check(words.html_path, &why);
	if (err == 0 && words.host == NULL)
		err = share_token(&why);
	if (err == 0)
		err = runs_make_directory(directory, play->path, &why);
	if (err == 0) {
		err = play_all_rows(play, &why);
		(void)rmdir(directory);
	}
	if (play->policies.count > 0 && err != -EINVAL)
		status = policies_output(play);
	if (err != 0)
		status = output_failure(&why);
	if (err == -EINVAL)
		status = EXIT_USAGE;
	json_decref(play->runs);
	free(play);
	return status;
}
