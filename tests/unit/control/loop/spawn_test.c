// SPDX-License-Identifier: BSD-3-Clause
// A real helper and real programs. A FIFO shows that programs have ended: it is at its end once
// all writers have closed it.
#include <control/spawn.h>
#include <lib/container.h>
#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)
#define FOR_EVER (1000 * SEC)
#define ABLE_ID 65534 // uid of user nobody
#define SKIPPED 77

struct asker {
	struct spawn_request request;
	bool answered;
	struct spawn_result result;
	char out[SPAWN_OUTPUT_BYTES_MAX + 1], err[SPAWN_OUTPUT_BYTES_MAX + 1];
};

static struct clock monotonic;
static struct loop *loop;
static struct spawn_helper helper;
static pid_t helper_pid;
static struct spawn *spawn;
static char fifo[] = "/tmp/tocsin-spawn-XXXXXX/fifo";
static uint32_t answered_count;

static int begin(void **state) {
	(void)state;
	answered_count = 0;
	log_set_level(LOG_LEVEL_ERROR);
	memcpy(fifo, "/tmp/tocsin-spawn-XXXXXX", sizeof(fifo) - 5);
	fifo[sizeof(fifo) - 6] = '\0';
	assert_non_null(mkdtemp(fifo));
	fifo[sizeof(fifo) - 6] = '/';
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(setenv("FIFO", fifo, 1), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/nowhere", 1), 0);
	clock_init_monotonic(&monotonic);
	assert_int_equal(loop_create(&monotonic, &loop), 0);
	assert_int_equal(spawn_fork(&helper), 0);
	helper_pid = helper.pid;
	assert_int_equal(spawn_create(loop, &helper, &spawn), 0);
	return 0;
}

static int end(void **state) {
	(void)state;
	spawn = spawn_destroy(spawn);
	loop = loop_destroy(loop);
	unlink(fifo);
	fifo[sizeof(fifo) - 6] = '\0';
	return rmdir(fifo);
}

static void copy_text(const struct spawn_text *text, char *copy) {
	memcpy(copy, text->bytes, text->size);
	copy[text->size] = '\0';
}

static void ended(struct spawn_request *request, const struct spawn_result *result) {
	struct asker *asker = container_of(request, struct asker, request);

	assert_false(asker->answered);
	assert_null(request->job);
	asker->answered = true;
	asker->result = *result;
	copy_text(&result->out, asker->out);
	copy_text(&result->err, asker->err);
	answered_count++;
}

static int run_argv(struct asker *asker, const char *const *argv, uint64_t timeout_ns) {
	memset(asker, 0, sizeof(*asker));
	asker->request.ended = ended;
	return spawn_run(
		spawn,
		&(struct spawn_program){
			.argv = argv,
			.timeout_ns = timeout_ns,
			.output_max = SPAWN_OUTPUT_BYTES_MAX,
		},
		&asker->request
	);
}

static int run(struct asker *asker, const char *script, uint64_t timeout_ns) {
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};

	return run_argv(asker, argv, timeout_ns);
}

