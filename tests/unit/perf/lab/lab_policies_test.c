// SPDX-License-Identifier: BSD-3-Clause
// Tests of the server process that the command policy starts. A fake replaces the server.
#include "history/policies.h"
#include "run/exit_status.h"
#include "run/session.h"

#include <support/cmocka.h>

#include <unistd.h>

static bool server_closes_pipe;

// Hang in the server process, before its port is known.
int session_server(const struct lab_session *session, struct plan *ret_plan, struct lab_why *why) {
	const int *pipe_end = session->announce_ctx;

	(void)ret_plan;
	(void)why;
	if (server_closes_pipe)
		close(*pipe_end);
	for (;;)
		pause();
}

static int run_policy(int signal_fd) {
	char program[] = "tocsin-perf", command[] = "policy";
	char *words[] = {program, command, NULL};

	return policies_main(2, words, signal_fd);
}

static void a_server_that_hangs_without_a_port_is_killed(void **state) {
	(void)state;
	server_closes_pipe = true;
	assert_int_equal(run_policy(-1), EXIT_FAILED);
}

static void an_interrupt_ends_the_wait_for_a_server(void **state) {
	int fds[2];

	(void)state;
	server_closes_pipe = false;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(run_policy(fds[0]), EXIT_FAILED);
	close(fds[0]);
	close(fds[1]);
}

UNIT_GROUP(lab_policies) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_hangs_without_a_port_is_killed),
		cmocka_unit_test(an_interrupt_ends_the_wait_for_a_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
