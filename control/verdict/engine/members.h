// SPDX-License-Identifier: BSD-3-Clause
// The engine's table of overlay members: 48 bytes each. Evidence lives in struct subject, which
// exists only where needed.
#pragma once

#include <ras/memory.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

#define MEMBERS_NONE UINT32_MAX
#define NAMES_NONE UINT32_MAX

struct subject;

// Subjects of one observer: rows, each once.
struct observer_index {
	uint32_t count, capacity;
	uint32_t rows[];
};

static inline size_t observer_index_bytes(uint32_t capacity) {
	return sizeof(struct observer_index) + capacity * sizeof(uint32_t);
}

struct observer_index *
observer_index_destroy(const struct ras_memory *memory, struct observer_index *list);

struct member_row {
	uint64_t id; // 0: free row
	uint64_t incarnation;
	struct subject *subject;     // NULL: alive or left, without evidence
	struct observer_index *told; // subjects of its observations; NULL: none
	uint32_t host, leaf;	     // indexes into the names
	uint32_t key_changed_s;	     // when the node came with another key; 0: never
	uint8_t state;		     // enum ras_state
	uint8_t cause;		     // enum ras_cause
	bool sole;
	bool maint;
};

// Name shared by several members.
struct name_row {
	char *text; // NULL: free row
	uint32_t size;
	uint32_t users;
	uint32_t alive; // users that can observe, for hosts
};

struct names {
	struct name_row *rows;
	uint32_t count, capacity;
	uint32_t *index; // hash table of row + 1
	uint32_t index_mask;
	uint32_t used;
};

struct members {
	const struct ras_memory *memory;
	struct member_row *rows;
	uint32_t count, capacity; // number of rows, free ones included
	uint32_t free;		  // first free row, chained by `host`
	uint32_t used;
	uint32_t *index; // hash table of row + 1, by id
	uint32_t index_mask;
	uint32_t of_state[RAS_LEFT + 1];
	struct names hosts, leaves;
	uint32_t hosts_alive; // hosts with at least one member that can observe
};

void members_init(struct members *members, const struct ras_memory *memory);
void members_fini(struct members *members);

// Return the row of a member, or MEMBERS_NONE.
uint32_t members_find(const struct members *members, uint64_t id);
// Return the row of this id, created in state RAS_UNKNOWN if needed. Returns 0 or -ENOMEM.
int members_add(struct members *members, uint64_t id, uint32_t *ret_row);
// Set host and leaf of a member. Returns 0, or -ENOMEM with the row unchanged.
int members_set_location(struct members *members, uint32_t row, const char *host, const char *leaf);
void members_set_state(struct members *members, uint32_t row, enum ras_state state);
// Remove a member. Its subject and its observations must be gone.
void members_remove(struct members *members, uint32_t row);

// Return the name, "" for NAMES_NONE.
const char *member_name(const struct names *names, uint32_t name);

// Grow an array to at least `needed` elements, by doubling. Returns 0, or -ENOMEM with the array
// unchanged.
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
