// SPDX-License-Identifier: BSD-3-Clause
// Sends ranks the state of their communicators: the failed set, gone ranks, and stalls.
//
// A rank remembers what it was sent. A change queues the ranks of its communicator. A job of the
// loop brings queued ranks up to date, one rank of each user in turn, within JOBS_TURN_NS. So a
// change costs little at once, however many ranks the communicator has here.
#include "jobs/host/inside.h"

#include <lib/container.h>

#include <string.h>

static void send_gone_rank(const struct host_rank *rank, const struct gone *gone) {
	struct job_event event = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EVENT},
		.comm = rank->told.comm,
		.view = rank->comm->view,
		.happened_ns = gone->happened_ns,
		.kind = TOCSIN_PEER_GONE,
		.rank = gone->rank,
	};

	if (gone->rank == rank->told.rank)
		return;
	memcpy(event.text, gone->cause, strnlen(gone->cause, sizeof(gone->cause) - 1));
	connection_send_packet(rank->process->connection, &event, sizeof(event));
}

static void send_failed_set(const struct host_rank *rank) {
	const struct host_comm *comm = rank->comm;
	struct job_failed failed = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_FAILED},
		.comm = rank->told.comm,
		.view = comm->view,
		.agreement =
			comm->agreed_count == comm->gone_count ? TOCSIN_AGREED : TOCSIN_UNDECIDED,
		.total = comm->agreed_count,
	};

	do {
		uint32_t left = comm->agreed_count - failed.first;

		failed.count = left < JOB_FAILED_MAX ? left : JOB_FAILED_MAX;
		if (failed.count > 0)
			memcpy(failed.ranks, comm->agreed + failed.first,
			       failed.count * sizeof(failed.ranks[0]));
		connection_send_packet(rank->process->connection, &failed, sizeof(failed));
		failed.first += failed.count;
	} while (failed.first < comm->agreed_count);
}

static void send_stall(const struct host_rank *rank) {
	const struct stall *stall = rank->comm->stall;
	struct job_event event = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EVENT},
		.comm = rank->told.comm,
		.view = rank->comm->view,
		.happened_ns = rank->comm->heard_ns,
		.kind = stall->kind,
		.rank = stall->rank,
	};

	memcpy(event.text, stall->text, strnlen(stall->text, sizeof(stall->text) - 1));
	connection_send_event(rank->process->connection, &event);
}

// The set comes before the gone ranks, so that a receiver of an event can query the set.
static void send_comm_state(struct host_rank *rank) {
	const struct host_connection *connection = rank->process->connection;
	const struct host_comm *comm = rank->comm;

	if (connection != NULL && rank->set_sent != comm->set_serial)
		send_failed_set(rank);
	// When a rack fails, many ranks are gone at once. The failed set, sent before, names them
	// too. Without this limit the process would be disconnected, receive all again, and be
	// disconnected again.
	for (uint32_t n = rank->gone_sent; connection != NULL && n < comm->gone_count &&
					   connection->waiting_count < QUEUED_PACKETS_MAX / 2;
	     n++)
		send_gone_rank(rank, agree_find_gone_rank(comm, comm->gone_order[n]));
	if (rank->stall_sent != comm->stall_serial)
		send_stall(rank);
	rank->set_sent = comm->set_serial;
	rank->gone_sent = comm->gone_count;
	rank->stall_sent = comm->stall_serial;
}

static void queue_rank(struct host_rank *rank) {
	struct host_user *user = rank->process->user;
	struct jobhost *host = user->host;

	if (rank->is_unsent)
		return;
	rank->is_unsent = true;
	rank->comm->unsent_count++;
	TAILQ_INSERT_TAIL(&user->unsent, rank, unsent);
	if (!user->is_queued)
		TAILQ_INSERT_TAIL(&host->unsent_users, user, queue);
	user->is_queued = true;
	loop_defer(host->loop, &host->send_job);
}

void rank_cancel_send(struct host_rank *rank) {
	if (!rank->is_unsent)
		return;
	TAILQ_REMOVE(&rank->process->user->unsent, rank, unsent);
	rank->is_unsent = false;
	rank->comm->unsent_count--;
}

void comm_send_state(struct host_comm *comm) {
	struct host_rank *rank = comm->unsent_count < comm->rank_count ? comm->ranks : NULL;

	for (; rank != NULL; rank = rank->next_of_comm)
		queue_rank(rank);
}

void comm_send_gone_set(struct host_comm *comm) {
	comm->set_serial++;
	comm_send_state(comm);
}

void rank_send_comm_state(struct host_rank *rank) {
	rank->set_sent = UINT64_MAX; // no serial has this number
	rank->gone_sent = 0;
	queue_rank(rank);
}

static void send_to_queued_ranks(struct loop_job *job) {
	struct jobhost *host = container_of(job, struct jobhost, send_job);
	uint64_t began_ns = loop_clock_ns(host->loop);
	struct host_user *user;

	while ((user = TAILQ_FIRST(&host->unsent_users)) != NULL) {
		struct host_rank *rank = TAILQ_FIRST(&user->unsent);

		TAILQ_REMOVE(&host->unsent_users, user, queue);
		user->is_queued = rank != NULL;
		if (rank == NULL)
			continue;
		TAILQ_INSERT_TAIL(&host->unsent_users, user, queue);
		rank_cancel_send(rank);
		send_comm_state(rank);
		if (!jobs_have_time(host, &began_ns)) {
			loop_defer(host->loop, job);
			return;
		}
	}
}

void send_init(struct jobhost *host) {
	TAILQ_INIT(&host->unsent_users);
	host->send_job.run = send_to_queued_ranks;
}

void send_fini(struct jobhost *host) {
	loop_undefer(host->loop, &host->send_job);
}
