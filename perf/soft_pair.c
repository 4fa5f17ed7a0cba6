// SPDX-License-Identifier: BSD-3-Clause
// Two processes that play slices for a third one.
#include "soft.h"

#include <lib/error.h>

#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS_MAX 20000

struct answer {
	int err;
	double value;
};

int soft_exchange(const struct soft_side *side, const void *mine, void *theirs, size_t size) {
	if (write(side->link, mine, size) != (ssize_t)size)
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

static _Noreturn void side_run(struct soft_side *side, int orders) {
	const struct soft_kind *kind = side->setup->kind;
	struct answer answer = {.err = 0};
	struct soft_order order;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	answer.err = kind->open(side);
	while (write(orders, &answer, sizeof(answer)) == sizeof(answer) && answer.err == 0 &&
	       recv(orders, &order, sizeof(order), MSG_WAITALL) == sizeof(order) &&
	       order.play != SOFT_STOP)
		answer.err = kind->play(side, &order, &answer.value);
	_exit(answer.err == 0 ? 0 : 1);
}

// One that failed leaves the other one waiting, for ever if need be: both end with it.
static int take_answers(const struct soft_pair *pair, double *ret_value) {
	struct pollfd fds[2];
	struct answer answers[2];
	uint32_t taken = 0;
	int err = 0;

	for (uint32_t n = 0; n < 2; n++)
		fds[n] = (struct pollfd){pair->orders[n], POLLIN, 0};
	while (taken < 2 && err == 0) {
		if (poll(fds, 2, ANSWER_MS_MAX) <= 0)
			err = -ETIMEDOUT;
		for (uint32_t n = 0; n < 2 && err == 0; n++) {
			if (fds[n].revents == 0)
				continue;
			err = recv(fds[n].fd, &answers[n], sizeof(answers[n]), MSG_WAITALL) ==
					      sizeof(answers[n])
				      ? answers[n].err
				      : -EPIPE;
			fds[n].fd = -1;
			taken++;
		}
	}
	for (uint32_t n = 0; n < 2 && err != 0; n++)
		kill(pair->pids[n], SIGKILL);
	if (err == 0)
		*ret_value = answers[0].value;
	return err;
}

int soft_pair_start(const struct soft_setup *setup, struct soft_pair *ret_pair) {
	struct soft_pair pair;
	int link[2], order[2];
	double ignored;
	int err;

	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0)
		return neg_errno();
	for (uint32_t n = 0; n < 2; n++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, order) != 0)
			return neg_errno();
		pair.orders[n] = order[0];
		pair.pids[n] = fork();
		if (pair.pids[n] == 0) {
			struct soft_side side = {.setup = setup, .number = n, .link = link[n]};

			close(link[1 - n]);
			side_run(&side, order[1]);
		}
		close(order[1]);
	}
	close(link[0]);
	close(link[1]);
	err = take_answers(&pair, &ignored);
	if (err != 0)
		soft_pair_stop(&pair);
	else
		*ret_pair = pair;
	return err;
}

double soft_pair_play(struct soft_pair *pair, const struct soft_order *order) {
	double value;

	for (uint32_t n = 0; n < 2; n++) {
		if (write(pair->orders[n], order, sizeof(*order)) != sizeof(*order))
			return NAN;
	}
	return take_answers(pair, &value) == 0 ? value : NAN;
}

void soft_pair_stop(struct soft_pair *pair) {
	const struct soft_order stop = {.play = SOFT_STOP};

	for (uint32_t n = 0; n < 2; n++) {
		(void)!send(pair->orders[n], &stop, sizeof(stop), MSG_NOSIGNAL);
		close(pair->orders[n]);
		waitpid(pair->pids[n], NULL, 0);
	}
}
