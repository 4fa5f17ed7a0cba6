// SPDX-License-Identifier: BSD-3-Clause
// The latest events, numbered. Callers read them from a sequence number on.
#pragma once

#include <ras/event.h>

struct memory;

struct history {
	struct ras_event *events; // ring buffer, owned
	uint32_t capacity;
	uint64_t next; // sequence number of the next event, from 1
};

int history_init(struct history *history, struct memory *memory, uint32_t capacity);
void history_fini(struct history *history, struct memory *memory);
// Number the event and keep a copy.
void history_add(struct history *history, struct ras_event *event);
// Return the bytes of the kept events, the part of the ring that was ever written.
size_t history_bytes(const struct history *history);
uint32_t history_read(
	const struct history *history,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
);
