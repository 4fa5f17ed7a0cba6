// SPDX-License-Identifier: BSD-3-Clause
// Delivers signals through the loop; all threads block them.
#include "agent.h"

#include <control/fabric.h>
#include <control/overlay.h>
#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DUPLICATE_SIGNAL_NS (RAS_NS_PER_SEC / 4)

static void on_overlay_left(void *ctx) {
	struct agent *agent = ctx;

	loop_stop(agent->loop);
}

// Leave the overlay after peers were notified that the pairs end.
static void on_pairs_closed(void *ctx) {
	struct agent *agent = ctx;

	overlay_leave(agent->overlay, on_overlay_left, agent);
}

void agent_leave(struct agent *agent, enum agent_exit status) {
	if (agent->leaving) {
		log_event(
			LOG_LEVEL_WARN, "leaving_cut_short",
			log_str("reason", "a second signal asked to stop"),
			log_str("effect",
				"other agents may report this agent as dead instead of left")
		);
		loop_stop(agent->loop);
		return;
	}
	agent->leaving = true;
	agent->exit = status;
	service_notify("STOPPING=1\nSTATUS=leaving the cluster");
	log_event(LOG_LEVEL_INFO, "leaving");
	joining_stop(agent); // an address found now would start a new join
	if (agent->fabric != NULL)
		fabric_stop(agent->fabric, on_pairs_closed, agent);
	else
		on_pairs_closed(agent);
}

// Return true if the same signal came twice within DUPLICATE_SIGNAL_NS. Tools such as timeout(1)
// signal a process and then its group.
static bool signal_is_duplicate(struct agent *agent, uint32_t signal) {
	uint64_t now_ns = loop_now_ns(agent->loop);
	bool same = signal == agent->leave_signal &&
		    now_ns < agent->leave_signal_ns + DUPLICATE_SIGNAL_NS;

	if (same)
		return true;
	agent->leave_signal = signal;
	agent->leave_signal_ns = now_ns;
	return false;
}

static void on_signal_readable(struct loop_source *source, uint32_t events) {
	struct agent *agent = container_of(source, struct agent, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGHUP:
			agent_reload(agent);
			break;
		case SIGTERM:
		case SIGINT:
			if (!signal_is_duplicate(agent, info.ssi_signo))
				agent_leave(agent, AGENT_EXIT_DONE);
			break;
		default:
			break;
		}
	}
}

int signals_start(struct agent *agent) {
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	// Ignore both signals: a closed connection or a file size limit must fail the write, not
	// kill the agent.
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return neg_errno();
	err = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (err != 0)
		return -err;
	agent->signals = (struct loop_source){
		.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = on_signal_readable,
	};
	if (agent->signals.fd < 0)
		return neg_errno();
	err = loop_add(agent->loop, &agent->signals);
	if (err != 0)
		close(agent->signals.fd);
	return err;
}

void signals_stop(struct agent *agent) {
	loop_remove(&agent->signals);
	close(agent->signals.fd);
}
