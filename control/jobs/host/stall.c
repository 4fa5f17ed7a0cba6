// SPDX-License-Identifier: BSD-3-Clause
// Stalled communicators. The answers of all agents show what the ranks wait for. The finding is
// sent to the local ranks and to the other agents. The coordinator queries all agents once no local
// rank has moved for limits.confirm_ns. Other agents query only if the coordinator does not.
#include "jobs/host/inside.h"

#include <lib/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// first interval between two checks of a stalled communicator
#define PAUSE_FIRST_NS (10 * RAS_NS_PER_SEC)
#define PAUSE_LONGEST_NS (300 * RAS_NS_PER_SEC)
#define PAUSE_WAITING_NS (60 * RAS_NS_PER_SEC) // longest interval while its ranks wait
#define DRAIN_RANKS_MAX 1024		       // ranks to log when a drain of this node is advised
#define LOGGED_RANKS_MAX 16		       // ranks of one communicator in the log

uint64_t stall_confirm_ns(const struct jobhost *host) {
	const uint64_t ns = host->config.limits.confirm_ns;

	return ns != 0 ? ns : 10 * RAS_NS_PER_SEC;
}

static void
set_stall_state(struct jobhost *host, struct host_comm *comm, uint32_t kind, uint32_t rank) {
	host->counters.waiting -= comm->stall_kind == TOCSIN_COMM_WAITING;
	host->counters.stuck -= comm->stall_kind == TOCSIN_COMM_STUCK;
	host->counters.waiting += kind == TOCSIN_COMM_WAITING;
	host->counters.stuck += kind == TOCSIN_COMM_STUCK;
	comm->stall_kind = kind;
	comm->stall_rank = rank;
}

void stall_clear(struct jobhost *host, struct host_comm *comm) {
	set_stall_state(host, comm, 0, TOCSIN_NO_RANK);
}

bool stall_needs_query(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	bool has_launched = false, is_inside = false; // some local rank, an operation
	bool ours = agree_is_coordinator(host, comm);
	uint64_t since_ns = 0; // last movement of any local rank

	for (const struct host_rank *rank = comm->ranks; rank != NULL; rank = rank->next_of_comm) {
		const struct jobs_rank_report *report = &rank->report;

		if (report->progress_ns > since_ns)
			since_ns = report->progress_ns;
		has_launched = has_launched ||
			       ((report->launched > 0 || report->call != 0) && !report->finalized);
		// A rank inside a call between two ranks does not count. Most such waits are no
		// stall, so the coordinator sends nothing about them, and each agent would query.
		is_inside = is_inside || ((report->knows & JOBS_KNOWS_COMPLETED) != 0 &&
					  report->completed < report->launched);
	}
	if (comm->ranks == NULL || now_ns - since_ns < stall_confirm_ns(host)) {
		stall_clear(host, comm);
		comm->look_ns = since_ns + stall_confirm_ns(host);
		comm->stall_check_interval_ns = PAUSE_FIRST_NS;
		return false;
	}
	if (!has_launched || now_ns < comm->look_ns || host->answer != NULL)
		return false;
	// Most likely the coordinator or another agent checks, and sends the result.
	if (!ours && (!is_inside ||
		      now_ns < since_ns + stall_confirm_ns(host) + watch_fallback_delay_ns(comm) ||
		      (comm->heard_ns != 0 &&
		       now_ns < comm->heard_ns + PAUSE_WAITING_NS + watch_fallback_delay_ns(comm))))
		return false;
	comm->stall_check_is_pending = true;
	host->stall_is_pending = true;
	comm->look_ns = now_ns + comm->stall_check_interval_ns;
	comm->stall_check_interval_ns *= 2;
	if (comm->stall_check_interval_ns > PAUSE_LONGEST_NS)
		comm->stall_check_interval_ns = PAUSE_LONGEST_NS;
	return true;
}

// Log the counts of the local ranks, because the log outlives the processes.
static uint32_t log_ranks(const struct host_comm *comm) {
	uint32_t shown = 0;

	for (const struct host_rank *rank = comm->ranks; rank != NULL && shown < LOGGED_RANKS_MAX;
	     rank = rank->next_of_comm, shown++) {
		const struct jobs_rank_report *report = &rank->report;

		log_event(
			LOG_LEVEL_INFO, "job_rank", log_str("job", report->job_id),
			log_u64("hash", report->comm_hash), log_u64("rank", report->rank),
			log_u64("pid", report->pid),
			log_str("process", jobs_process_name(report->process_state)),
			log_u64("launched", report->launched), log_u64("started", report->started),
			log_u64("completed", report->completed)
		);
	}
	return shown;
}

