// SPDX-License-Identifier: BSD-3-Clause
// Names of nodes in Slurm's syntax: node[001-128,200],rack[1-2]n[01-16]
//
// A list is items parted by commas, with or without blanks around them. An item is a name in which
// up to HOSTLIST_BRACKETS_MAX brackets stand for numbers: single ones and ranges, of as many digits
// as the first number of the range is written with ([001-128] but [1-128]). More brackets than one
// count like an odometer, the last fastest: rack1n01, rack1n02 ... rack2n16.
//
// A name has 1 to HOSTLIST_NAME_LENGTH_MAX letters, digits, '-', '_' and '.'. That is a little more
// than Slurm takes: it wants a bracket, if any, at the end of the name.
#pragma once

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTLIST_NAME_LENGTH_MAX 253 // of a domain name, RFC 1035
#define HOSTLIST_BRACKETS_MAX 8
#define HOSTLIST_DIGITS_MAX 18 // every number of so many digits fits into 64 bits

struct hostlist; // immutable once made: any thread may read

// Names in the order they are written in; one that comes again stays at its first place only.
// The text is checked and its names are counted (repeated ones as well) before memory is taken
// for them, so a few bytes cannot ask for more than count_max names.
//
// Returns 0, -EINVAL (malformed, empty, or a range that runs backwards), -ERANGE (a number of more
// than HOSTLIST_DIGITS_MAX digits), -ENAMETOOLONG, -E2BIG (more than count_max names) or -ENOMEM.
// On failure *error, unless error is NULL, quotes the item at fault and says what is wrong with it.
int hostlist_expand(
	const char *text,
	size_t length,
	uint32_t count_max,
	struct parse_error *error,
	struct hostlist **ret_list
);

struct hostlist *hostlist_destroy(struct hostlist *list);

uint32_t hostlist_count(const struct hostlist *list);

// The name at index, which is below the count. It lives as long as the list.
const char *hostlist_name(const struct hostlist *list, uint32_t index);

// In constant time.
bool hostlist_contains(const struct hostlist *list, const char *name, size_t length);

// The short text for a set of names, the same for any order of them: sorted by what stands before
// the last number, then by the number of digits, then by the number (node1 node2 node01 node10);
// each name once. As in Slurm only the number at the end of a name is put into a bracket, digits
// as they were: rack1n[01-16],rack2n[01-16]. Names that end otherwise are written in full.
//
// *ret_text is the caller's to free; no names make an empty text. Returns 0, -EINVAL (a name that
// is none), -ENAMETOOLONG or -ENOMEM.
int hostlist_compress(const char *const *names, uint32_t count, char **ret_text);
