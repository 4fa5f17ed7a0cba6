// SPDX-License-Identifier: BSD-3-Clause
// Owners of slots. When a thread ends, its slots become available to other threads. A child of
// fork() is not part of its parent's job.
#include "inside.h"
#include "old_symbols.h"

#include <unistd.h>

// Guards the variables below. Locked before any job's mutex.
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct tocsin_job *all_jobs;
static uint64_t next_owner = OWNER_FIRST;
static pthread_key_t thread_end; // valid if `prepared` and `hears_threads`
static bool prepared, hears_threads;

static void on_thread_end(void *value) {
	uint64_t owner = (uint64_t)(uintptr_t)value;

	pthread_mutex_lock(&all_mutex);
	for (struct tocsin_job *job = all_jobs; job != NULL; job = job->next) {
		pthread_mutex_lock(&job->mutex);
		for (uint32_t n = 0; n < JOB_SLOTS; n++)
			if (job->owners[n] == owner)
				job->owners[n] = OWNER_ORPHAN;
		pthread_mutex_unlock(&job->mutex);
	}
	pthread_mutex_unlock(&all_mutex);
}

// Hold all mutexes over fork(), so that the child finds consistent data.
static void lock_all_jobs(void) {
	pthread_mutex_lock(&all_mutex);
	for (struct tocsin_job *job = all_jobs; job != NULL; job = job->next)
		pthread_mutex_lock(&job->mutex);
}

static void unlock_all_jobs(void) {
	for (struct tocsin_job *job = all_jobs; job != NULL; job = job->next)
		pthread_mutex_unlock(&job->mutex);
	pthread_mutex_unlock(&all_mutex);
}

static void detach_in_child(void) {
	for (struct tocsin_job *job = all_jobs; job != NULL; job = job->next) {
		if (job->inherited)
			continue;
		job->inherited = true;
		// The thread that delivered events or polled does not exist in the child. Neither
		// do the threads that wait on the condition, so it is initialised again.
		job->telling = 0;
		job->polled = false;
		job_init_condition(job);
		page_detach_child(job);
		link_close(&job->link);
		event_detach_child(job);
	}
	unlock_all_jobs();
}

void owner_add_job(struct tocsin_job *job) {
	pthread_mutex_lock(&all_mutex);
	if (!prepared) {
		prepared = true;
		hears_threads = pthread_key_create(&thread_end, on_thread_end) == 0;
		(void)pthread_atfork(lock_all_jobs, unlock_all_jobs, detach_in_child);
	}
	job->next = all_jobs;
	all_jobs = job;
	pthread_mutex_unlock(&all_mutex);
}

void owner_remove_job(struct tocsin_job *job) {
	pthread_mutex_lock(&all_mutex);
	for (struct tocsin_job **at = &all_jobs; *at != NULL; at = &(*at)->next)
		if (*at == job) {
			*at = job->next;
			break;
		}
	pthread_mutex_unlock(&all_mutex);
}

uint64_t owner_self(void) {
	uint64_t owner;

	if (!hears_threads) // written before the first job exists, and never changed
		return OWNER_SHARED;
	owner = (uint64_t)(uintptr_t)pthread_getspecific(thread_end);
	if (owner != 0)
		return owner;
	pthread_mutex_lock(&all_mutex);
	owner = next_owner++;
	pthread_mutex_unlock(&all_mutex);
	// A number, not an address. NOLINTNEXTLINE(performance-no-int-to-ptr)
	return pthread_setspecific(thread_end, (void *)(uintptr_t)owner) == 0 ? owner
									      : OWNER_SHARED;
}
