// SPDX-License-Identifier: BSD-3-Clause
// Measures the memory use of the process.
#include <control/counters.h>
#include <control/health.h>
#include <control/memory_use.h>
#include <control/state.h>
#include <control/transport.h>
#include <ras/ras.h>

#include <malloc.h>

void memory_use_read(const struct counter_sources *sources, struct memory_use *ret_use) {
	const struct mallinfo2 heap = mallinfo2();
	const struct state_event *earlier;

	*ret_use = (struct memory_use){
		.heap_used_bytes = heap.uordblks + heap.hblkhd,
		.heap_free_bytes = heap.fordblks,
		.core_bytes = ras_memory_used(sources->ras),
		.history_bytes = ras_history_bytes(sources->ras),
	};
	if (sources->transport != NULL)
		ret_use->buffer_bytes = sources->transport->buffer_bytes;
	if (sources->health != NULL)
		ret_use->verdict_bytes = health_memory_used(sources->health);
	if (sources->state != NULL)
		ret_use->earlier_bytes = state_earlier(sources->state, &earlier) * sizeof(*earlier);
}
