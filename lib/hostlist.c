// SPDX-License-Identifier: BSD-3-Clause
// All names lie in one arena, one after the other. A hash table of their indices finds repeated
// names during creation, and names afterwards. Three allocations, whatever the count.
#include "hostlist_item.h"

#include <lib/must.h>

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hostlist {
	uint32_t count;
	const char **names; // pointers into the arena
	char *arena;
	uint32_t *slots;  // open addressing: index + 1, or 0 if empty
	size_t slot_mask; // number of slots, a power of two, minus one
};

// Names and bytes that a text needs, computed before anything is allocated.
struct demand {
	uint64_t count;
	uint64_t arena_bytes;
};

static bool is_blank(char byte) {
	return byte == ' ' || byte == '\t';
}

// Return the next item of the text at *at, without the blanks around it; *at becomes NULL after the
// last. A text has one item more than it has commas outside of brackets.
static bool
item_next(const char **at, const char *end, const char **ret_item, size_t *ret_item_length) {
	const char *start = *at;
	const char *stop = start;
	bool inside = false;

	if (start == NULL)
		return false;
	for (; stop < end && (inside || *stop != ','); stop++) {
		if (*stop == '[')
			inside = true;
		else if (*stop == ']')
			inside = false;
	}
	*at = stop < end ? stop + 1 : NULL;
	while (start < stop && is_blank(*start))
		start++;
	while (stop > start && is_blank(stop[-1]))
		stop--;
	*ret_item = start;
	*ret_item_length = (size_t)(stop - start);
	return true;
}

static int check_and_count_names(
	const char *text,
	size_t length,
	uint32_t count_max,
	struct parse_error *error,
	struct demand *ret_demand
) {
	struct demand demand = {0};
	const char *end = text + length;
	const char *at = text;
	struct hostlist_item item;
	const char *item_text;
	size_t item_length;
	int err;

	while (item_next(&at, end, &item_text, &item_length)) {
		err = hostlist_item_read(item_text, item_length, error, &item);
		if (err != 0)
			return err;
		// Neither side overflows: the sum so far is at most count_max.
		if (item.count > count_max - demand.count)
			return parse_fail(
				error, -E2BIG, item_text, item_length,
				"makes the list too long: %u names are allowed", count_max
			);
		demand.count += item.count;
		demand.arena_bytes += item.count * (item.name_length_max + 1);
	}
	*ret_demand = demand;
	return 0;
}

static struct hostlist *list_create(const struct demand *demand) {
	struct hostlist *list = calloc(1, sizeof(*list));
	size_t slot_count = 4;

	if (list == NULL)
		return NULL;
	while (slot_count < 2 * demand->count)
		slot_count *= 2;
	list->slot_mask = slot_count - 1;
	list->slots = calloc(slot_count, sizeof(*list->slots));
	list->names = calloc(demand->count, sizeof(*list->names));
	list->arena = malloc(demand->arena_bytes);
	if (list->slots == NULL || list->names == NULL || list->arena == NULL)
		return hostlist_destroy(list);
	return list;
}

// Return the slot of the name, or the empty slot where it belongs. The table is at most half full.
static uint32_t *slot_find(const struct hostlist *list, const char *name, size_t length) {
	size_t at = XXH3_64bits(name, length) & list->slot_mask;

	while (list->slots[at] != 0) {
		const char *other = list->names[list->slots[at] - 1];

		if (strncmp(other, name, length) == 0 && other[length] == '\0')
			break;
		at = (at + 1) & list->slot_mask;
	}
	return &list->slots[at];
}

int hostlist_expand(
	const char *text,
	size_t length,
	uint32_t count_max,
	struct parse_error *error,
	struct hostlist **ret_list
) {
	const char *at = text, *item_text;
	size_t item_length, name_length;
	struct hostlist_item item;
	struct hostlist *list;
	struct demand demand = {0};
	uint32_t *slot;
	char *name;
	int err;

	err = check_and_count_names(text, length, count_max, error, &demand);
	if (err != 0)
		return err;
	list = list_create(&demand);
	if (list == NULL)
		return parse_fail(error, -ENOMEM, text, length, "needs more memory than there is");
	name = list->arena;
	while (item_next(&at, text + length, &item_text, &item_length)) {
		must(hostlist_item_read(item_text, item_length, NULL, &item) == 0);
		do {
			name_length = hostlist_item_write(&item, name);
			slot = slot_find(list, name, name_length);
			if (*slot != 0)
				continue; // the list has this name, so the next one replaces it
			name[name_length] = '\0';
			list->names[list->count++] = name;
			*slot = list->count;
			name += name_length + 1;
		} while (hostlist_item_step(&item));
	}
	*ret_list = list;
	return 0;
}

struct hostlist *hostlist_destroy(struct hostlist *list) {
	if (list == NULL)
		return NULL;
	free(list->slots);
	free(list->names);
	free(list->arena);
	free(list);
	return NULL;
}

uint32_t hostlist_count(const struct hostlist *list) {
	return list->count;
}

const char *hostlist_name(const struct hostlist *list, uint32_t index) {
	must(index < list->count);
	return list->names[index];
}

bool hostlist_contains(const struct hostlist *list, const char *name, size_t length) {
	return memchr(name, '\0', length) == NULL && *slot_find(list, name, length) != 0;
}
