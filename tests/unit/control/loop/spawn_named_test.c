// SPDX-License-Identifier: BSD-3-Clause
// The agent's end and the root helper's end of a real socket, with real programs.
#include "loop/spawn_inside.h"

#include <control/spawn.h>
#include <lib/container.h>
#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)

struct asker {
	struct spawn_request request;
	uint32_t answers;
	enum spawn_end end;
	int status;
	char out[200];
};

static struct clock monotonic;
static struct loop *loop;
static struct spawn *main_spawn, *named;
static char directory[] = "/tmp/tocsin-named-XXXXXX";
static char path[sizeof(directory) + 8];
static struct sockaddr_un address;
static pid_t server;

static const char *own_user(void) {
	const struct passwd *user = getpwuid(geteuid());

	assert_non_null(user);
	return user->pw_name;
}

static int find_program(void *ctx, const char *name, struct spawn_named *ret_named) {
	static char shell[] = "/bin/sh", option[] = "-c";

	(void)ctx;
	if (strcmp(name, "no config") == 0)
		return SPAWN_BAD_CONFIG;
	if (strcmp(name, "absent") == 0)
		return SPAWN_NOT_LISTED;
	snprintf(
		ret_named->text, sizeof(ret_named->text), "%s",
		strcmp(name, "endless") == 0 ? "exec sleep 1000"
					     : "id -un; grep CapEff /proc/self/status; cat"
	);
	ret_named->argv[0] = shell;
	ret_named->argv[1] = option;
	ret_named->argv[2] = ret_named->text;
	if (strcmp(name, "no user") != 0)
		snprintf(
			ret_named->user, sizeof(ret_named->user), "%s",
			strcmp(name, "nobody's") == 0 ? "nobody" : own_user()
		);
	ret_named->takes_input = strcmp(name, "hook") == 0;
	return 0;
}

// Listen, and serve connections one after another, as systemd does.
static void server_start(void) {
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	unlink(path);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	server = fork();
	if (server == 0) {
		for (;;) {
			int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			pid_t helper = fork();

			if (helper == 0)
				spawn_serve_named(connection, find_program, NULL);
			close(connection);
			waitpid(helper, NULL, 0);
		}
	}
	close(fd);
}

// Kill the helper, which is the child of the server.
static void helper_kill(void) {
	char file[64], text[32] = "";
	FILE *children;

	snprintf(file, sizeof(file), "/proc/%d/task/%d/children", server, server);
	children = fopen(file, "re");
	assert_non_null(children);
	assert_non_null(fgets(text, sizeof(text), children));
	fclose(children);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
}

static int begin(void **state) {
	struct spawn_helper helper;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	server = -1;
	memcpy(directory, "/tmp/tocsin-named-XXXXXX", sizeof(directory));
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path, sizeof(path));
	clock_init_monotonic(&monotonic);
	assert_int_equal(loop_create(&monotonic, &loop), 0);
	assert_int_equal(spawn_fork(&helper), 0);
	assert_int_equal(spawn_create(loop, &helper, &main_spawn), 0);
	assert_int_equal(spawn_create_named(loop, path, main_spawn, &named), 0);
	return 0;
}

static int end(void **state) {
	(void)state;
	named = spawn_destroy(named);
	main_spawn = spawn_destroy(main_spawn);
	loop = loop_destroy(loop);
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	unlink(path);
	return rmdir(directory);
}

static void on_end(struct spawn_request *request, const struct spawn_result *result) {
	struct asker *asker = container_of(request, struct asker, request);

	asker->answers++;
	asker->end = result->end;
	asker->status = result->status;
	snprintf(asker->out, sizeof(asker->out), "%.*s", (int)result->out.size, result->out.bytes);
}

static int ask(struct asker *asker, const char *name, const char *input) {
	const char *const argv[] = {name, NULL};
	const struct spawn_program program = {
		.argv = argv,
		.input = input,
		.input_bytes = input != NULL ? strlen(input) : 0,
		.timeout_ns = 1000 * SEC,
		.output_max = 1000,
	};

	*asker = (struct asker){.request.ended = on_end};
	return spawn_run(named, &program, &asker->request);
}