uint32_t stall_record_drain_advice(struct jobhost *host, bool is_advised) {
	uint32_t logged = 0;

	if (is_advised && !host->drain_is_advised)
		for (const struct host_comm *comm = host->comms;
		     comm != NULL && logged < DRAIN_RANKS_MAX; comm = comm->next)
			logged += log_ranks(comm);
	host->drain_is_advised = is_advised;
	return logged;
}

// Send a stall to the local ranks. The same stall is not sent again until one of the ranks has
// moved.
void stall_notify_ranks(struct jobhost *host, struct host_comm *comm, const struct stall *stall) {
	if (comm->stall == NULL)
		comm->stall = malloc(sizeof(*comm->stall));
	comm->heard_ns = loop_now_ns(host->loop);
	if (comm->stall == NULL ||
	    (comm->stall_kind == (uint32_t)stall->kind && comm->stall_rank == stall->rank))
		return;
	if (stall->kind == TOCSIN_COMM_STUCK && comm->stall_kind != TOCSIN_COMM_STUCK) {
		host->counters.stalls++;
		log_event(
			LOG_LEVEL_WARN, "job_stuck",
			log_str("job", comm->ranks != NULL ? comm->ranks->process->job_id : ""),
			log_u64("hash", comm->comm_hash), log_u64("size", comm->size),
			log_str("text", stall->text)
		);
		(void)log_ranks(comm);
	}
	set_stall_state(host, comm, stall->kind, stall->rank);
	*comm->stall = *stall;
	comm->stall_serial++;
	comm_send_state(comm);
}

bool stall_is_current(const struct host_comm *comm, uint64_t asked_ns) {
	if (asked_ns <= comm->newest_ns)
		return false;
	for (const struct host_rank *rank = comm->ranks; rank != NULL; rank = rank->next_of_comm)
		if (rank->report.progress_ns >= asked_ns)
			return false;
	return true;
}

static void send_finding(
	struct jobhost *host,
	struct host_comm *comm,
	const struct ras_merged_comm *merged,
	uint32_t place
) {
	const struct jobs_finding *finding = &host->look.findings[place];
	struct stall stall = {.kind = TOCSIN_COMM_WAITING, .rank = TOCSIN_NO_RANK};
	char sentence[JOBS_SENTENCE_BYTES];

	if (finding->grade != JOBS_WAITING && finding->grade != JOBS_STUCK)
		return;
	if (finding->grade == JOBS_STUCK)
		stall.kind = TOCSIN_COMM_STUCK;
	if (finding->late_count > 0 && finding->late[0] < merged->rank_count)
		stall.rank = merged->ranks[finding->late[0]].rank.rank;
	comm_look_describe(&host->look, place, sentence);
	snprintf(stall.text, sizeof(stall.text), "%.159s", sentence);
	if (comm->stall_check_interval_ns > PAUSE_WAITING_NS)
		comm->stall_check_interval_ns = PAUSE_WAITING_NS;
	notice_send_stall(host, comm, &stall, watch_answer_asked_ns(host));
	stall_notify_ranks(host, comm, &stall);
}

bool stall_begin_judging(struct jobhost *host) {
	const struct comm_look_config config = {
		.health = host->config.health,
		.now_ns = loop_now_ns(host->loop),
		.limits = host->config.limits,
		.words = {.node_name = node_name, .ctx = host},
	};

	if (!host->stall_is_pending)
		return false;
	host->stall_is_pending = false;
	return comm_look_init(&host->look, &config, host->answer) == 0;
}

void stall_send_finding(struct jobhost *host, struct host_comm *comm) {
	struct ras_merged_comm merged;
	uint32_t place;

	if (comm->stall_check_is_pending && stall_is_current(comm, watch_answer_asked_ns(host)) &&
	    watch_find_comm(host->answer->comms, comm, &merged, &place))
		send_finding(host, comm, &merged, place);
	comm->stall_check_is_pending = false;
}
