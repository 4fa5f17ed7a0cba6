// SPDX-License-Identifier: BSD-3-Clause
// Ring buffer of the latest events.
#include "base/history.h"

#include "base/memory.h"

#include <errno.h>

int history_init(struct history *history, struct memory *memory, uint32_t capacity) {
	*history = (struct history){.next = 1, .capacity = capacity};
	if (capacity == 0)
		return 0;
	history->events = memory_allocate(memory, capacity * sizeof(*history->events));
	return history->events != NULL ? 0 : -ENOMEM;
}

void history_fini(struct history *history, struct memory *memory) {
	memory_release(memory, history->events, history->capacity * sizeof(*history->events));
	*history = (struct history){0};
}

void history_add(struct history *history, struct ras_event *event) {
	event->sequence = history->next++;
	if (history->events != NULL)
		history->events[event->sequence % history->capacity] = *event;
}

size_t history_bytes(const struct history *history) {
	uint64_t kept = history->next - 1;

	if (history->events == NULL)
		return 0;
	return (kept < history->capacity ? kept : history->capacity) * sizeof(*history->events);
}

uint32_t history_read(
	const struct history *history,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
) {
	uint64_t oldest = history->next > history->capacity ? history->next - history->capacity : 1;
	uint32_t copied = 0;

	if (history->events == NULL)
		oldest = history->next;
	*ret_oldest = oldest;
	if (from < oldest)
		from = oldest;
	while (copied < count && from < history->next)
		events[copied++] = history->events[from++ % history->capacity];
	return copied;
}