static void wait_answer(const struct asker *asker) {
	while (asker->answers == 0)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static void a_named_program_runs_as_its_user_without_capabilities_of_the_helper(void **state) {
	struct asker asker;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root runs programs of other users\n");
		skip();
	}
	server_start();
	assert_int_equal(ask(&asker, "nobody's", NULL), 0);
	wait_answer(&asker);
	assert_int_equal(asker.end, SPAWN_EXITED);
	assert_string_equal(asker.out, "nobody\nCapEff:\t0000000000000000\n");
}

static void input_reaches_only_a_program_that_takes_it(void **state) {
	struct asker asker;

	(void)state;
	server_start();
	assert_int_equal(ask(&asker, "hook", "{\"node\":\"n1\"}\n"), 0);
	wait_answer(&asker);
	assert_int_equal(asker.end, SPAWN_EXITED);
	assert_non_null(strstr(asker.out, "{\"node\":\"n1\"}\n"));
	assert_int_equal(ask(&asker, "check x", "text"), 0);
	wait_answer(&asker);
	assert_int_equal(asker.end, SPAWN_NOT_STARTED);
	assert_int_equal(asker.status, SPAWN_NOT_LISTED);
}

static void a_program_that_is_not_listed_or_has_no_user_is_refused(void **state) {
	static const struct {
		const char *name;
		int status;
		const char *text;
	} cases[] = {
		{"absent", SPAWN_NOT_LISTED, "tocsin-root finds no such program with a user"},
		{"no user", SPAWN_NOT_LISTED, "tocsin-root finds no such program with a user"},
		{"no config", SPAWN_BAD_CONFIG,
		 "tocsin-root cannot use its configuration: see its log"},
	};
	struct asker asker;

	(void)state;
	server_start();
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(ask(&asker, cases[n].name, NULL), 0);
		wait_answer(&asker);
		assert_int_equal(asker.end, SPAWN_NOT_STARTED);
		assert_int_equal(asker.status, cases[n].status);
		assert_string_equal(spawn_failure_text(asker.status), cases[n].text);
	}
}

static void without_a_root_helper_nothing_runs_until_one_listens(void **state) {
	struct asker asker;

	(void)state;
	assert_int_equal(ask(&asker, "check x", NULL), -ENOTCONN);
	assert_int_equal(ask(&asker, "check x", NULL), -ENOTCONN);
	assert_int_equal(spawn_counters(main_spawn)->refused, 2);
	server_start();
	assert_int_equal(ask(&asker, "check x", NULL), 0);
	wait_answer(&asker);
	assert_int_equal(asker.end, SPAWN_EXITED);
}

static void a_root_helper_that_ends_is_connected_again(void **state) {
	struct asker first, second;

	(void)state;
	server_start();
	assert_int_equal(ask(&second, "check x", NULL), 0);
	wait_answer(&second);
	assert_int_equal(ask(&first, "endless", NULL), 0);
	helper_kill();
	wait_answer(&first);
	assert_int_equal(first.end, SPAWN_LOST);
	assert_int_equal(first.status, -ECONNRESET);
	assert_int_equal(spawn_counters(main_spawn)->helper_lost, 0);
	assert_int_equal(ask(&second, "check x", NULL), 0);
	wait_answer(&second);
	assert_int_equal(second.end, SPAWN_EXITED);
}

// A helper that is stopped before it accepts, or that hangs: the kernel takes connection and order.
static void a_root_helper_that_does_not_answer_is_lost(void **state) {
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct clock fake;
	struct loop *slow;
	struct asker asker;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	clock_init_fake(&fake, SEC);
	assert_int_equal(loop_create(&fake, &slow), 0);
	named = spawn_destroy(named);
	assert_int_equal(spawn_create_named(slow, path, main_spawn, &named), 0);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(ask(&asker, "check x", NULL), 0); // with 1000 s
		clock_advance(&fake, 1029 * SEC);
		assert_int_equal(loop_turn(slow, 0), 0);
		assert_int_equal(asker.answers, 0);
		clock_advance(&fake, 2 * SEC);
		assert_int_equal(loop_turn(slow, 0), 0);
		assert_int_equal(asker.answers, 1);
		assert_int_equal(asker.end, SPAWN_LOST);
		assert_int_equal(asker.status, -ETIMEDOUT);
	}
	assert_int_equal(spawn_counters(main_spawn)->lost, 2);
	close(fd);
	named = spawn_destroy(named);
	loop_destroy(slow);
}

static void a_cancelled_program_is_killed(void **state) {
	struct asker endless, other;

	(void)state;
	server_start();
	assert_int_equal(ask(&endless, "endless", NULL), 0);
	spawn_cancel(&endless.request);
	assert_int_equal(ask(&other, "check x", NULL), 0);
	wait_answer(&other);
	assert_int_equal(endless.answers, 0);
}

