// SPDX-License-Identifier: BSD-3-Clause
// Counting by communicator: finds the calling thread's slot, in a small per-thread cache or, the
// first time, in the page.
#include "inside.h"

#define CACHE_PLACES 4u

struct cached {
	// number of a communicator; never reused, so an entry cannot match another communicator
	uint64_t number;
	struct tocsin_counter *counter;
};

// Cache of each thread. With initial-exec, access needs no function call. The loader reserves 64
// bytes or more for such variables of libraries loaded at run time.
static _Thread_local struct cached cache[CACHE_PLACES] __attribute__((tls_model("initial-exec")));

// Return the thread's own slot, else one of an ended thread, else a free one, else the shared one.
static struct tocsin_counter *find_or_allocate_slot(struct tocsin_comm *comm) {
	struct tocsin_job *job = comm->job;
	uint64_t self = owner_self();
	uint32_t orphan = JOB_SLOTS, slot = JOB_SLOTS;

	pthread_mutex_lock(&job->mutex);
	for (uint32_t n = 0; n < JOB_SLOTS && slot == JOB_SLOTS && self >= OWNER_FIRST; n++) {
		if (job->owners[n] != self && job->owners[n] != OWNER_ORPHAN)
			continue;
		if (atomic_load_explicit(
			    &job->page->launched[n].counts.comm, memory_order_relaxed
		    ) != comm->number)
			continue;
		if (job->owners[n] == self)
			slot = n;
		else
			orphan = n;
	}
	if (slot == JOB_SLOTS && orphan != JOB_SLOTS) {
		slot = orphan;
		job->owners[slot] = self;
	}
	if (slot == JOB_SLOTS && self >= OWNER_FIRST)
		slot = page_allocate_slot(job, comm, self);
	if (slot == JOB_SLOTS)
		slot = comm->first_slot;
	pthread_mutex_unlock(&job->mutex);
	return &job->counters[slot];
}

// Returns NULL the first time, and if another communicator has replaced the cache entry.
static inline struct tocsin_counter *cached_counter(const struct tocsin_comm *comm) {
	const struct cached *cached = &cache[comm->number % CACHE_PLACES];

	return __builtin_expect(cached->number == comm->number, 1) ? cached->counter : NULL;
}

static struct tocsin_counter *acquire_counter(struct tocsin_comm *comm) {
	struct cached *cached = &cache[comm->number % CACHE_PLACES];

	cached->counter = find_or_allocate_slot(comm);
	cached->number = comm->number;
	return cached->counter;
}

// The slow paths are separate functions, so that the fast paths need no stack frame.
static __attribute__((noinline)) void count_launched_slow(
	struct tocsin_comm *comm,
	enum tocsin_kind kind,
	uint64_t count,
	uint8_t datatype,
	int32_t root
) {
	tocsin_counter_launched(acquire_counter(comm), kind, count, datatype, root);
}

static __attribute__((noinline)) void
count_started_slow(struct tocsin_comm *comm, enum tocsin_kind kind) {
	tocsin_counter_started(acquire_counter(comm), kind);
}

static __attribute__((noinline)) void
count_completed_slow(struct tocsin_comm *comm, enum tocsin_kind kind) {
	tocsin_counter_completed(acquire_counter(comm), kind);
}

void tocsin_comm_launched(
	struct tocsin_comm *comm,
	enum tocsin_kind kind,
	uint64_t count,
	uint8_t datatype,
	int32_t root
) {
	struct tocsin_counter *counter = cached_counter(comm);

	if (counter != NULL)
		tocsin_counter_launched(counter, kind, count, datatype, root);
	else
		count_launched_slow(comm, kind, count, datatype, root);
}

void tocsin_comm_started(struct tocsin_comm *comm, enum tocsin_kind kind) {
	struct tocsin_counter *counter = cached_counter(comm);

	if (counter != NULL)
		tocsin_counter_started(counter, kind);
	else
		count_started_slow(comm, kind);
}

void tocsin_comm_completed(struct tocsin_comm *comm, enum tocsin_kind kind) {
	struct tocsin_counter *counter = cached_counter(comm);

	if (counter != NULL)
		tocsin_counter_completed(counter, kind);
	else
		count_completed_slow(comm, kind);
}
