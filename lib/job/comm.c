// SPDX-License-Identifier: BSD-3-Clause
// Communicators: registration, marks, reports and their end.
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// shared by all jobs of the process; relaxed, because only uniqueness matters
static _Atomic uint64_t next_number = 1;

struct tocsin_comm *comm_find(struct tocsin_job *job, uint64_t number) {
	for (uint32_t n = 0; n < JOB_COMMS_MAX; n++)
		if (job->comms[n] != NULL && job->comms[n]->number == number)
			return job->comms[n];
	return NULL;
}

// Copy the caller's struct, and zero the fields that an older program does not have. Returns 0 or
// -EINVAL.
static int
copy_config(const struct tocsin_comm_config *given, struct tocsin_comm_config *ret_config) {
	struct tocsin_comm_config config = {0};

	if (given == NULL || given->struct_size < offsetof(struct tocsin_comm_config, name))
		return -EINVAL;
	memcpy(&config, given,
	       given->struct_size < sizeof(config) ? given->struct_size : sizeof(config));
	if (config.size == 0 || config.size > JOB_COMM_SIZE_MAX || config.rank >= config.size)
		return -EINVAL;
	if (config.name != NULL && strlen(config.name) >= JOB_NAME_BYTES)
		return -EINVAL;
	*ret_config = config;
	return 0;
}

int tocsin_comm_register(
	struct tocsin_job *job,
	const struct tocsin_comm_config *given,
	struct tocsin_comm **ret_comm
) {
	struct tocsin_comm_config config;
	struct tocsin_comm *comm;
	uint32_t place = 0;
	int err = copy_config(given, &config);

	if (err != 0)
		return err;
	comm = calloc(1, sizeof(*comm));
	if (comm == NULL)
		return -ENOMEM;
	comm->job = job;
	comm->number = atomic_fetch_add_explicit(&next_number, 1, memory_order_relaxed);
	comm->told = (struct job_register){
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_REGISTER},
		.comm = comm->number,
		.comm_hash = config.comm_hash,
		.host_hash = config.host_hash,
		.process_hash = config.process_hash,
		.configuration_hash = config.configuration_hash,
		.size = config.size,
		.rank = config.rank,
		.flags = config.flags,
		.cuda_device = config.cuda_device,
		.nvml_device = config.nvml_device,
	};
	if (config.name != NULL)
		memcpy(comm->told.name, config.name, strlen(config.name));
	comm->context = config.context;
	comm->aborts = (config.flags & TOCSIN_COMM_ABORTS) != 0;
	comm->registration_is_unsent = true;
	comm->failed.agreement = TOCSIN_UNDECIDED;
	pthread_mutex_lock(&job->mutex);
	while (place < JOB_COMMS_MAX && job->comms[place] != NULL)
		place++;
	if (place < JOB_COMMS_MAX)
		comm->first_slot = page_allocate_slot(job, comm, OWNER_SHARED);
	if (place == JOB_COMMS_MAX || comm->first_slot == JOB_SLOTS) {
		err = -ENOSPC;
	} else {
		comm->place = place;
		job->comms[place] = comm;
	}
	pthread_mutex_unlock(&job->mutex);
	if (err != 0) {
		free(comm);
		return err;
	}
	job_wake(job);
	*ret_comm = comm;
	return 0;
}

void tocsin_comm_unregister(struct tocsin_comm *comm) {
	struct tocsin_job *job;

	if (comm == NULL)
		return;
	job = comm->job;
	pthread_mutex_lock(&job->mutex);
	while (job->telling == comm->number && !pthread_equal(job->callback_thread, pthread_self()))
		pthread_cond_wait(&job->changed, &job->mutex);
	job->comms[comm->place] = NULL;
	page_note_departure(job, comm);
	page_release_slots(job, comm->number);
	// The agent knows only communicators whose registration was sent. A lost connection resets
	// the queue and marks all registrations as unsent.
	if (!comm->registration_is_unsent && job->link.state == LINK_UP)
		job->left[job->left_count++] = comm->number;
	pthread_mutex_unlock(&job->mutex);
	job_wake(job);
	failed_set_fini(comm);
	free(comm);
}

enum tocsin_job_state tocsin_comm_state(struct tocsin_comm *comm, char *text, size_t size) {
	enum tocsin_job_state state;

