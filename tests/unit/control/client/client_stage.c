// SPDX-License-Identifier: BSD-3-Clause
// A client server on a played cluster, for clients in other processes: prints its TCP port and
// the path of its Unix socket, answers every question with no communicators, and ends with stdin.
//
// What is read from stdin, a letter each: d, n2 dies; j, n2 joins; anything else is passed over.
#include "control/client/client_bench.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define TURN_MS 10

static void play(char what) {
	if (what == 'd') {
		bench_peer("n2")->state = RAS_DEAD;
		bench_peer("n2")->cause = RAS_CAUSE_GONE;
		bench_add_event(RAS_EVENT_DEAD, "n2", RAS_CAUSE_GONE, 0);
	} else if (what == 'j') {
		bench_peer("n2")->state = RAS_ALIVE;
		bench_peer("n2")->cause = RAS_CAUSE_NONE;
		bench_add_event(RAS_EVENT_REJOINED, "n2", RAS_CAUSE_NONE, 0);
	}
}

// false at the end of stdin.
static bool listen_to_stdin(void) {
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char what;

	if (poll(&in, 1, 0) <= 0)
		return true;
	if (read(STDIN_FILENO, &what, 1) <= 0)
		return false;
	play(what);
	return true;
}

int main(void) {
	if (bench_start(NULL) != 0)
		return 1;
	printf("%u %s\n", client_server_address(bench.server).port, bench.path);
	fflush(stdout);
	while (listen_to_stdin()) {
		if (loop_turn(bench.loop, TURN_MS) < 0)
			return 1;
		if (bench.overlay.questions != NULL)
			bench_answer(bench_answer_new());
	}
	return bench_stop(NULL) == 0 ? 0 : 1;
}