struct order {
	struct spawn_order_head head;
	char rest[64];
};

#define RUN_HEAD .protocol = SPAWN_PROTOCOL, .order = SPAWN_ORDER_RUN, .timeout_ns = SEC

static const struct {
	struct order order;
	size_t rest_bytes;
	bool valid;
} orders[] = {
	{{{RUN_HEAD}, "check x"}, 8, true},
	{{{RUN_HEAD}, ""}, 1, true},
	{{{RUN_HEAD, .has_input = 1, .input_bytes = 2}, "{}name"}, 7, true},
	{{{RUN_HEAD, .has_input = 1}, "name"}, 5, true},
	{{{RUN_HEAD}, "check x"}, 7, false},	 // no end
	{{{RUN_HEAD}, "check x\0y"}, 10, false}, // two strings
	{{{RUN_HEAD}, ""}, 0, false},		 // no name
	{{{RUN_HEAD, .has_input = 1, .input_bytes = 5}, "name"}, 5, false},
	{{{RUN_HEAD, .has_input = 1, .input_bytes = UINT32_MAX}, "name"}, 5, false},
	{{{RUN_HEAD, .has_input = 0, .input_bytes = 2}, "{}name"}, 7, false},
	{{{RUN_HEAD, .has_input = 2}, "name"}, 5, false},
	{{{RUN_HEAD, .output_max = SPAWN_OUTPUT_BYTES_MAX + 1}, "name"}, 5, false},
	{{{.protocol = SPAWN_PROTOCOL, .timeout_ns = UINT64_MAX}, "name"}, 5, false},
	{{{.protocol = SPAWN_PROTOCOL + 1, .timeout_ns = SEC}, "name"}, 5, false},
	{{{.protocol = SPAWN_PROTOCOL, .order = 7, .timeout_ns = SEC}, "name"}, 5, false},
	{{{.protocol = SPAWN_PROTOCOL, .order = SPAWN_ORDER_CANCEL}, ""}, 0, true},
	{{{.protocol = SPAWN_PROTOCOL, .order = SPAWN_ORDER_CANCEL}, "x"}, 2, false},
};

static void a_malformed_order_is_found(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(orders); n++) {
		size_t size = sizeof(orders[n].order.head) + orders[n].rest_bytes;

		if (spawn_order_is_valid(&orders[n].order, size) != orders[n].valid)
			fail_msg("order %zu", n);
	}
	for (size_t size = 0; size < sizeof(orders[0].order.head); size++)
		assert_false(spawn_order_is_valid(&orders[0].order, size));
}

// Send raw orders, and return once the helper has closed the connection.
static void expect_closed(const struct order *sent, size_t rest_bytes, uint32_t count) {
	char answer[SPAWN_ANSWER_BYTES_MAX];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t got;

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	for (uint32_t n = 0; n < count; n++)
		(void)!send(fd, sent, sizeof(sent->head) + rest_bytes, MSG_NOSIGNAL);
	do
		got = recv(fd, answer, sizeof(answer), 0);
	while (got > 0);
	close(fd);
}

static void a_helper_ends_the_connection_of_a_hostile_agent(void **state) {
	struct order endless = {{RUN_HEAD, .id = 1}, "endless"};

	(void)state;
	server_start();
	for (size_t n = 0; n < COUNT_OF(orders); n++) {
		if (!orders[n].valid)
			expect_closed(&orders[n].order, orders[n].rest_bytes, 1);
	}
	endless.head.timeout_ns = 1000 * SEC;
	expect_closed(&endless, 8, 2); // the same id twice
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(spawn_named) {
	const struct CMUnitTest tests[] = {
		TEST(a_named_program_runs_as_its_user_without_capabilities_of_the_helper),
		TEST(input_reaches_only_a_program_that_takes_it),
		TEST(a_program_that_is_not_listed_or_has_no_user_is_refused),
		TEST(without_a_root_helper_nothing_runs_until_one_listens),
		TEST(a_root_helper_that_ends_is_connected_again),
		TEST(a_root_helper_that_does_not_answer_is_lost),
		TEST(a_cancelled_program_is_killed),
		cmocka_unit_test(a_malformed_order_is_found),
		TEST(a_helper_ends_the_connection_of_a_hostile_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
