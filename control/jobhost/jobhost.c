// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this node: start, end, the sampling once a second, and the tables for other modules.
#include "jobhost/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static void set_sample_timer(struct jobhost *host, uint64_t at_ns) {
	if (loop_timer_set(host->loop, &host->sample, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

static void on_sample_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct jobhost *host = container_of(timer, struct jobhost, sample);
	struct host_connection *next;
	uint64_t began_ns, next_ns;

	if (host->next_to_sample == NULL) {
		host->next_to_sample = host->processes;
		host->round_began_ns = now_ns;
	}
	// Sample processes for at most SAMPLE_RUN_NS, so that the loop stays responsive.
	began_ns = loop_clock_ns(host->loop);
	while (host->next_to_sample != NULL && loop_clock_ns(host->loop) - began_ns < SAMPLE_RUN_NS
	) {
		struct host_process *process = host->next_to_sample;

		host->next_to_sample = process->next;
		sample_process_page(process, now_ns, false);
	}
	if (host->next_to_sample != NULL) {
		set_sample_timer(host, now_ns + SAMPLE_PAUSE_NS);
		return;
	}
	// A parent that reports nothing for one sampling period is not waited for any longer.
	process_release_exits(host, NULL);
	for (struct host_connection *at = host->connections; at != NULL; at = next) {
		next = at->next;
		if (at->process == NULL && !at->is_parent &&
		    now_ns - at->since_ns >= HELLO_TIMEOUT_NS)
			host_connection_close(at);
	}
	loop_set_events(&host->listener, EPOLLIN); // accept again: descriptors may be free by now
	process_expire_ended(host, now_ns);
	node_tick(host);
	agree_tick(host, now_ns);
	watch_tick(host, now_ns);
	nccl_ask_tick(host->nccl_ask, now_ns);
	next_ns = host->round_began_ns + SAMPLE_NS;
	set_sample_timer(host, next_ns > now_ns ? next_ns : now_ns + SAMPLE_PAUSE_NS);
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
	host->config = *config;
	host->overlay = config->overlay;
	host->listener.fd = -1;
	notice_init(host);
	stall_init(host);
	host->socket_path = strdup(config->socket_path);
	host->page = calloc(1, sizeof(*host->page));
	host->signatures = calloc(JOB_SLOTS, sizeof(*host->signatures));
	host->sample.expired = on_sample_timer;
	if (host->socket_path == NULL || host->page == NULL || host->signatures == NULL)
		err = -ENOMEM;
	else
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
	if (host == NULL)
		return NULL;
	watch_fini(host);
	socket_close(host);
	host->nccl_ask = nccl_ask_destroy(host->nccl_ask);
	while (host->connections != NULL)
		host_connection_close(host->connections);
	while (host->processes != NULL)
		process_free(host->processes);
	while (host->comms != NULL)
		comm_destroy(host, host->comms);
	notice_fini(host);
	loop_timer_cancel(host->loop, &host->sample);
	free(host->signatures);
	free(host->page);
	free(host->socket_path);
	free(host);
	return NULL;
}

uint32_t jobhost_count(void *context) {
	const struct jobhost *host = context;
	uint32_t count = 0;

	for (const struct host_process *at = host->processes; at != NULL; at = at->next)
		count += at->rank_count;
	return count;
}

int jobhost_at(void *context, uint32_t n, struct jobs_rank_report *ret_report) {
	const struct jobhost *host = context;

	for (const struct host_process *at = host->processes; at != NULL; at = at->next) {
		const struct host_rank *rank = at->ranks;

		if (n >= at->rank_count) {
			n -= at->rank_count;
			continue;
		}
		while (n-- > 0)
			rank = rank->next;
		*ret_report = rank->report;
		return 0;
	}
	return -ENOENT;
}

const struct jobhost_counters *jobhost_counters(const struct jobhost *host) {
	return &host->counters;
}
