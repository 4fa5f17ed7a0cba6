// SPDX-License-Identifier: BSD-3-Clause
// The overlay's members as the engine needs them: 48 bytes each, and what there is to say of one
// only where there is something (struct subject).
#pragma once

#include <ras/memory.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

#define MEMBERS_NONE UINT32_MAX
#define NAMES_NONE UINT32_MAX

struct subject;

// Of whom one told something: rows, each once.
struct observer_index {
	uint32_t count, capacity;
	uint32_t rows[];
};

static inline size_t told_bytes(uint32_t capacity) {
	return sizeof(struct observer_index) + capacity * sizeof(uint32_t);
}

struct observer_index *
observer_index_destroy(const struct ras_memory *memory, struct observer_index *list);

struct member_row {
	uint64_t id; // 0: free
	uint64_t incarnation;
	struct subject *subject;     // NULL: alive or left, and nothing was said against it
	struct observer_index *told; // NULL: of nobody
	uint32_t host, leaf;	     // of the names
	uint8_t state;		     // enum ras_state
	uint8_t cause;		     // enum ras_cause
	bool sole;
	bool maint;
};

// Names that several peers share, each once.
struct name_row {
	char *text; // NULL: free
	uint32_t size;
	uint32_t users;
	uint32_t alive; // of these, for hosts
};

struct names {
	struct name_row *rows;
	uint32_t count, capacity;
	uint32_t *index; // by hash: row + 1
	uint32_t index_mask;
	uint32_t used;
};

struct members {
	const struct ras_memory *memory;
	struct member_row *rows;
	uint32_t count, capacity; // rows in use or free below `count`
	uint32_t free;		  // first free row, chained by `host`
	uint32_t used;
	uint32_t *index; // by id: row + 1
	uint32_t index_mask;
	uint32_t of_state[RAS_LEFT + 1];
	struct names hosts, leaves;
	uint32_t hosts_alive; // with an alive peer on them
};

void members_init(struct members *members, const struct ras_memory *memory);
void members_fini(struct members *members);

// MEMBERS_NONE if there is none.
uint32_t members_find(const struct members *members, uint64_t id);
// A row of that id in state RAS_UNKNOWN, new or not. -ENOMEM.
int members_add(struct members *members, uint64_t id, uint32_t *ret_row);
// -ENOMEM, and the row is as it was.
int members_place(struct members *members, uint32_t row, const char *host, const char *leaf);
void members_set_state(struct members *members, uint32_t row, enum ras_state state);
// Its subject is gone already, and all that it told.
void members_remove(struct members *members, uint32_t row);

// "" if it is none.
const char *member_name(const struct names *names, uint32_t name);

// Grows an array to hold `needed` elements, by doubling. -ENOMEM leaves it as it was.
int array_grow(
	const struct ras_memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	size_t element_bytes
);
static inline void
array_release(const struct ras_memory *memory, void *array, uint32_t capacity, size_t bytes) {
	if (array != NULL)
		memory->release(memory->ctx, array, capacity * bytes);
}
