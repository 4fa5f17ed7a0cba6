// SPDX-License-Identifier: BSD-3-Clause
// Registration, lookup and removal of ranks and communicators.
#include "jobs/host/inside.h"

#include <lib/container.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_rank *rank_find(struct host_process *process, uint64_t number) {
	struct host_rank *rank = process->ranks;

	while (rank != NULL && rank->told.comm != number)
		rank = rank->next;
	return rank;
}

static uint64_t comm_key_hash(const struct jobhost *host, const struct host_comm *key) {
	const uint64_t words[] = {
		key->comm_hash, key->host_hash, key->process_hash,
		(uint64_t)key->uid << 32 | key->size, key->attempt};

	return table_hash(host->secret, words, sizeof(words));
}

static bool keys_equal(const struct host_comm *a, const struct host_comm *b) {
	return a->comm_hash == b->comm_hash && a->host_hash == b->host_hash &&
	       a->process_hash == b->process_hash && a->uid == b->uid && a->size == b->size &&
	       a->attempt == b->attempt;
}

struct host_comm *comm_find_by_key(struct jobhost *host, const struct host_comm *key) {
	struct table *table = &host->comms_by_key;
	struct table_entry *entry = table_first(table, comm_key_hash(host, key));

	for (; entry != NULL; entry = table_next(table, entry)) {
		struct host_comm *comm = container_of(entry, struct host_comm, by_key);

		if (!comm->is_past && keys_equal(comm, key))
			return comm;
	}
	return NULL;
}

struct host_comm *
comm_next_past(struct jobhost *host, const struct host_comm *key, const struct host_comm *after) {
	struct table *table = &host->comms_by_key;
	struct table_entry *entry = after != NULL ? table_next(table, &after->by_key)
						  : table_first(table, comm_key_hash(host, key));

	for (; entry != NULL; entry = table_next(table, entry)) {
		struct host_comm *comm = container_of(entry, struct host_comm, by_key);

		if (comm->is_past && keys_equal(comm, key))
			return comm;
	}
	return NULL;
}

// Count the earlier attempts with this key. Store one without local ranks; NULL: none.
static uint32_t count_past_attempts(
	struct jobhost *host, const struct host_comm *key, struct host_comm **ret_empty
) {
	struct host_comm *past = NULL;
	uint32_t count = 0;

	*ret_empty = NULL;
	while ((past = comm_next_past(host, key, past)) != NULL) {
		if (past->ranks == NULL)
			*ret_empty = past;
		count++;
	}
	return count;
}

static struct host_comm *
comm_create(struct jobhost *host, struct host_user *user, const struct host_comm *key) {
	struct host_comm *comm = malloc(sizeof(*comm));

	if (comm == NULL)
		return NULL;
	*comm = *key;
	comm->serial = ++host->comm_serial;
	comm->user = user_hold(user);
	comm->next = host->comms;
	comm->link = &host->comms;
	if (comm->next != NULL)
		comm->next->link = &comm->next;
	host->comms = comm;
	TAILQ_INSERT_TAIL(&user->comms, comm, of_user);
	table_add(&host->comms_by_key, &comm->by_key, comm_key_hash(host, key));
	watch_add_comm(host, comm);
	return comm;
}

void comm_destroy(struct jobhost *host, struct host_comm *comm) {
	struct host_user *user = comm->user;

	*comm->link = comm->next;
	if (comm->next != NULL)
		comm->next->link = comm->link;
	if (host->round.next_comm == comm)
		host->round.next_comm = comm->next;
	if (host->next_of_answer == comm)
		host->next_of_answer = comm->next;
	TAILQ_REMOVE(&user->comms, comm, of_user);
	table_remove(&host->comms_by_key, &comm->by_key);
	stall_clear(host, comm);
	user->empty_comms -= comm->empty_ns != 0;
	user->gone_ranks -= comm->gone_count;
	agree_forget_departed_ranks(comm);
	user->roster_rows -= comm->roster.count;
	free(comm->gone);
	free(comm->gone_order);
	free(comm->agreed);
	free(comm->roster.rows);
	free(comm->stall);
	free(comm->trouble);
	free(comm);
	user_put(user);
}

static uint64_t
rank_number_hash(const struct jobhost *host, const struct host_comm *comm, uint32_t number) {
	const uint64_t words[] = {(uint64_t)(uintptr_t)comm, number};

	return table_hash(host->secret, words, sizeof(words));
}

struct host_rank *
rank_find_in_comm(struct jobhost *host, const struct host_comm *comm, uint32_t number) {
	struct table *table = &host->ranks_by_number;
	struct table_entry *entry = table_first(table, rank_number_hash(host, comm, number));

	for (; entry != NULL; entry = table_next(table, entry)) {
		struct host_rank *rank = container_of(entry, struct host_rank, by_number);

		if (rank->comm == comm && rank->told.rank == number)
			return rank;
	}
	return NULL;
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
		return "a job of a process has at most 127 communicators";
	return NULL;
}

