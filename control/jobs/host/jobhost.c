// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this node: start, end, the sampling once a second, and the tables for other modules.
#include "jobs/host/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <sodium.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static void set_sample_timer(struct jobhost *host, uint64_t at_ns) {
	if (loop_timer_set(host->loop, &host->sample, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

// Return whether the run of a round that began at began_ns may go on.
static bool round_has_time(const struct jobhost *host, uint64_t began_ns) {
	return loop_clock_ns(host->loop) - began_ns < SAMPLE_RUN_NS;
}

static void begin_round(struct jobhost *host, uint64_t now_ns) {
	host->round.step = ROUND_PROCESSES;
	host->round.began_ns = now_ns;
	host->round.next_process = host->processes;
	host->round.gpu_is_missing = false;
	host->round.number++;
	host->round.standing_before = host->round.standing;
	host->round.standing = 0;
	host->sums_next = (struct job_sums){0};
}

static void begin_comm_step(struct jobhost *host, uint64_t now_ns) {
	struct host_connection *oldest;

	host->round.step = ROUND_COMMS;
	host->round.next_comm = host->comms;
	host->sums = host->sums_next;
	// A parent that reports nothing for one sampling period is not waited for any longer.
	process_release_exits(host, NULL);
	while ((oldest = TAILQ_FIRST(&host->ungreeted)) != NULL &&
	       now_ns - oldest->since_ns >= HELLO_TIMEOUT_NS)
		host_connection_close(oldest);
	socket_restore(host);
	if (host->listener.fd >= 0) // accept again: descriptors may be free by now
		loop_set_events(&host->listener, EPOLLIN);
	process_expire_ended(host, now_ns);
	node_collect_troubles(host);
	notice_tick_held(host, now_ns);
	watch_begin_round(host);
}

static void end_round(struct jobhost *host, uint64_t now_ns) {
	uint64_t next_ns = host->round.began_ns + SAMPLE_NS;

	host->round.step = ROUND_IDLE;
	watch_end_round(host);
	nccl_ask_tick(host->nccl_ask, now_ns);
	set_sample_timer(host, next_ns > now_ns ? next_ns : now_ns + SAMPLE_PAUSE_NS);
}

static void comm_tick(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	comm_refresh_newest(comm);
	if (host->overlay != NULL)
		node_apply_troubles(host, comm, &host->round.troubles, node_is_alive);
	if (agree_tick(host, comm, now_ns))
		watch_tick(host, comm, now_ns);
}

// Continue the round for at most SAMPLE_RUN_NS, so that the loop stays responsive.
static void on_sample_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct jobhost *host = container_of(timer, struct jobhost, sample);
	struct round *round = &host->round;
	uint64_t began_ns = loop_clock_ns(host->loop);

	if (round->step == ROUND_IDLE)
		begin_round(host, now_ns);
	while (round->next_process != NULL && round_has_time(host, began_ns)) {
		struct host_process *process = round->next_process;

		round->next_process = process->next;
		sample_process_page(process, now_ns, false);
		job_sums_add(&host->sums_next, process);
	}
	if (round->step == ROUND_PROCESSES && round->next_process == NULL)
		begin_comm_step(host, now_ns);
	while (round->step == ROUND_COMMS && round->next_comm != NULL &&
	       round_has_time(host, began_ns)) {
		struct host_comm *comm = round->next_comm;

		round->next_comm = comm->next;
		comm_tick(host, comm, now_ns);
	}
	if (round->step == ROUND_COMMS && round->next_comm == NULL)
		end_round(host, now_ns);
	else
		set_sample_timer(host, now_ns + SAMPLE_PAUSE_NS);
}

// The timer only makes the loop turn, so that loop_all_served_ns() moves forward.
static void on_sweep_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct jobhost *host = container_of(timer, struct jobhost, sweep);

	if (now_ns < host->sweep_until_ns)
		(void)loop_timer_set(host->loop, timer, now_ns + SWEEP_NS);
	else
		host->sweep_until_ns = 0;
}

