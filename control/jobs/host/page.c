// SPDX-License-Identifier: BSD-3-Clause
// Copies a page in the read order that makes its counts consistent (<tocsin/job_page.h>).
#include "jobs/host/inside.h"

#include <lib/error.h>

#include <stdatomic.h>
#include <unistd.h>

// Sealed memory has the size that was checked, so a short read is an error.
static int read_page_part(int fd, void *to, size_t size, size_t offset) {
	ssize_t got = pread(fd, to, size, (off_t)offset);

	if (got < 0)
		return neg_errno();
	return (size_t)got == size ? 0 : -EIO;
}

static int read_slots_used(int fd, struct job_page *page, uint32_t *ret_slots) {
	int err = read_page_part(fd, &page->head, offsetof(struct job_head, departures), 0);
	uint32_t slots;

	if (err != 0)
		return err;
	slots = atomic_load_explicit(&page->head.slots_used, memory_order_relaxed);
	*ret_slots = slots < JOB_SLOTS ? slots : JOB_SLOTS;
	return 0;
}

int page_copy(struct jobhost *host, int fd, uint32_t *ret_slots) {
	struct job_page *page = host->page;
	uint32_t slots, slots_now;
	int err = read_slots_used(fd, page, &slots);

	if (err == 0)
		err = read_page_part(
			fd, page->completed, slots * sizeof(page->completed[0]),
			offsetof(struct job_page, completed)
		);
	// Acquire pairs with the writer's releases: later reads are newer than earlier ones.
	atomic_thread_fence(memory_order_acquire);
	if (err == 0)
		err = read_page_part(
			fd, page->started, slots * sizeof(page->started[0]),
			offsetof(struct job_page, started)
		);
	atomic_thread_fence(memory_order_acquire);
	if (err == 0)
		err = read_slots_used(fd, page, &slots_now);
	if (err != 0)
		return err;
	err = read_page_part(
		fd, page->launched, slots_now * sizeof(page->launched[0]),
		offsetof(struct job_page, launched)
	);
	atomic_thread_fence(memory_order_acquire);
	if (err == 0)
		err = read_page_part(
			fd, host->signatures, slots_now * sizeof(page->launched[0]),
			offsetof(struct job_page, launched)
		);
	if (err == 0)
		err = read_page_part(
			fd, (uint8_t *)page + offsetof(struct job_page, head.busy_until_ns),
			sizeof(page->head) - offsetof(struct job_head, busy_until_ns),
			offsetof(struct job_page, head.busy_until_ns)
		);
	if (err != 0)
		return err;
	// Rows taken into use after the first two reads have no started and completed counts yet.
	for (uint32_t n = slots; n < slots_now; n++) {
		page->completed[n] = (struct job_row){0};
		page->started[n] = (struct job_row){0};
	}
	*ret_slots = slots_now;
	return 0;
}