static bool
has_rank_quota(const struct host_process *process, char reason[static JOB_REASON_BYTES]) {
	const uint32_t ranks = process->user->ranks;

	if (ranks < (uint64_t)RANKS_PER_PROCESS * process->host->config.per_user_max)
		return true;
	snprintf(
		reason, JOB_REASON_BYTES,
		"user %u has %u ranks already, the limit (%u for each process of [job] per_user)",
		process->uid, ranks, RANKS_PER_PROCESS
	);
	return false;
}

// exec() closes the socket of the earlier program, which cannot come back, and keeps the pid.
static bool
rank_is_of_replaced_program(const struct host_rank *rank, const struct host_process *process) {
	const struct host_process *holder = rank->process;

	return holder != process && holder->connection == NULL && holder->pid == process->pid &&
	       holder->start_time == process->start_time;
}

// Remove the rank of a program that `process` replaced. Returns false if no other process holds the
// rank.
static bool rank_is_taken(
	const struct host_process *process,
	const struct host_comm *key,
	uint32_t number,
	char reason[static JOB_REASON_BYTES]
) {
	struct jobhost *host = process->host;
	const struct host_comm *comm = comm_find_by_key(host, key);
	struct host_rank *rank = comm != NULL ? rank_find_in_comm(host, comm, number) : NULL;

	comm = NULL;
	while (rank == NULL && (comm = comm_next_past(host, key, comm)) != NULL)
		rank = rank_find_in_comm(host, comm, number);
	if (rank != NULL && rank_is_of_replaced_program(rank, process)) {
		rank_remove(rank);
		return false;
	}
	if (rank != NULL)
		snprintf(
			reason, JOB_REASON_BYTES, "rank %u is held by process %d already", number,
			rank->process->pid
		);
	return rank != NULL;
}

static bool registrations_equal(const struct job_register *a, const struct job_register *b) {
	struct job_register left = *a, right = *b;

	left.flags &= ~JOB_REGISTER_AGAIN;
	right.flags &= ~JOB_REGISTER_AGAIN;
	return memcmp(&left, &right, sizeof(left)) == 0;
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
	report->attempt = process->attempt;
	// A rank of an earlier agent registered at an unknown time, long ago.
	report->since_ns =
		(told->flags & JOB_REGISTER_AGAIN) != 0 ? 0 : loop_now_ns(process->host->loop);
	report->blocks = (told->flags & TOCSIN_COMM_BLOCKS) != 0;
	report->attached = true;
	report->progress_ns = loop_now_ns(process->host->loop);
}

static void comm_add_rank(struct host_comm *comm, struct host_rank *rank) {
	struct jobhost *host = rank->process->host;

	// A reload may have changed the user of new processes, but not that of the communicator.
	comm->user->empty_comms -= comm->empty_ns != 0;
	comm->empty_ns = 0;
	rank->comm = comm;
	rank->next_of_comm = comm->ranks;
	rank->link_of_comm = &comm->ranks;
	if (rank->next_of_comm != NULL)
		rank->next_of_comm->link_of_comm = &rank->next_of_comm;
	comm->ranks = rank;
	comm->rank_count++;
	rank->stall_sent = comm->stall_serial; // an earlier stall does not concern the rank
	table_add(
		&host->ranks_by_number, &rank->by_number,
		rank_number_hash(host, comm, rank->told.rank)
	);
	if (rank->since_ns <= comm->newest_ns)
		return;
	// Roster and departed ranks may be of an attempt that ended before this rank registered.
	comm->newest_ns = rank->since_ns;
	roster_forget(comm);
	agree_forget_departed_ranks(comm);
	watch_add_comm(host, comm);
	jobhost_sweep_often(host);
}

void comm_refresh_newest(struct host_comm *comm) {
	if (!comm->newest_is_stale)
		return;
	comm->newest_is_stale = false;
	comm->newest_ns = 0;
	for (const struct host_rank *at = comm->ranks; at != NULL; at = at->next_of_comm)
		if (at->since_ns > comm->newest_ns)
			comm->newest_ns = at->since_ns;
}

// Return whether some rank ended before this agent started. A rank that registers again may have
// registered after that end, so it does not join the record.
static bool has_end_before_start(const struct jobhost *host, const struct host_comm *comm) {
	for (uint32_t n = 0; n < comm->gone_count; n++)
		if (comm->gone[n].earliest_ns != 0 && comm->gone[n].earliest_ns <= host->began_ns)
			return true;
	return false;
}

