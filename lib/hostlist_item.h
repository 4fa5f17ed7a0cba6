// SPDX-License-Identifier: BSD-3-Clause
// One item of a hostlist: the text between two commas, as an odometer of its names.
// Private to lib/hostlist*.c.
#pragma once

#include <lib/hostlist.h>

struct hostlist_range {
	uint64_t low;
	uint64_t high;
	uint32_t width; // digits to write at least
};

// A literal part and the bracket behind it.
struct hostlist_field {
	const char *literal;
	size_t literal_length;
	const char *ranges; // NULL: no bracket, the item ends here
	const char *ranges_end;
	// Where the odometer stands: value in range, and the text of the ranges after that.
	struct hostlist_range range;
	uint64_t value;
	const char *next;
};

struct hostlist_item {
	struct hostlist_field fields[HOSTLIST_BRACKETS_MAX + 1];
	uint32_t field_count;
	uint64_t count;		// of names; UINT64_MAX if no 64 bits hold it
	size_t name_length_max; // no name of this item is longer
};

// Takes the item apart, checks all of it and sets it to its first name. Errors: hostlist_expand.
int hostlist_item_read(
	const char *text, size_t length, struct parse_error *error, struct hostlist_item *ret_item
);

// Writes the present name, without a NUL, and returns its length.
size_t hostlist_item_write(const struct hostlist_item *item, char *name);

// Moves to the next name. Returns false behind the last.
bool hostlist_item_step(struct hostlist_item *item);

bool hostlist_is_name_byte(char byte);

// How many digits it takes to write the value: 1 for 0.
uint32_t hostlist_digit_count(uint64_t value);
