// SPDX-License-Identifier: BSD-3-Clause
// Reads the process's own counts, in the same order as the agent.
#include "inside.h"

#include <errno.h>
#include <string.h>

static void
add_row(const struct job_counts *row, uint64_t number, uint64_t *total, uint64_t *kinds) {
	if (atomic_load_explicit(&row->comm, memory_order_acquire) != number)
		return;
	*total += atomic_load_explicit(&row->total, memory_order_acquire);
	for (uint32_t n = 0; n < JOB_KINDS; n++)
		kinds[n] += atomic_load_explicit(&row->kinds[n], memory_order_acquire);
}

int tocsin_comm_counts(struct tocsin_comm *comm, struct tocsin_counts *ret_counts) {
	const struct job_page *page = comm->job->page;
	size_t size = ret_counts->struct_size;
	struct tocsin_counts counts = {.struct_size = size};
	// Slots are taken under the mutex, and released only when the communicator ends.
	uint32_t used = atomic_load_explicit(&page->head.slots_used, memory_order_acquire);

	if (size < sizeof(counts.struct_size) || used > JOB_SLOTS)
		return -EINVAL;
	for (uint32_t n = 0; n < used; n++)
		add_row(&page->completed[n].counts, comm->number, &counts.completed,
			counts.completed_of);
	for (uint32_t n = 0; n < used; n++)
		add_row(&page->started[n].counts, comm->number, &counts.started, counts.started_of);
	// A slot taken since then has no counts in the rows read above. Re-read slots_used so that
	// its launches are included.
	used = atomic_load_explicit(&page->head.slots_used, memory_order_acquire);
	for (uint32_t n = 0; n < used && n < JOB_SLOTS; n++) {
		const struct job_launched *row = &page->launched[n];

		add_row(&row->counts, comm->number, &counts.launched, counts.launched_of);
		if (atomic_load_explicit(&row->counts.comm, memory_order_relaxed) == comm->number)
			counts.signatures_lost += atomic_load_explicit(
				&row->marks.signatures_lost, memory_order_relaxed
			);
	}
	memcpy(ret_counts, &counts, size < sizeof(counts) ? size : sizeof(counts));
	return 0;
}