static void turn_until_answered(uint32_t count) {
	while (answered_count < count)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static void run_to_end(struct asker *asker, const char *script, uint64_t timeout_ns) {
	assert_int_equal(run(asker, script, timeout_ns), 0);
	assert_false(asker->answered);
	turn_until_answered(answered_count + 1);
}

// Return once a program has opened the FIFO for writing.
static int open_fifo(void) {
	int fd = open(fifo, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

// Return once all writers have closed the FIFO, which here means that they have ended.
static void wait_closed(int fd) {
	char bytes[64];
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		continue;
	assert_int_equal(got, 0);
	close(fd);
}

static void the_end_of_a_program_is_told(void **state) {
	static const struct {
		const char *script;
		enum spawn_end end;
		int status;
		const char *out, *err;
	} cases[] = {
		{"exit 0", SPAWN_EXITED, 0, "", ""},
		{"echo said; exit 3", SPAWN_EXITED, 3, "said\n", ""},
		{"echo out; echo err >&2", SPAWN_EXITED, 0, "out\n", "err\n"},
		{"kill -9 $$", SPAWN_SIGNALLED, SIGKILL, "", ""},
		{"kill -TERM $$", SPAWN_SIGNALLED, SIGTERM, "", ""},
		{"printf 'a\\000b'", SPAWN_EXITED, 0, "a", ""},
		{"cat; echo $?", SPAWN_EXITED, 0, "0\n", ""},
		{"ls /proc/self/fd | wc -l", SPAWN_EXITED, 0, "4\n", ""},
		{"grep -c 'SigIgn:.*00000000[01]*$' /proc/self/status", SPAWN_EXITED, 0, "1\n", ""},
		{"grep -c 'SigBlk:.*0000000000000000' /proc/self/status", SPAWN_EXITED, 0, "1\n",
		 ""},
		{"echo ${NOTIFY_SOCKET-none}", SPAWN_EXITED, 0, "none\n", ""},
	};
	static struct asker asker;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		run_to_end(&asker, cases[n].script, FOR_EVER);
		assert_string_equal(spawn_end_name(asker.result.end), spawn_end_name(cases[n].end));
		assert_int_equal(asker.result.status, cases[n].status);
		assert_string_equal(asker.out, cases[n].out);
		assert_string_equal(asker.err, cases[n].err);
		assert_false(asker.result.out.cut);
	}
	assert_int_equal(spawn_counters(spawn)->runs, COUNT_OF(cases));
}

static void a_program_that_is_not_there_is_not_started_and_says_why(void **state) {
	static const struct {
		const char *program;
		int err;
	} cases[] = {
		{"/nowhere/at-all", -ENOENT}, {"/etc/passwd", -EACCES}, {"/tmp", SPAWN_REFUSED}};
	static struct asker asker;

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		const char *const argv[] = {cases[n].program, NULL};

		assert_int_equal(run_argv(&asker, argv, FOR_EVER), 0);
		turn_until_answered(n + 1);
		assert_int_equal(asker.result.end, SPAWN_NOT_STARTED);
		assert_int_equal(asker.result.status, cases[n].err);
	}
	assert_int_equal(spawn_counters(spawn)->failed, COUNT_OF(cases));
}

static void expect_refused(const char *program, const char *object, const char *why) {
	const char *const argv[] = {program, NULL};
	static struct asker asker;
	char reason[PATH_MAX + 100];
	uint32_t answers = answered_count + 1;

	assert_int_equal(run_argv(&asker, argv, FOR_EVER), 0);
	turn_until_answered(answers);
	assert_int_equal(asker.result.end, SPAWN_NOT_STARTED);
	assert_int_equal(asker.result.status, SPAWN_REFUSED);
	snprintf(reason, sizeof(reason), "\"%s\": %s", object, why);
	if (strstr(asker.err, reason) == NULL)
		fail_msg("\"%s\" is not in: %s", reason, asker.err);
}

static void a_program_that_others_could_have_changed_is_refused(void **state) {
	char place[] = "/tmp/spawn-trust-XXXXXX", inner[64], program[80], link[64], cut[120];
	const char *const argv[] = {link, NULL};
	static struct asker asker;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(place));
	snprintf(inner, sizeof(inner), "%s/inner", place);
	snprintf(program, sizeof(program), "%s/program", inner);
	snprintf(link, sizeof(link), "%s/link", place);
	assert_return_code(mkdir(inner, 0700), errno);
	file = fopen(program, "we");
	assert_non_null(file);
	fputs("#!/bin/sh\necho $0 $#\n", file);
	fclose(file);
	assert_return_code(symlink(program, link), errno);
	assert_return_code(chmod(program, 0755), errno);
	assert_int_equal(run_argv(&asker, argv, FOR_EVER), 0);
	turn_until_answered(answered_count + 1);
	assert_int_equal(asker.result.end, SPAWN_EXITED);
	// The resolved path is executed, since the link may change after the check.
	snprintf(cut, sizeof(cut), "%s 0\n", program);
	assert_string_equal(asker.out, cut);
	assert_return_code(chmod(program, 0757), errno);
	expect_refused(link, program, "other users can write to this program (mode 0757)");
	assert_return_code(chmod(program, 0755), errno);
	assert_return_code(chmod(inner, 0777), errno);
	expect_refused(program, inner, "other users can write to this directory (mode 0777)");
	expect_refused(link, inner, "other users can write to this directory (mode 0777)");
	assert_return_code(chmod(inner, 0700), errno);
	if (geteuid() == 0) {
		assert_return_code(chown(program, 12345, 0), errno);
		expect_refused(program, program, "belongs to user 12345; it must belong to root");
		// Members of the group root are trusted; other groups are not.
		assert_return_code(chown(program, 0, 0), errno);
		assert_return_code(chmod(program, 0775), errno);
		assert_int_equal(run_argv(&asker, argv, FOR_EVER), 0);
		turn_until_answered(answered_count + 1);
		assert_int_equal(asker.result.end, SPAWN_EXITED);
		assert_return_code(chown(program, 0, 12345), errno);
		expect_refused(program, program, "other users can write to this program");
	}
	unlink(link);
	unlink(program);
	rmdir(inner);
	rmdir(place);
}