// Return the record that a new rank joins, or NULL without memory. The end of a rank never speaks
// for a rank that registers after it. So a registration after an end begins an attempt, and so
// does a number that is registered again. docs/internals/control.md has the rule.
static struct host_comm *join_attempt(
	struct jobhost *host,
	struct host_user *user,
	const struct host_comm *key,
	const struct job_register *told,
	char reason[static JOB_REASON_BYTES]
) {
	struct host_comm *comm = comm_find_by_key(host, key), *begun, *empty;
	bool begins = departed_rank_begins_attempt(user, key, comm, told->rank);

	begins = begins || (comm != NULL && comm->gone_count > 0);
	if (comm != NULL && (!begins || ((told->flags & JOB_REGISTER_AGAIN) != 0 &&
					 !has_end_before_start(host, comm))))
		return comm;
	// Each notice is handled once for each attempt, so their number is limited.
	if (comm != NULL && count_past_attempts(host, key, &empty) >= PAST_ATTEMPTS_MAX) {
		if (empty == NULL) {
			snprintf(
				reason, JOB_REASON_BYTES,
				"%u earlier attempts of this communicator still have ranks here",
				PAST_ATTEMPTS_MAX
			);
			return NULL;
		}
		comm_destroy(host, empty);
	}
	begun = comm_create(host, user, key);
	if (comm != NULL && begun != NULL)
		comm->is_past = true;
	return begun;
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
		.attempt = process->attempt,
		.size = told->size,
	};
	struct host_rank *rank = rank_find(process, told->comm);
	const char *bad = registration_reject_reason(process, told);
	struct host_comm *comm;

	if (rank != NULL && registrations_equal(&rank->told, told)) {
		rank->report.attached = true; // a reconnected process registers the rank again
		return rank;
	}
	if (rank != NULL)
		bad = "another communicator of the process uses this number already";
	if (bad != NULL) {
		snprintf(reason, JOB_REASON_BYTES, "%s", bad);
		return NULL;
	}
	// A rank of a replaced program is removed first, because it counts in the quota.
	if (rank_is_taken(process, &key, told->rank, reason) || !has_rank_quota(process, reason))
		return NULL;
	snprintf(reason, JOB_REASON_BYTES, "out of memory");
	rank = calloc(1, sizeof(*rank));
	comm = rank != NULL ? join_attempt(host, process->user, &key, told, reason) : NULL;
	if (rank == NULL || comm == NULL) {
		free(rank);
		return NULL;
	}
	rank->process = process;
	rank->told = *told;
	// A rank of an earlier agent registered before this agent began; its page says when.
	rank->since_ns =
		(told->flags & JOB_REGISTER_AGAIN) != 0 ? host->began_ns : loop_now_ns(host->loop);
	rank->next = process->ranks;
	process->ranks = rank;
	process->rank_count++;
	host->counters.ranks++;
	process->user->ranks++;
	comm_add_rank(comm, rank);
	fill_report(rank);
	return rank;
}

static void comm_remove_rank(struct host_rank *rank) {
	rank_cancel_send(rank);
	table_remove(&rank->process->host->ranks_by_number, &rank->by_number);
	*rank->link_of_comm = rank->next_of_comm;
	if (rank->next_of_comm != NULL)
		rank->next_of_comm->link_of_comm = rank->link_of_comm;
	rank->comm->rank_count--;
	rank->comm = NULL;
}

bool comm_split_attempt(struct jobhost *host, struct host_comm *comm, uint64_t at_ns) {
	const struct host_comm key = {
		.comm_hash = comm->comm_hash,
		.host_hash = comm->host_hash,
		.process_hash = comm->process_hash,
		.uid = comm->uid,
		.attempt = comm->attempt,
		.size = comm->size,
		.is_past = comm->is_past,
	};
	struct host_comm *begun = NULL, *empty;
	struct host_rank *next;
	uint64_t newest_ns = 0;

	if (comm->newest_ns < at_ns)
		return true;
	// The caller may be about to visit an empty record, so none is destroyed here.
	if (count_past_attempts(host, &key, &empty) >= PAST_ATTEMPTS_MAX)
		return false;
	for (struct host_rank *rank = comm->ranks; rank != NULL; rank = next) {
		next = rank->next_of_comm;
		if (rank->since_ns < at_ns) {
			newest_ns = rank->since_ns > newest_ns ? rank->since_ns : newest_ns;
			continue;
		}
		if (begun == NULL)
			begun = comm_create(host, comm->user, &key);
		if (begun == NULL)
			return false;
		comm_remove_rank(rank);
		comm_add_rank(begun, rank);
		rank_send_comm_state(rank);
	}
	comm->is_past = comm->is_past || begun != NULL;
	comm->newest_ns = newest_ns;
	return true;
}

void rank_leave_comm(struct host_rank *rank) {
	struct jobhost *host = rank->process->host;
	struct host_comm *comm = rank->comm;

	if (comm == NULL)
		return;
	comm_remove_rank(rank);
	if (comm->ranks != NULL)
		return;
	comm->empty_ns = loop_now_ns(host->loop);
	comm->user->empty_comms++;
	if (agree_can_free_comm(comm, comm->empty_ns) || comm->user->empty_comms > EMPTY_COMMS_MAX)
		comm_destroy(host, comm);
}

void rank_remove(struct host_rank *rank) {
	struct host_process *process = rank->process;
	struct host_rank **at = &process->ranks; // a process has at most JOB_COMMS_MAX ranks

	rank_leave_comm(rank);
	while (*at != rank)
		at = &(*at)->next;
	*at = rank->next;
	process->rank_count--;
	process->host->counters.ranks -= process->exited_ns == 0;
	process->user->ranks -= process->exited_ns == 0;
	free(rank);
}
