// SPDX-License-Identifier: BSD-3-Clause
// Node names in Slurm's syntax: node[001-128,200],rack[1-2]n[01-16]
//
// A list has items separated by commas, with optional blanks around them. An item is a name with up
// to HOSTLIST_BRACKETS_MAX brackets. A bracket holds numbers and ranges. Numbers have at least as
// many digits as the first number of their range ([001-128] but [1-128]). Several brackets count
// like an odometer, the last one fastest: rack1n01, rack1n02 ... rack2n16.
//
// A name has 1 to HOSTLIST_NAME_LENGTH_MAX letters, digits, '-', '_' and '.'. Slurm accepts less:
// its bracket must be at the end of the name.
#pragma once

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTLIST_NAME_LENGTH_MAX 253 // of a domain name, RFC 1035
#define HOSTLIST_BRACKETS_MAX 8
#define HOSTLIST_DIGITS_MAX 18 // every number of this many digits fits into 64 bits

struct hostlist; // immutable, so any thread may read

// Expand a text into a list of names, in the order of the text. A repeated name keeps its first
// position. The text is checked and its names are counted (with repeats) before memory is
// allocated. So a short text cannot request more than count_max names.
//
// Returns 0, -EINVAL (malformed, empty, or a descending range), -ERANGE (a number of more than
// HOSTLIST_DIGITS_MAX digits), -ENAMETOOLONG, -E2BIG (more than count_max names) or -ENOMEM. On
// failure, *error (if not NULL) quotes the wrong item and gives the reason.
int hostlist_expand(
	const char *text,
	size_t length,
	uint32_t count_max,
	struct parse_error *error,
	struct hostlist **ret_list
);

struct hostlist *hostlist_destroy(struct hostlist *list);

uint32_t hostlist_count(const struct hostlist *list);

// Return the name at `index`, which must be below the count. Valid as long as the list.
const char *hostlist_name(const struct hostlist *list, uint32_t index);

// Return true if the list has the name. Constant time.
bool hostlist_contains(const struct hostlist *list, const char *name, size_t length);

// Write a set of names as a short text, independent of their order. Names are sorted by the text
// before the last number, then by the number of digits, then by the number: node1 node2 node01
// node10. Each name occurs once. As in Slurm, only the number at the end of a name goes into a
// bracket, with its digits unchanged: rack1n[01-16],rack2n[01-16]. Names without a number at the
// end are written in full.
//
// The caller frees *ret_text; no names give an empty text. Returns 0, -EINVAL (invalid name),
// -ENAMETOOLONG or -ENOMEM.
int hostlist_compress(const char *const *names, uint32_t count, char **ret_text);