static void a_program_is_the_first_to_go_when_memory_runs_out(void **state) {
	static struct asker asker;

	(void)state;
	run_to_end(&asker, "cat /proc/self/oom_score_adj", FOR_EVER);
	assert_string_equal(asker.out, "1000\n");
}

static void arguments_come_as_they_are(void **state) {
	const char *const argv[] = {"/usr/bin/printf", "%s|", "a b", "", "$HOME", "\xff\n", NULL};
	static struct asker asker;

	(void)state;
	assert_int_equal(run_argv(&asker, argv, FOR_EVER), 0);
	turn_until_answered(1);
	assert_string_equal(asker.out, "a b||$HOME|\xff\n|");
}

static void what_is_said_past_the_cap_is_dropped_and_blocks_nobody(void **state) {
	static struct asker asker;
	const char *const argv[] = {"/bin/sh", "-c", "head -c 1000000 /dev/zero; echo e >&2", NULL};

	(void)state;
	run_to_end(&asker, "head -c 1000000 /dev/zero; head -c 32768 /dev/zero >&2", FOR_EVER);
	assert_int_equal(asker.result.end, SPAWN_EXITED);
	assert_int_equal(asker.result.out.size, SPAWN_OUTPUT_BYTES_MAX);
	assert_true(asker.result.out.cut);
	assert_int_equal(asker.result.err.size, SPAWN_OUTPUT_BYTES_MAX);
	assert_false(asker.result.err.cut);
	memset(&asker, 0, sizeof(asker));
	asker.request.ended = ended;
	assert_int_equal(
		spawn_run(
			spawn, &(struct spawn_program){.argv = argv, .timeout_ns = FOR_EVER},
			&asker.request
		),
		0
	);
	turn_until_answered(2);
	assert_int_equal(asker.result.out.size + asker.result.err.size, 0);
	assert_true(asker.result.out.cut && asker.result.err.cut);
}

static void a_deadline_ends_the_program_and_what_it_started(void **state) {
	static const char *const scripts[] = {
		"sleep 1000 > $FIFO & sleep 1000",
		"trap '' TERM; sh -c \"trap '' TERM; sleep 1000; sleep 1000\" > $FIFO & "
		"while :; do sleep 1000; done",
	};
	static struct asker asker;

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(scripts); n++) {
		int fd;

		// Open without waiting: on a slow machine the deadline passes before the program
		// opens the FIFO.
		fd = open(fifo, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		assert_int_equal(run(&asker, scripts[n], SEC / 4), 0);
		turn_until_answered(n + 1);
		assert_int_equal(asker.result.end, SPAWN_TIMED_OUT);
		assert_true(asker.result.took_ns >= SEC / 4);
		assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
		wait_closed(fd);
	}
	assert_int_equal(spawn_counters(spawn)->timed_out, 2);
}

static void what_a_program_leaves_behind_ends_with_it(void **state) {
	static struct asker asker;
	int fd;

	(void)state;
	assert_int_equal(run(&asker, "exec 3>$FIFO; sleep 1000 & echo done", FOR_EVER), 0);
	fd = open_fifo();
	turn_until_answered(1);
	assert_int_equal(asker.result.end, SPAWN_EXITED);
	assert_string_equal(asker.out, "done\n");
	wait_closed(fd);
}

static void a_cancelled_program_is_killed_and_not_answered(void **state) {
	static struct asker asker, other;
	int fd;

	(void)state;
	assert_int_equal(run(&asker, "exec sleep 1000 > $FIFO", FOR_EVER), 0);
	fd = open_fifo();
	spawn_cancel(&asker.request);
	spawn_cancel(&asker.request);
	wait_closed(fd);
	run_to_end(&other, "echo still", FOR_EVER);
	assert_string_equal(other.out, "still\n");
	assert_false(asker.answered);
}

