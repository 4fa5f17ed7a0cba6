// SPDX-License-Identifier: BSD-3-Clause
// The page: creation, and allocation of its slots.
#include "inside.h"
#include "size_signal.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Constants of the kernel that glibc 2.17 lacks. System calls are made directly, because fcntl() of
// newer glibc has another symbol version.
#define MEMORY_CLOEXEC 1u
#define MEMORY_SEALABLE 2u
#define ADD_SEALS 1033
#define SEAL_SEAL 1
#define SEAL_SHRINK 2
#define SEAL_GROW 4

int job_page_create(struct tocsin_job *job) {
	int fd = (int)syscall(SYS_memfd_create, "tocsin-job", MEMORY_CLOEXEC | MEMORY_SEALABLE);
	struct size_signal signals;
	void *memory;
	int err;

	if (fd < 0)
		return -errno;
	size_signal_block(&signals);
	err = ftruncate(fd, (off_t)JOB_PAGE_BYTES);
	size_signal_restore(&signals);
	if (err < 0 || syscall(SYS_fcntl, fd, ADD_SEALS, SEAL_SHRINK | SEAL_GROW | SEAL_SEAL) < 0)
		goto fail;
	memory = mmap(NULL, JOB_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		goto fail;
	job->page = memory;
	job->page_fd = fd;
	atomic_store_explicit(&job->page->head.version, JOB_PAGE_VERSION, memory_order_relaxed);
	atomic_store_explicit(&job->page->head.magic, JOB_PAGE_MAGIC, memory_order_release);
	return 0;
fail:
	err = -errno;
	close(fd);
	return err;
}

void job_page_destroy(struct tocsin_job *job) {
	if (job->page != NULL)
		munmap(job->page, JOB_PAGE_BYTES);
	if (job->page_fd >= 0)
		close(job->page_fd);
	job->page = NULL;
	job->page_fd = -1;
}

void page_detach_child(struct tocsin_job *job) {
	// If mmap() fails, the child would write into the parent's page, so end the child.
	if (mmap(job->page, JOB_PAGE_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		_exit(127);
	close(job->page_fd);
	job->page_fd = -1;
}

uint32_t
page_allocate_slot(struct tocsin_job *job, const struct tocsin_comm *comm, uint64_t owner) {
	struct job_page *page = job->page;
	uint32_t slot = 0;

	while (slot < JOB_SLOTS && job->owners[slot] != OWNER_NONE)
		slot++;
	if (slot == JOB_SLOTS)
		return slot;
	job->owners[slot] = owner;
	job->counters[slot] = (struct tocsin_counter){
		.completed = &page->completed[slot],
		.started = &page->started[slot],
		.launched = &page->launched[slot],
		.shared = owner == OWNER_SHARED,
		.times = (comm->told.flags & TOCSIN_COMM_TIMES) != 0 && owner != OWNER_SHARED,
	};
	// The row that a reader loads first gets its number last. So a reader finds all three
	// numbers or skips the slot.
	atomic_store_explicit(
		&page->launched[slot].counts.comm, comm->number, memory_order_release
	);
	atomic_store_explicit(&page->started[slot].counts.comm, comm->number, memory_order_release);
	atomic_store_explicit(
		&page->completed[slot].counts.comm, comm->number, memory_order_release
	);
	if (atomic_load_explicit(&page->head.slots_used, memory_order_relaxed) <= slot)
		atomic_store_explicit(&page->head.slots_used, slot + 1, memory_order_release);
	return slot;
}

void page_note_registration(struct tocsin_job *job, const struct tocsin_comm *comm) {
	atomic_store_explicit(
		&job->page->launched[comm->first_slot].marks.registered_s,
		(uint32_t)((job_now_ns() + NS_PER_S - 1) / NS_PER_S), memory_order_release
	);
}

void page_note_departure(struct tocsin_job *job, struct tocsin_comm *comm) {
	struct job_departure *departure =
		&job->page->head.departures[comm->number % JOB_DEPARTURES];
	const struct job_marks *marks = &job->page->launched[comm->first_slot].marks;
	struct tocsin_counts counts = TOCSIN_INIT(struct tocsin_counts);

	(void)tocsin_comm_counts(comm, &counts);
	atomic_store_explicit(&departure->comm, 0, memory_order_release);
	atomic_store_explicit(&departure->launched, counts.launched, memory_order_release);
	atomic_store_explicit(&departure->started, counts.started, memory_order_release);
	atomic_store_explicit(&departure->completed, counts.completed, memory_order_release);
	atomic_store_explicit(
		&departure->flags, atomic_load_explicit(&marks->flags, memory_order_relaxed),
		memory_order_release
	);
	atomic_store_explicit(&departure->comm, comm->number, memory_order_release);
}

static void clear_words(_Atomic uint64_t *words, size_t bytes) {
	for (size_t n = 0; n < bytes / sizeof(*words); n++)
		atomic_store_explicit(&words[n], 0, memory_order_release);
}

static void clear_counts(struct job_counts *counts) {
	atomic_store_explicit(&counts->total, 0, memory_order_release);
	clear_words(counts->kinds, sizeof(counts->kinds));
}

// All stores are releases: a reader that sees a cleared count also sees the cleared number.
void page_release_slots(struct tocsin_job *job, uint64_t number) {
	for (uint32_t slot = 0; slot < JOB_SLOTS; slot++) {
		struct job_launched *launched = &job->page->launched[slot];
		struct job_row *started = &job->page->started[slot];
		struct job_row *completed = &job->page->completed[slot];
		struct job_marks *marks = &launched->marks;

		if (job->owners[slot] == OWNER_NONE ||
		    atomic_load_explicit(&launched->counts.comm, memory_order_relaxed) != number)
			continue;
		atomic_store_explicit(&launched->counts.comm, 0, memory_order_release);
		atomic_store_explicit(&started->counts.comm, 0, memory_order_release);
		atomic_store_explicit(&completed->counts.comm, 0, memory_order_release);
		clear_counts(&completed->counts);
		clear_words(completed->times_ns, sizeof(completed->times_ns));
		clear_counts(&started->counts);
		clear_words(started->times_ns, sizeof(started->times_ns));
		clear_counts(&launched->counts);
		for (uint32_t n = 0; n < JOB_SIGNATURES; n++)
			atomic_store_explicit(
				&launched->signatures[n].sequence, 0, memory_order_release
			);
		atomic_store_explicit(&marks->init_state, 0, memory_order_release);
		atomic_store_explicit(&marks->async_error, 0, memory_order_release);
		atomic_store_explicit(&marks->flags, 0, memory_order_release);
		atomic_store_explicit(&marks->registered_s, 0, memory_order_release);
		atomic_store_explicit(&marks->signatures_lost, 0, memory_order_release);
		atomic_store_explicit(&marks->started_from, 0, memory_order_release);
		atomic_store_explicit(&marks->completed_from, 0, memory_order_release);
		atomic_store_explicit(&marks->abort_value, 0, memory_order_release);
		atomic_store_explicit(&marks->call, 0, memory_order_release);
		atomic_store_explicit(&marks->posted, 0, memory_order_release);
		job->owners[slot] = OWNER_NONE;
	}
}
