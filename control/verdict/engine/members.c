// SPDX-License-Identifier: BSD-3-Clause
// The engine's table of members, indexed by id, with shared names of hosts and leaves.
#include "members.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define INDEX_FIRST 16

int array_grow(
	const struct ras_memory *memory,
	void **array,
	uint32_t *capacity,
	uint32_t needed,
	size_t element_bytes
) {
	uint32_t room = *capacity > 0 ? *capacity : 1;
	void *grown;

	if (needed <= *capacity)
		return 0;
	while (room < needed)
		room *= 2;
	grown = memory->allocate(memory->ctx, room * element_bytes);
	if (grown == NULL)
		return -ENOMEM;
	if (*capacity > 0) {
		memcpy(grown, *array, *capacity * element_bytes);
		memory->release(memory->ctx, *array, *capacity * element_bytes);
	}
	*array = grown;
	*capacity = room;
	return 0;
}

static uint32_t hash_id(uint64_t id) {
	return (uint32_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t hash_text(const char *text) {
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash_id(hash);
}

// Indexes use open addressing over rows + 1, are at most half full, and close holes on removal.
// `hash_of` returns the hash of a row.

static void index_insert(uint32_t *index, uint32_t mask, uint32_t hash, uint32_t row) {
	uint32_t at = hash & mask;

	while (index[at] != 0)
		at = (at + 1) & mask;
	index[at] = row + 1;
}

static void index_release(const struct ras_memory *memory, uint32_t *index, uint32_t mask) {
	if (index != NULL)
		memory->release(memory->ctx, index, (mask + 1) * sizeof(*index));
}

// Make room for one entry more than `used`. Returns 0, or -ENOMEM with the index unchanged.
static int index_reserve(
	const struct ras_memory *memory,
	uint32_t used,
	uint32_t **index,
	uint32_t *mask,
	uint32_t (*hash_of)(const void *, uint32_t),
	const void *of
) {
	uint32_t size = *mask > 0 ? *mask + 1 : 0;
	uint32_t grown = size > 0 ? 2 * size : INDEX_FIRST;
	uint32_t *made;

	if (2 * (used + 1) <= size)
		return 0;
	made = memory->allocate(memory->ctx, grown * sizeof(*made));
	if (made == NULL)
		return -ENOMEM;
	for (uint32_t at = 0; at < size; at++) {
		uint32_t row = (*index)[at] - 1;

		if ((*index)[at] != 0)
			index_insert(made, grown - 1, hash_of(of, row), row);
	}
	index_release(memory, *index, *mask);
	*index = made;
	*mask = grown - 1;
	return 0;
}

// Close the hole at `at`.
static void index_remove_at(
	uint32_t *index,
	uint32_t mask,
	uint32_t at,
	uint32_t (*hash_of)(const void *, uint32_t),
	const void *of
) {
	uint32_t next = at;

	for (;;) {
		uint32_t home;

		next = (next + 1) & mask;
		if (index[next] == 0)
			break;
		home = hash_of(of, index[next] - 1) & mask;
		// An entry stays if its home slot lies cyclically after the hole.
		if (((next - home) & mask) < ((next - at) & mask))
			continue;
		index[at] = index[next];
		at = next;
	}
	index[at] = 0;
}

static uint32_t name_hash(const void *of, uint32_t row) {
	return hash_text(((const struct names *)of)->rows[row].text);
}

static uint32_t names_find(const struct names *names, const char *text) {
	uint32_t at;

	if (names->index == NULL)
		return NAMES_NONE;
	at = hash_text(text) & names->index_mask;
	for (; names->index[at] != 0; at = (at + 1) & names->index_mask) {
		if (strcmp(names->rows[names->index[at] - 1].text, text) == 0)
			return names->index[at] - 1;
	}
	return NAMES_NONE;
}

// Add a user to a name, creating the name if needed; NAMES_NONE for "". Returns 0 or -ENOMEM.
static int names_add_user(
	struct names *names, const struct ras_memory *memory, const char *text, uint32_t *ret_name
) {
	uint32_t size = (uint32_t)strlen(text) + 1;
	uint32_t name = size > 1 ? names_find(names, text) : NAMES_NONE;
	char *copy;
	int err;

	if (name != NAMES_NONE)
		names->rows[name].users++;
	if (name != NAMES_NONE || size == 1) {
		*ret_name = name;
		return 0;
	}
	for (name = 0; name < names->count && names->rows[name].text != NULL; name++)
		;
	err = array_grow(
		memory, (void **)&names->rows, &names->capacity, name + 1, sizeof(*names->rows)
	);
	if (err == 0)
		err = index_reserve(
			memory, names->used, &names->index, &names->index_mask, name_hash, names
		);
	if (err != 0)
		return err;
	copy = memory->allocate(memory->ctx, size);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, text, size);
	names->rows[name] = (struct name_row){.text = copy, .size = size, .users = 1};
	names->count = name == names->count ? name + 1 : names->count;
	names->used++;
	index_insert(names->index, names->index_mask, hash_text(text), name);
	*ret_name = name;
	return 0;
}

static void names_remove_user(struct names *names, const struct ras_memory *memory, uint32_t name) {
	struct name_row *row;
	uint32_t at;

	if (name == NAMES_NONE)
		return;
	row = &names->rows[name];
	if (--row->users > 0)
		return;
	at = hash_text(row->text) & names->index_mask;
	while (names->index[at] != name + 1)
		at = (at + 1) & names->index_mask;
	index_remove_at(names->index, names->index_mask, at, name_hash, names);
	memory->release(memory->ctx, row->text, row->size);
	memset(row, 0, sizeof(*row));
	names->used--;
}

static void names_fini(struct names *names, const struct ras_memory *memory) {
	for (uint32_t n = 0; n < names->count; n++) {
		if (names->rows[n].text != NULL)
			memory->release(memory->ctx, names->rows[n].text, names->rows[n].size);
	}
	array_release(memory, names->rows, names->capacity, sizeof(*names->rows));
	index_release(memory, names->index, names->index_mask);
}

const char *member_name(const struct names *names, uint32_t name) {
	return name != NAMES_NONE ? names->rows[name].text : "";
}

void members_init(struct members *members, const struct ras_memory *memory) {
	memset(members, 0, sizeof(*members));
	members->memory = memory;
	members->free = MEMBERS_NONE;
}

void members_fini(struct members *members) {
	names_fini(&members->hosts, members->memory);
	names_fini(&members->leaves, members->memory);
	for (uint32_t n = 0; n < members->count; n++)
		observer_index_destroy(members->memory, members->rows[n].told);
	array_release(members->memory, members->rows, members->capacity, sizeof(*members->rows));
	index_release(members->memory, members->index, members->index_mask);
}

static uint32_t peer_hash(const void *of, uint32_t row) {
	return hash_id(((const struct members *)of)->rows[row].id);
}

// Return the slot of an id in the index, or the free slot where it belongs.
static uint32_t members_index_slot(const struct members *members, uint64_t id) {
	uint32_t at = hash_id(id) & members->index_mask;

	while (members->index[at] != 0 && members->rows[members->index[at] - 1].id != id)
		at = (at + 1) & members->index_mask;
	return at;
}

uint32_t members_find(const struct members *members, uint64_t id) {
	if (members->index == NULL || id == 0)
		return MEMBERS_NONE;
	return members->index[members_index_slot(members, id)] - 1;
}

int members_add(struct members *members, uint64_t id, uint32_t *ret_row) {
	uint32_t row = members_find(members, id);
	int err;

	if (row != MEMBERS_NONE) {
		*ret_row = row;
		return 0;
	}
	row = members->free != MEMBERS_NONE ? members->free : members->count;
	err = index_reserve(
		members->memory, members->used, &members->index, &members->index_mask, peer_hash,
		members
	);
	if (err == 0)
		err = array_grow(
			members->memory, (void **)&members->rows, &members->capacity, row + 1,
			sizeof(*members->rows)
		);
	if (err != 0)
		return err;
	if (row == members->count)
		members->count++;
	else
		members->free = members->rows[row].host;
	members->rows[row] = (struct member_row
	){.id = id, .host = NAMES_NONE, .leaf = NAMES_NONE, .state = RAS_UNKNOWN};
	index_insert(members->index, members->index_mask, hash_id(id), row);
	members->used++;
	members->of_state[RAS_UNKNOWN]++;
	*ret_row = row;
	return 0;
}

// Return whether a member in this state may be able to observe. A suspect member is not dead yet.
static bool state_can_observe(uint8_t state) {
	return state == RAS_ALIVE || state == RAS_SUSPECT;
}

static void members_count_host(struct members *members, uint32_t host, bool more) {
	struct name_row *row;

	if (host == NAMES_NONE)
		return;
	row = &members->hosts.rows[host];
	if (more)
		members->hosts_alive += row->alive++ == 0;
	else
		members->hosts_alive -= --row->alive == 0;
}

int members_set_location(struct members *members, uint32_t at, const char *host, const char *leaf) {
	struct member_row *row = &members->rows[at];
	uint32_t new_host = NAMES_NONE;
	uint32_t new_leaf = NAMES_NONE;
	int err;

	if (strcmp(member_name(&members->hosts, row->host), host) == 0 &&
	    strcmp(member_name(&members->leaves, row->leaf), leaf) == 0)
		return 0;
	err = names_add_user(&members->hosts, members->memory, host, &new_host);
	if (err != 0)
		return err;
	err = names_add_user(&members->leaves, members->memory, leaf, &new_leaf);
	if (err != 0) {
		names_remove_user(&members->hosts, members->memory, new_host);
		return err;
	}
	if (state_can_observe(row->state)) {
		members_count_host(members, new_host, true);
		members_count_host(members, row->host, false);
	}
	names_remove_user(&members->hosts, members->memory, row->host);
	names_remove_user(&members->leaves, members->memory, row->leaf);
	row->host = new_host;
	row->leaf = new_leaf;
	return 0;
}

void members_set_state(struct members *members, uint32_t at, enum ras_state state) {
	struct member_row *row = &members->rows[at];

	if (state_can_observe(row->state) != state_can_observe((uint8_t)state))
		members_count_host(members, row->host, state_can_observe((uint8_t)state));
	members->of_state[row->state]--;
	members->of_state[state]++;
	row->state = (uint8_t)state;
}

void members_remove(struct members *members, uint32_t at) {
	struct member_row *row = &members->rows[at];

	must(row->subject == NULL && row->told == NULL);
	members_set_state(members, at, RAS_UNKNOWN);
	members->of_state[RAS_UNKNOWN]--;
	names_remove_user(&members->hosts, members->memory, row->host);
	names_remove_user(&members->leaves, members->memory, row->leaf);
	index_remove_at(
		members->index, members->index_mask, members_index_slot(members, row->id),
		peer_hash, members
	);
	row->id = 0;
	row->host = members->free;
	members->free = at;
	members->used--;
}