static void many_requests_are_bounded_and_all_are_answered(void **state) {
	static struct asker askers[100];
	uint32_t taken = 0;

	(void)state;
	for (uint32_t n = 0; n < 100; n++) {
		int err = run(&askers[n], "exit 5", FOR_EVER);

		assert_int_equal(err, n < SPAWN_PENDING_MAX ? 0 : -EAGAIN);
		taken += err == 0;
	}
	// A program that still waits for a slot is not run at all.
	spawn_cancel(&askers[SPAWN_PENDING_MAX - 1].request);
	turn_until_answered(taken - 1);
	for (uint32_t n = 0; n < taken - 1; n++)
		assert_int_equal(askers[n].result.status, 5);
	assert_int_equal(spawn_counters(spawn)->refused, 100 - SPAWN_PENDING_MAX);
	run_to_end(&askers[99], "exit 6", FOR_EVER);
	assert_int_equal(askers[99].result.status, 6);
}

static void a_request_that_cannot_be_is_refused(void **state) {
	static char long_text[SPAWN_ARGUMENT_BYTES_MAX + 1];
	const char *many[SPAWN_ARGUMENTS_MAX + 2] = {NULL};
	const char *const nothing[] = {NULL};
	const char *const no_path[] = {"echo", NULL};
	const char *const too_long[] = {"echo", long_text, NULL};
	static struct asker asker;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	for (uint32_t n = 0; n <= SPAWN_ARGUMENTS_MAX; n++)
		many[n] = "x";
	assert_int_equal(run_argv(&asker, nothing, FOR_EVER), -EINVAL);
	assert_int_equal(run_argv(&asker, no_path, FOR_EVER), -EINVAL);
	assert_int_equal(run_argv(&asker, too_long, FOR_EVER), -E2BIG);
	assert_int_equal(run_argv(&asker, many, FOR_EVER), -E2BIG);
	many[SPAWN_ARGUMENTS_MAX] = NULL;
	many[0] = "/bin/true";
	assert_int_equal(run_argv(&asker, many, FOR_EVER), 0);
	turn_until_answered(1);
	assert_int_equal(asker.result.status, 0);
}

static void a_helper_that_dies_loses_the_requests_and_takes_no_more(void **state) {
	static struct asker askers[20];
	int fd;

	(void)state;
	assert_int_equal(run(&askers[0], "exec sleep 1000 > $FIFO", FOR_EVER), 0);
	for (uint32_t n = 1; n < 20; n++)
		assert_int_equal(run(&askers[n], "sleep 1000", FOR_EVER), 0);
	fd = open_fifo();
	assert_int_equal(spawn_counters(spawn)->helper_lost, 0);
	kill(helper_pid, SIGKILL);
	turn_until_answered(20);
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(askers[n].result.end, SPAWN_LOST);
	assert_int_equal(run(&askers[0], "exit 0", FOR_EVER), -EPIPE);
	assert_int_equal(spawn_counters(spawn)->helper_lost, 1);
	assert_int_equal(spawn_counters(spawn)->lost, 20);
	wait_closed(fd); // the helper's programs ended with it
}

static void programs_and_helper_end_with_the_agents_side(void **state) {
	static struct asker asker;
	int fd;

	(void)state;
	assert_int_equal(run(&asker, "trap '' TERM; exec sleep 1000 > $FIFO", FOR_EVER), 0);
	fd = open_fifo();
	spawn = spawn_destroy(spawn);
	wait_closed(fd);
	assert_null(asker.request.job);
	assert_false(asker.answered);
	assert_int_equal(kill(helper_pid, 0), -1); // reaped, so the pid no longer exists
	assert_int_equal(errno, ESRCH);
}

static void an_agent_that_is_killed_takes_helper_and_programs_along(void **state) {
	pid_t agent = fork();
	int fd;

	(void)state;
	if (agent == 0) {
		static struct asker asker;
		struct spawn_helper own;
		struct spawn *other;

		if (spawn_fork(&own) != 0 || spawn_create(loop, &own, &other) != 0)
			_exit(1);
		asker.request.ended = ended;
		spawn_run(
			other,
			&(struct spawn_program){
				.argv = (const char *const[]
				){"/bin/sh", "-c", "exec sleep 1000 > $FIFO", NULL},
				.timeout_ns = FOR_EVER,
			},
			&asker.request
		);
		pause();
	}
	fd = open_fifo();
	kill(agent, SIGKILL);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	wait_closed(fd);
}

static int run_program(struct asker *asker, const struct spawn_program *program) {
	memset(asker, 0, sizeof(*asker));
	asker->request.ended = ended;
	return spawn_run(spawn, program, &asker->request);
}

