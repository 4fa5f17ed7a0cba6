// SPDX-License-Identifier: BSD-3-Clause
// One item of a hostlist: the text between two commas, as an odometer over its names. Private to
// lib/hostlist*.c.
#pragma once

#include <lib/hostlist.h>

struct hostlist_range {
	uint64_t low;
	uint64_t high;
	uint32_t width; // least number of digits to write
};

// A literal part and the bracket that follows it.
struct hostlist_field {
	const char *literal;
	size_t literal_length;
	const char *ranges; // NULL: no bracket, this is the last field
	const char *ranges_end;
	// Position of the odometer: the value, its range, and the text of the ranges that follow.
	struct hostlist_range range;
	uint64_t value;
	const char *next;
};

struct hostlist_item {
	struct hostlist_field fields[HOSTLIST_BRACKETS_MAX + 1];
	uint32_t field_count;
	uint64_t count;		// number of names; UINT64_MAX if 64 bits cannot hold it
	size_t name_length_max; // length of the longest name
};

// Parse and check an item, and set it to its first name. Errors: see hostlist_expand().
int hostlist_item_read(
	const char *text, size_t length, struct parse_error *error, struct hostlist_item *ret_item
);

// Write the current name, without a NUL. Returns its length.
size_t hostlist_item_write(const struct hostlist_item *item, char *name);

// Advance to the next name. Returns false after the last.
bool hostlist_item_step(struct hostlist_item *item);

bool hostlist_is_name_byte(char byte);

// Return the number of decimal digits of the value: 1 for 0.
uint32_t hostlist_digit_count(uint64_t value);