// If the timer cannot be set, the estimated time of a process's end is only less exact.
void jobhost_sweep_often(struct jobhost *host) {
	const uint64_t now_ns = loop_now_ns(host->loop);

	if (host->sweep_until_ns == 0)
		(void)loop_timer_set(host->loop, &host->sweep, now_ns + SWEEP_NS);
	host->sweep_until_ns = now_ns + SWEEP_FOR_NS;
}

static int create_tables(struct jobhost *host) {
	struct table *tables[] = {&host->users_by_uid,	    &host->processes_by_pid,
				  &host->processes_by_page, &host->parents_by_pid,
				  &host->comms_by_key,	    &host->ranks_by_number};
	int err = 0;

	randombytes_buf(host->secret, sizeof(host->secret));
	for (size_t n = 0; n < sizeof(tables) / sizeof(tables[0]) && err == 0; n++)
		err = table_init(tables[n]);
	return err;
}

int jobhost_create(
	struct loop *loop,
	const struct jobhost_config *config,
	char ret_detail[static JOBHOST_DETAIL_BYTES],
	struct jobhost **ret_host
) {
	struct jobhost *host = calloc(1, sizeof(*host));
	int err;

	ret_detail[0] = '\0';
	if (host == NULL)
		return -ENOMEM;
	host->loop = loop;
	host->began_ns = loop_now_ns(loop);
	host->config = *config;
	host->overlay = config->overlay;
	host->listener.fd = -1;
	LIST_INIT(&host->users);
	TAILQ_INIT(&host->ungreeted);
	process_init(host);
	send_init(host);
	notice_init(host);
	peer_clock_init(host);
	watch_init(host);
	host->socket_path = strdup(config->socket_path);
	host->page = calloc(1, sizeof(*host->page));
	host->signatures = calloc(JOB_SLOTS, sizeof(*host->signatures));
	host->sample.expired = on_sample_timer;
	host->sweep.expired = on_sweep_timer;
	if (host->socket_path == NULL || host->page == NULL || host->signatures == NULL)
		err = -ENOMEM;
	else
		err = create_tables(host);
	if (err == 0)
		err = loop_timer_set(loop, &host->sample, loop_now_ns(loop) + SAMPLE_NS);
	if (err == 0 && config->nccl_ras != NULL)
		err = nccl_ask_create(host, config->nccl_ras, &host->nccl_ask);
	if (err == 0)
		err = socket_open(host, ret_detail);
	if (err != 0) {
		jobhost_destroy(host);
		return err;
	}
	*ret_host = host;
	return 0;
}

struct jobhost *jobhost_destroy(struct jobhost *host) {
	struct host_user *user, *next;

	if (host == NULL)
		return NULL;
	watch_fini(host);
	socket_close(host);
	host->nccl_ask = nccl_ask_destroy(host->nccl_ask);
	while (host->connections != NULL)
		host_connection_close(host->connections);
	while (host->processes != NULL)
		process_free(host->processes);
	for (user = LIST_FIRST(&host->users); user != NULL; user = next) {
		next = LIST_NEXT(user, all);
		(void)user_hold(user);
		departed_ranks_expire(user, UINT64_MAX);
		user_put(user);
	}
	while (host->comms != NULL)
		comm_destroy(host, host->comms);
	notice_fini(host);
	peer_clock_fini(host);
	process_fini(host);
	send_fini(host);
	loop_timer_cancel(host->loop, &host->sample);
	loop_timer_cancel(host->loop, &host->sweep);
	table_fini(&host->users_by_uid);
	table_fini(&host->processes_by_pid);
	table_fini(&host->processes_by_page);
	table_fini(&host->parents_by_pid);
	table_fini(&host->comms_by_key);
	table_fini(&host->ranks_by_number);
	subuids_destroy(host->subuids);
	free(host->round.troubles.rows);
	free(host->signatures);
	free(host->page);
	free(host->socket_path);
	free(host);
	return NULL;
}

void jobhost_use_subuids(struct jobhost *host, struct subuids *subuids) {
	subuids_destroy(host->subuids);
	host->subuids = subuids;
}

const struct jobhost_counters *jobhost_counters(const struct jobhost *host) {
	return &host->counters;
}