static void what_is_given_is_read_from_standard_input_and_then_its_end(void **state) {
	static char large[SPAWN_INPUT_BYTES_MAX];
	static struct asker asker;
	struct spawn_program program = {
		.argv = (const char *const[]){"/bin/cat", NULL},
		.timeout_ns = FOR_EVER,
		.output_max = SPAWN_OUTPUT_BYTES_MAX,
	};

	(void)state;
	memset(large, 'x', sizeof(large));
	large[0] = '\0';
	for (size_t size = 0; size <= sizeof(large); size = size * 127 + 1) {
		program.input = large;
		program.input_bytes = size;
		assert_int_equal(run_program(&asker, &program), 0);
		turn_until_answered(answered_count + 1);
		assert_int_equal(asker.result.out.size, size);
		assert_memory_equal(asker.out, large, size);
	}
	program.input_bytes = sizeof(large) + 1;
	assert_int_equal(run_program(&asker, &program), -E2BIG);
}

static void a_program_that_reads_nothing_of_its_input_ends_as_others(void **state) {
	static struct asker asker;

	(void)state;
	assert_int_equal(
		run_program(
			&asker,
			&(struct spawn_program){
				.argv = (const char *const[]){"/bin/true", NULL},
				.input = "unread",
				.input_bytes = 6,
				.timeout_ns = FOR_EVER,
			}
		),
		0
	);
	turn_until_answered(1);
	assert_int_equal(asker.result.end, SPAWN_EXITED);
	assert_int_equal(asker.result.status, 0);
}

static const char *const who[] = {
	"/bin/sh", "-c", "id -un; id -Gn; echo $HOME $USER $LOGNAME; exec 3</etc/shadow", NULL};

static void a_program_of_another_user_has_its_rights_and_no_more(void **state) {
	static struct asker asker;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root runs programs of other users\n");
		skip();
	}
	assert_int_equal(
		run_program(
			&asker,
			&(struct spawn_program){
				.argv = who,
				.user = "nobody",
				.timeout_ns = FOR_EVER,
				.output_max = 1000,
			}
		),
		0
	);
	turn_until_answered(1);
	assert_int_equal(asker.result.end, SPAWN_EXITED);
	assert_int_not_equal(asker.result.status, 0);
	assert_string_equal(asker.out, "nobody\nnogroup\n/nonexistent nobody nobody\n");
	assert_non_null(strstr(asker.err, "Permission denied"));
}

// Become a user that has these capabilities and passes them on, like an agent with User= and
// AmbientCapabilities= of systemd. Returns false if this test lacks the permission.
static bool become_able(void) {
	static const int able[] = {CAP_SETUID, CAP_SETGID, CAP_KILL};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresgid(ABLE_ID, ABLE_ID, ABLE_ID) != 0 ||
	    setresuid(ABLE_ID, ABLE_ID, ABLE_ID) != 0)
		return false;
	for (size_t n = 0; n < sizeof(able) / sizeof(able[0]); n++)
		data[0].inheritable |= UINT32_C(1) << able[n];
	data[0].permitted = data[0].effective = data[0].inheritable;
	if (syscall(SYS_capset, &header, data) != 0)
		return false;
	for (size_t n = 0; n < sizeof(able) / sizeof(able[0]); n++) {
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, able[n], 0, 0) != 0)
			return false;
	}
	return true;
}

// Return the exit status of an agent in a separate process: 0 if the program had no capability.
static int run_from_able_agent(void) {
	static struct asker asker;
	const struct spawn_program program = {
		.argv = (const char *const[]){"/bin/grep", "CapEff", "/proc/self/status", NULL},
		.user = "daemon",
		.timeout_ns = FOR_EVER,
		.output_max = 1000,
	};

	if (!become_able())
		return SKIPPED;
	if (loop_create(&monotonic, &loop) != 0 || spawn_fork(&helper) != 0 ||
	    spawn_create(loop, &helper, &spawn) != 0 || run_program(&asker, &program) != 0)
		return 2;
	turn_until_answered(1);
	return strcmp(asker.out, "CapEff:\t0000000000000000\n") != 0;
}

