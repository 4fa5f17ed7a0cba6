// SPDX-License-Identifier: BSD-3-Clause
// Compression of many names into a hostlist.
#include "hostlist_item.h"

#include <lib/scoped.h>

#include <errno.h>
#include <string.h>

// A name, split before the number at its end. A number longer than HOSTLIST_DIGITS_MAX leaves its
// first digits to the prefix.
struct entry {
	const char *name;
	size_t prefix_length;
	uint32_t width; // digits of the number; 0: no number
	uint64_t number;
};

static int entry_read(const char *name, struct entry *ret_entry) {
	size_t length = strnlen(name, HOSTLIST_NAME_LENGTH_MAX + 1);
	struct entry entry = {.name = name, .prefix_length = length};

	if (length > HOSTLIST_NAME_LENGTH_MAX)
		return -ENAMETOOLONG;
	if (length == 0)
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		if (!hostlist_is_name_byte(name[i]))
			return -EINVAL;
	}
	while (entry.prefix_length > 0 && entry.width < HOSTLIST_DIGITS_MAX &&
	       name[entry.prefix_length - 1] >= '0' && name[entry.prefix_length - 1] <= '9') {
		entry.prefix_length--;
		entry.width++;
	}
	for (size_t i = entry.prefix_length; i < length; i++)
		entry.number = 10 * entry.number + (uint64_t)(name[i] - '0');
	*ret_entry = entry;
	return 0;
}

static int compare_u64(uint64_t a, uint64_t b) {
	return (a > b) - (a < b);
}

static int prefix_compare(const struct entry *a, const struct entry *b) {
	size_t common = a->prefix_length < b->prefix_length ? a->prefix_length : b->prefix_length;
	int order = memcmp(a->name, b->name, common);

	return order != 0 ? order : compare_u64(a->prefix_length, b->prefix_length);
}

static int entry_compare(const void *left, const void *right) {
	const struct entry *a = left;
	const struct entry *b = right;
	int order = prefix_compare(a, b);

	if (order == 0)
		order = compare_u64(a->width, b->width);
	return order != 0 ? order : compare_u64(a->number, b->number);
}

// Return true if b directly follows a in a range whose first number has `width` digits. 09-10 and
// 9-10 are ranges, 9-010 is not.
static bool entry_continues(const struct entry *a, const struct entry *b, uint32_t width) {
	uint32_t digits = hostlist_digit_count(b->number);

	return b->number == a->number + 1 && b->width == (digits > width ? digits : width);
}

static char *text_append(char *at, const char *text, size_t length) {
	memcpy(at, text, length);
	return at + length;
}

static char *append_number(char *at, const struct entry *entry) {
	return text_append(at, entry->name + entry->prefix_length, entry->width);
}

// Append names with a common prefix: entries[0] to entries[count - 1].
static char *append_group(char *at, const struct entry *entries, uint32_t count) {
	uint32_t last;

	at = text_append(at, entries[0].name, entries[0].prefix_length);
	if (count == 1)
		return append_number(at, &entries[0]);
	*at++ = '[';
	for (uint32_t first = 0; first < count; first = last + 1) {
		last = first;
		while (last + 1 < count &&
		       entry_continues(&entries[last], &entries[last + 1], entries[first].width))
			last++;
		if (first > 0)
			*at++ = ',';
		at = append_number(at, &entries[first]);
		if (last > first) {
			*at++ = '-';
			at = append_number(at, &entries[last]);
		}
	}
	*at++ = ']';
	return at;
}

int hostlist_compress(const char *const *names, uint32_t count, char **ret_text) {
	scoped_mem struct entry *entries = NULL;
	uint32_t kept = 0, next;
	size_t text_size = 1;
	char *shrunk;
	char *text;
	char *end;
	int err;

	entries = calloc(count > 0 ? count : 1, sizeof(*entries));
	if (entries == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		err = entry_read(names[i], &entries[i]);
		if (err != 0)
			return err;
		// Each name needs at most its length, a comma and two brackets.
		text_size += entries[i].prefix_length + entries[i].width + 3;
	}
	text = malloc(text_size);
	if (text == NULL)
		return -ENOMEM;
	qsort(entries, count, sizeof(*entries), entry_compare);
	for (uint32_t i = 0; i < count; i++) {
		if (kept == 0 || entry_compare(&entries[kept - 1], &entries[i]) != 0)
			entries[kept++] = entries[i];
	}
	end = text;
	for (uint32_t first = 0; first < kept; first = next) {
		next = first + 1;
		// A name without a number is its own group, even if its prefix equals that of its
		// neighbours.
		while (entries[first].width > 0 && next < kept &&
		       prefix_compare(&entries[first], &entries[next]) == 0)
			next++;
		if (first > 0)
			*end++ = ',';
		end = append_group(end, entries + first, next - first);
	}
	*end = '\0';
	shrunk = realloc(text, (size_t)(end - text) + 1);
	*ret_text = shrunk != NULL ? shrunk : text;
	return 0;
}
