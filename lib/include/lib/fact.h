// SPDX-License-Identifier: BSD-3-Clause
// Reads members of a JSON object that another program wrote. A member that is missing, null or of
// another type is unknown. Any thread; allocates nothing.
#pragma once

#include <lib/show.h>

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns the string, or "" if it is unknown.
const char *fact_word(const json_t *object, const char *key);
// Returns the string, or "?" if it is unknown or empty.
const char *fact_name(const json_t *object, const char *key);
// Returns whether the member is this string.
bool fact_is(const json_t *object, const char *key, const char *word);
// Returns whether the member is true.
bool fact_holds(const json_t *object, const char *key);
// Returns whether the member is neither missing nor null.
bool fact_known(const json_t *object, const char *key);
// Returns the integer, or 0 if it is unknown or negative.
uint64_t fact_number(const json_t *object, const char *key);
// Read a duration, whose key ends in _ns. In an answer of an older agent its key ends in _s, and it
// is in seconds. Returns false if it is unknown.
bool fact_read_ns(const json_t *object, const char *key, uint64_t *ret_ns);
// The same with the unit as text, or "-" if it is unknown.
bool fact_duration(const json_t *object, const char *key, char text[static SHOW_BYTES]);
// Write a size with its unit, or "-" if it is unknown.
void fact_bytes(const json_t *object, const char *key, char text[static SHOW_BYTES]);
// Write a count in at most six characters: 99999, 100k, 100M. An unknown count is 0.
void fact_count(const json_t *object, const char *key, char text[static SHOW_BYTES]);
void count_show(uint64_t count, char text[static SHOW_BYTES]);