static void capabilities_of_an_agent_stay_with_it(void **state) {
	int status;
	pid_t agent;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root runs programs of other users\n");
		skip();
	}
	agent = fork();
	if (agent == 0)
		_exit(run_from_able_agent());
	assert_int_equal(waitpid(agent, &status, 0), agent);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("no capabilities are to be given here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_user_that_does_not_exist_is_said(void **state) {
	static struct asker asker;
	char longest[SPAWN_USER_BYTES_MAX + 1];
	struct spawn_program program = {
		.argv = who, .user = "who-is-that", .timeout_ns = FOR_EVER, .output_max = 1000};

	(void)state;
	assert_int_equal(run_program(&asker, &program), 0);
	turn_until_answered(1);
	assert_int_equal(asker.result.end, SPAWN_NOT_STARTED);
	assert_int_equal(asker.result.status, SPAWN_NO_USER);
	assert_string_equal(spawn_failure_text(asker.result.status), "there is no such user");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	program.user = longest;
	assert_int_equal(run_program(&asker, &program), -E2BIG);
}

// So few descriptors that the program has its own, but none is left to look up the user.
static void a_user_that_cannot_be_looked_up_is_not_called_unknown(void **state) {
	static const struct rlimit few = {12, 12};
	static struct asker asker;
	const struct spawn_program program = {
		.argv = who,
		.user = "daemon",
		.input = "",
		.timeout_ns = FOR_EVER,
		.output_max = 1000,
	};

	(void)state;
	assert_int_equal(prlimit(helper_pid, RLIMIT_NOFILE, &few, NULL), 0);
	assert_int_equal(run_program(&asker, &program), 0);
	turn_until_answered(1);
	assert_int_equal(asker.result.end, SPAWN_NOT_STARTED);
	assert_int_equal(asker.result.status, -EMFILE);
}

static void let_others_to_the_fifo(void) {
	char *slash = strrchr(fifo, '/');

	assert_int_equal(chmod(fifo, 0666), 0);
	*slash = '\0';
	assert_int_equal(chmod(fifo, 0755), 0);
	*slash = '/';
}

// The kernel clears the parent-death signal when a process changes its user.
static void an_agent_that_is_killed_takes_programs_of_other_users_along(void **state) {
	pid_t agent;
	int fd;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root runs programs of other users\n");
		skip();
	}
	let_others_to_the_fifo();
	agent = fork();
	if (agent == 0) {
		static struct asker asker;
		struct spawn_helper own;
		struct spawn *other;

		if (spawn_fork(&own) != 0 || spawn_create(loop, &own, &other) != 0)
			_exit(1);
		asker.request.ended = ended;
		spawn_run(
			other,
			&(struct spawn_program){
				.argv = (const char *const[]
				){"/bin/sh", "-c", "exec sleep 1000 > $FIFO", NULL},
				.user = "nobody",
				.timeout_ns = FOR_EVER,
			},
			&asker.request
		);
		pause();
	}
	fd = open_fifo();
	kill(agent, SIGKILL);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	wait_closed(fd);
}

static void a_helper_that_was_never_used_can_be_ended(void **state) {
	struct spawn_helper none = {-1, 0}, unused;

	(void)state;
	spawn_helper_end(&none);
	assert_int_equal(spawn_fork(&unused), 0);
	spawn_helper_end(&unused);
	assert_int_equal(unused.fd, -1);
	spawn_helper_end(&unused);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(spawn) {
	const struct CMUnitTest tests[] = {
		TEST(the_end_of_a_program_is_told),
		TEST(a_program_that_is_not_there_is_not_started_and_says_why),
		TEST(a_program_that_others_could_have_changed_is_refused),
		TEST(a_program_is_the_first_to_go_when_memory_runs_out),
		TEST(arguments_come_as_they_are),
		TEST(what_is_said_past_the_cap_is_dropped_and_blocks_nobody),
		TEST(a_deadline_ends_the_program_and_what_it_started),
		TEST(what_a_program_leaves_behind_ends_with_it),
		TEST(a_cancelled_program_is_killed_and_not_answered),
		TEST(many_requests_are_bounded_and_all_are_answered),
		TEST(a_request_that_cannot_be_is_refused),
		TEST(a_helper_that_dies_loses_the_requests_and_takes_no_more),
		TEST(programs_and_helper_end_with_the_agents_side),
		TEST(an_agent_that_is_killed_takes_helper_and_programs_along),
		TEST(a_helper_that_was_never_used_can_be_ended),
		TEST(what_is_given_is_read_from_standard_input_and_then_its_end),
		TEST(a_program_that_reads_nothing_of_its_input_ends_as_others),
		TEST(a_program_of_another_user_has_its_rights_and_no_more),
		TEST(capabilities_of_an_agent_stay_with_it),
		TEST(a_user_that_does_not_exist_is_said),
		TEST(a_user_that_cannot_be_looked_up_is_not_called_unknown),
		TEST(an_agent_that_is_killed_takes_programs_of_other_users_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