	pthread_mutex_lock(&comm->job->mutex);
	state = comm->state;
	if (size > 0) {
		size_t length = strnlen(comm->reason, sizeof(comm->reason) - 1);

		length = length < size ? length : size - 1;
		memcpy(text, comm->reason, length);
		text[length] = '\0';
	}
	pthread_mutex_unlock(&comm->job->mutex);
	return state;
}

int tocsin_comm_counter(struct tocsin_comm *comm, struct tocsin_counter **ret_counter) {
	struct tocsin_job *job = comm->job;
	uint32_t slot;

	pthread_mutex_lock(&job->mutex);
	slot = page_allocate_slot(job, comm, OWNER_CALLER);
	pthread_mutex_unlock(&job->mutex);
	if (slot == JOB_SLOTS)
		return -ENOSPC;
	*ret_counter = &job->counters[slot];
	return 0;
}

static int set_mark(struct job_marks *marks, enum tocsin_mark mark, uint64_t value) {
	static const uint32_t flags[] = {
		[TOCSIN_MARK_FINALIZED] = JOB_MARK_FINALIZED,
		[TOCSIN_MARK_DESTROYED] = JOB_MARK_DESTROYED,
		[TOCSIN_MARK_ABORTED] = JOB_MARK_ABORTED,
	};

	switch (mark) {
	case TOCSIN_MARK_INIT:
	case TOCSIN_MARK_ASYNC_ERROR:
		if (value > UINT8_MAX)
			return -EINVAL;
		atomic_store_explicit(
			mark == TOCSIN_MARK_INIT ? &marks->init_state : &marks->async_error,
			(uint32_t)value, memory_order_release
		);
		return 0;
	case TOCSIN_MARK_ABORTED:
		if (value > UINT32_MAX)
			atomic_store_explicit(&marks->abort_value, value, memory_order_release);
		// fallthrough
	case TOCSIN_MARK_FINALIZED:
	case TOCSIN_MARK_DESTROYED:
		atomic_fetch_or_explicit(&marks->flags, flags[mark], memory_order_release);
		return 0;
	case TOCSIN_MARK_POSTED:
		// The flag is for agents that do not know the value.
		if (value != 0 && atomic_load_explicit(&marks->posted, memory_order_relaxed) == 0)
			atomic_fetch_or_explicit(
				&marks->flags, JOB_MARK_POSTED, memory_order_release
			);
		else if (value == 0)
			atomic_fetch_and_explicit(
				&marks->flags, ~JOB_MARK_POSTED, memory_order_release
			);
		atomic_store_explicit(&marks->posted, value, memory_order_release);
		return 0;
	case TOCSIN_MARK_CALL:
		atomic_store_explicit(&marks->call, value, memory_order_release);
		return 0;
	case TOCSIN_MARK_STARTED_FROM:
		atomic_store_explicit(&marks->started_from, value, memory_order_release);
		return 0;
	case TOCSIN_MARK_COMPLETED_FROM:
		atomic_store_explicit(&marks->completed_from, value, memory_order_release);
		return 0;
	}
	return -EINVAL;
}

int tocsin_comm_mark(struct tocsin_comm *comm, enum tocsin_mark mark, uint64_t value) {
	return set_mark(&comm->job->page->launched[comm->first_slot].marks, mark, value);
}

int tocsin_comm_report(struct tocsin_comm *comm, uint32_t rank, const char *reason) {
	struct tocsin_job *job = comm->job;
	struct job_report *report;
	int err = -ENOTCONN;

	if (reason == NULL || rank >= comm->told.size)
		return -EINVAL;
	pthread_mutex_lock(&job->mutex);
	if (job->link.state == LINK_UP && job->report_count < REPORTS_MAX) {
		report = &job->reports[job->report_count++];
		*report = (struct job_report){
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_REPORT},
			.comm = comm->number,
			.rank = rank,
		};
		memcpy(report->reason, reason, strnlen(reason, sizeof(report->reason) - 1));
		err = 0;
	}
	pthread_mutex_unlock(&job->mutex);
	if (err == 0)
		job_wake(job);
	return err;
}

bool tocsin_comm_should_abort(const struct tocsin_comm *comm) {
	return atomic_load_explicit(&comm->should_abort, memory_order_acquire);
}
