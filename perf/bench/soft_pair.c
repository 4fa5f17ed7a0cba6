// SPDX-License-Identifier: BSD-3-Clause
// Two processes that play slices for a third one.
#include "soft.h"

#include <lib/error.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS_MAX 20000
#define LAST_ANSWER_MS 200

struct answer {
	int err;
	double value;
	struct soft_why why;
};

int soft_fail(struct soft_why *why, int err, const char *format, ...) {
	va_list args;

	if (err == 0 || why->text[0] != '\0')
		return err;
	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): wrong about va_start()
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	return err;
}

int soft_exchange(const struct soft_side *side, const void *mine, void *theirs, size_t size) {
	if (send(side->link, mine, size, MSG_NOSIGNAL) != (ssize_t)size)
		return neg_errno();
	return recv(side->link, theirs, size, MSG_WAITALL) == (ssize_t)size ? 0 : -EPIPE;
}

void soft_pin(uint32_t cpu) {
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)!sched_setaffinity(0, sizeof(set), &set);
}

void soft_unpin(void) {
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	(void)!sched_setaffinity(0, sizeof(set), &set);
}

static int compare_doubles(const void *left, const void *right) {
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

double soft_median(double *values, uint32_t count) {
	qsort(values, count, sizeof(values[0]), compare_doubles);
	return values[count / 2];
}

static int side_open(struct soft_side *side) {
	int err = side->setup->apart ? soft_netns_enter(side) : 0;

	if (err == 0)
		err = side->setup->kind->open(side);
	return err;
}

static _Noreturn void side_run(struct soft_side *side, int orders) {
	struct answer answer = {.err = 0};
	struct soft_order order;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	answer.err = side_open(side);
	for (;;) {
		answer.why = side->why;
		if (write(orders, &answer, sizeof(answer)) != sizeof(answer) || answer.err != 0 ||
		    recv(orders, &order, sizeof(order), MSG_WAITALL) != sizeof(order) ||
		    order.play == SOFT_STOP)
			break;
		answer.err = side->setup->kind->play(side, &order, &answer.value);
	}
	_exit(answer.err == 0 ? 0 : 1);
}

static int kill_both_sides(struct soft_pair *pair) {
	for (uint32_t n = 0; n < 2; n++)
		kill(pair->pids[n], SIGKILL);
	pair->failed = true;
	return 0;
}

// Receive the answers of both sides. If one side fails, the other would wait for ever, so both are
// killed. A side that only reports the exit of the other one knows less. So the other side's answer
// is awaited, too.
static int receive_answers(struct soft_pair *pair, double *ret_value, struct soft_why *why) {
	struct answer answers[2] = {0};
	struct pollfd fds[2];
	uint32_t taken = 0;
	int err = 0;

	for (uint32_t n = 0; n < 2; n++)
		fds[n] = (struct pollfd){pair->orders[n], POLLIN, 0};
	while (taken < 2 && (err == 0 || err == -EPIPE)) {
		if (poll(fds, 2, err == 0 ? ANSWER_MS_MAX : LAST_ANSWER_MS) <= 0) {
			err = soft_fail(why, err == 0 ? -ETIMEDOUT : err, "no answer");
			break;
		}
		for (uint32_t n = 0; n < 2; n++) {
			if (fds[n].revents == 0)
				continue;
			if (recv(fds[n].fd, &answers[n], sizeof(answers[n]), MSG_WAITALL) !=
			    sizeof(answers[n]))
				answers[n].err = -EPIPE;
			if (err == 0 || err == -EPIPE)
				err = answers[n].err != 0 ? answers[n].err : err;
			soft_fail(why, answers[n].err, "%s", answers[n].why.text);
			fds[n].fd = -1;
			taken++;
		}
	}
	if (err == 0)
		*ret_value = answers[0].value;
	else
		kill_both_sides(pair);
	return soft_fail(why, err, "a side ended: %s", strerrordesc_np(-err));
}

static int
side_start(const struct soft_setup *setup, uint32_t n, const int *link, struct soft_pair *pair) {
	int order[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, order) != 0)
		return neg_errno();
	pair->orders[n] = order[0];
	pair->pids[n] = fork();
	if (pair->pids[n] < 0) {
		// soft_pair_stop() closes the sockets of started sides only.
		err = neg_errno();
		close(order[0]);
		pair->orders[n] = -1;
	}
	if (pair->pids[n] == 0) {
		struct soft_side side = {.setup = setup, .number = n, .link = link[n]};

		// Otherwise a side would not see when the parent closes its end of the socket.
		for (uint32_t started = 0; started <= n; started++)
			close(pair->orders[started]);
		close(link[1 - n]);
		side_run(&side, order[1]);
	}
	close(order[1]);
	return err;
}

int soft_pair_start(
	const struct soft_setup *setup, struct soft_pair *ret_pair, struct soft_why *why
) {
	struct soft_pair pair = {.pids = {-1, -1}, .orders = {-1, -1}};
	int link[2];
	double ignored;
	int err;

	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0)
		return soft_fail(why, neg_errno(), "no socket: %s", strerrordesc_np(errno));
	err = side_start(setup, 0, link, &pair);
	if (err == 0)
		err = side_start(setup, 1, link, &pair);
	close(link[0]);
	close(link[1]);
	if (err == 0)
		err = receive_answers(&pair, &ignored, why);
	if (err != 0)
		soft_pair_stop(&pair);
	else
		*ret_pair = pair;
	return soft_fail(why, err, "no process: %s", strerrordesc_np(-err));
}

int soft_pair_play(
	struct soft_pair *pair,
	const struct soft_order *order,
	double *ret_value,
	struct soft_why *why
) {
	for (uint32_t n = 0; n < 2; n++) {
		if (send(pair->orders[n], order, sizeof(*order), MSG_NOSIGNAL) != sizeof(*order))
			return soft_fail(why, -EPIPE, "a side has ended");
	}
	return receive_answers(pair, ret_value, why);
}

void soft_pair_stop(struct soft_pair *pair) {
	const struct soft_order stop = {.play = SOFT_STOP};

	for (uint32_t n = 0; n < 2; n++) {
		if (pair->pids[n] < 0)
			continue;
		(void)!send(pair->orders[n], &stop, sizeof(stop), MSG_NOSIGNAL);
		close(pair->orders[n]);
		waitpid(pair->pids[n], NULL, 0);
	}
}
