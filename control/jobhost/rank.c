// SPDX-License-Identifier: BSD-3-Clause
// Registration, lookup and removal of ranks and communicators.
#include "jobhost/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_rank *rank_find(struct host_process *process, uint64_t number) {
	struct host_rank *rank = process->ranks;

	while (rank != NULL && rank->told.comm != number)
		rank = rank->next;
	return rank;
}

struct host_comm *comm_find_by_key(struct jobhost *host, const struct host_comm *key) {
	struct host_comm *comm = host->comms;

	while (comm != NULL &&
	       (comm->comm_hash != key->comm_hash || comm->host_hash != key->host_hash ||
		comm->process_hash != key->process_hash || comm->uid != key->uid ||
		comm->size != key->size))
		comm = comm->next;
	return comm;
}

static struct host_comm *comm_create(struct jobhost *host, const struct host_comm *key) {
	struct host_comm *comm = malloc(sizeof(*comm));

	if (comm == NULL)
		return NULL;
	*comm = *key;
	comm->next = host->comms;
	host->comms = comm;
	watch_add_comm(host, comm);
	return comm;
}

void comm_destroy(struct jobhost *host, struct host_comm *comm) {
	struct host_comm **at = &host->comms;

	while (*at != comm)
		at = &(*at)->next;
	*at = comm->next;
	stall_clear(host, comm);
	host->empty_comms -= comm->empty_ns != 0;
	free(comm->gone);
	free(comm->agreed);
	free(comm->roster.rows);
	free(comm->trouble);
	free(comm);
}

// Return why a registration is refused, or NULL if it is valid.
static const char *
registration_reject_reason(struct host_process *process, const struct job_register *told) {
	if (told->comm == 0)
		return "communicator 0 is not valid";
	if (told->size == 0 || told->size > JOB_COMM_SIZE_MAX)
		return "the size of a communicator must be 1 to 1048576";
	if (told->rank >= told->size)
		return "the rank must be below the size";
	if (process->rank_count >= JOB_COMMS_MAX)
		return "a process has at most 127 communicators";
	return NULL;
}

static bool
has_rank_quota(const struct host_process *process, char reason[static JOB_REASON_BYTES]) {
	const struct jobhost *host = process->host;
	uint64_t ranks = 0;

	for (const struct host_process *at = host->processes; at != NULL; at = at->next)
		ranks += at->uid == process->uid && at->exited_ns == 0 ? at->rank_count : 0;
	if (ranks < (uint64_t)RANKS_PER_PROCESS * host->config.per_user_max)
		return true;
	snprintf(
		reason, JOB_REASON_BYTES,
		"user %u has %u ranks already, the limit (%u for each process of [job] per_user)",
		process->uid, (uint32_t)ranks, RANKS_PER_PROCESS
	);
	return false;
}

static bool rank_is_taken(
	const struct host_comm *comm,
	const struct job_register *told,
	char reason[static JOB_REASON_BYTES]
) {
	for (const struct host_rank *rank = comm->ranks; rank != NULL; rank = rank->next_of_comm)
		if (rank->told.rank == told->rank) {
			snprintf(
				reason, JOB_REASON_BYTES, "rank %u is held by process %d already",
				told->rank, rank->process->pid
			);
			return true;
		}
	return false;
}

static void fill_report(struct host_rank *rank) {
	const struct job_register *told = &rank->told;
	const struct host_process *process = rank->process;
	struct jobs_rank_report *report = &rank->report;

	report->comm_hash = told->comm_hash;
	report->host_hash = told->host_hash;
	report->process_hash = told->process_hash;
	report->size = told->size;
	report->rank = told->rank;
	report->cuda_device = told->cuda_device;
	report->nvml_device = told->nvml_device;
	report->config_hash = told->configuration_hash;
	report->pid = (uint32_t)process->pid;
	report->uid = (uint32_t)process->uid;
	memcpy(report->job_id, process->job_id, sizeof(report->job_id));
	report->blocks = (told->flags & TOCSIN_COMM_BLOCKS) != 0;
	report->attached = true;
	report->progress_ns = loop_now_ns(process->host->loop);
}

struct host_rank *rank_add(
	struct host_process *process,
	const struct job_register *told,
	char reason[static JOB_REASON_BYTES]
) {
	struct jobhost *host = process->host;
	const struct host_comm key = {
		.comm_hash = told->comm_hash,
		.host_hash = told->host_hash,
		.process_hash = told->process_hash,
		.uid = process->uid,
		.size = told->size,
	};
	struct host_rank *rank = rank_find(process, told->comm);
	struct host_comm *comm = comm_find_by_key(host, &key);
	const char *bad = registration_reject_reason(process, told);

	if (rank != NULL && memcmp(&rank->told, told, sizeof(*told)) == 0) {
		rank->report.attached = true; // a reconnected process registers the rank again
		return rank;
	}
	if (rank != NULL)
		bad = "another communicator of the process uses this number already";
	if (bad != NULL) {
		snprintf(reason, JOB_REASON_BYTES, "%s", bad);
		return NULL;
	}
	if (!has_rank_quota(process, reason) || (comm != NULL && rank_is_taken(comm, told, reason)))
		return NULL;
	snprintf(reason, JOB_REASON_BYTES, "out of memory");
	rank = calloc(1, sizeof(*rank));
	comm = rank == NULL ? NULL : comm != NULL ? comm : comm_create(host, &key);
	if (comm == NULL) {
		free(rank);
		return NULL;
	}
	host->empty_comms -= comm->empty_ns != 0;
	comm->empty_ns = 0;
	rank->process = process;
	rank->comm = comm;
	rank->told = *told;
	rank->since_ns = loop_now_ns(host->loop);
	rank->next = process->ranks;
	process->ranks = rank;
	process->rank_count++;
	host->counters.ranks++;
	rank->next_of_comm = comm->ranks;
	comm->ranks = rank;
	fill_report(rank);
	return rank;
}

void rank_leave_comm(struct host_rank *rank) {
	struct jobhost *host = rank->process->host;
	struct host_comm *comm = rank->comm;
	struct host_rank **at;

	if (comm == NULL)
		return;
	at = &comm->ranks;
	while (*at != rank)
		at = &(*at)->next_of_comm;
	*at = rank->next_of_comm;
	rank->comm = NULL;
	if (comm->ranks != NULL)
		return;
	comm->empty_ns = loop_now_ns(host->loop);
	host->empty_comms++;
	if (agree_can_free_comm(comm, comm->empty_ns) || host->empty_comms > EMPTY_COMMS_MAX)
		comm_destroy(host, comm);
}

void rank_remove(struct host_rank *rank) {
	struct host_rank **at = &rank->process->ranks;

	rank_leave_comm(rank);
	while (*at != rank)
		at = &(*at)->next;
	*at = rank->next;
	rank->process->rank_count--;
	rank->process->host->counters.ranks -= rank->process->exited_ns == 0;
	free(rank);
}
