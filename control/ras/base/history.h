// SPDX-License-Identifier: BSD-3-Clause
// The last events, numbered, to be asked for from a sequence number on.
#pragma once

#include <ras/event.h>

struct memory;

struct history {
	struct ras_event *events; // a ring
	uint32_t capacity;
	uint64_t next; // sequence of the next event, from 1
};

int history_init(struct history *history, struct memory *memory, uint32_t capacity);
void history_fini(struct history *history, struct memory *memory);
// Numbers the event and keeps a copy.
void history_add(struct history *history, struct ras_event *event);
// What the events that are kept take, which is what was ever touched of the ring.
size_t history_bytes(const struct history *history);
uint32_t history_read(
	const struct history *history,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
);
