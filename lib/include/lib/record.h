// SPDX-License-Identifier: BSD-3-Clause
// Answers described by tables. A record lists the fields of one row: the member of a struct, its
// unit, the column of a terminal table and a help text. The agent fills the struct, and
// record_to_json() writes it. The client reads JSON by key, so that it also shows the answer of an
// older agent, in which fields are missing.
#pragma once

#include <lib/show.h>

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RECORD_UNKNOWN UINT64_MAX // uint64_t value that is null in JSON

enum record_type {
	RECORD_NONE,   // a column only
	RECORD_STRING, // const char *; NULL is null
	RECORD_TEXT,   // char[]; text that is not UTF-8 is written escaped
	RECORD_BOOL,
	RECORD_INT32,
	RECORD_UINT32,
	RECORD_UINT64,
	RECORD_JSON, // json_t *, whose reference record_to_json() takes; NULL: memory is short
};

// Unit of a number. A kind of quantity has one unit, which its key names: a duration ends in _ns, a
// size in bytes or _bytes, a rate of bytes in _bytes_per_s, a share in _permille, the speed of a
// link in _mbps. A time of day is UTC text.
enum record_unit {
	UNIT_NONE,
	UNIT_COUNT, // the column is aligned to the right
	UNIT_NANOSECONDS,
	UNIT_BYTES,
};

// Return the text of a column from a row of JSON: `text`, or a string of the row.
typedef const char *record_show_fn(const json_t *row, char text[static SHOW_BYTES]);

struct record_field {
	const char *key; // JSON member; NULL if `show` makes the column
	enum record_type type;
	size_t offset; // in the struct of a row
	enum record_unit unit;
	const char *help;     // for the manual
	const char *label;    // heading of the column; NULL if the field is in JSON only
	uint8_t width;	      // characters for which there is always room; a longer text may be cut
	uint8_t rank;	      // columns with the highest rank are dropped first; 0: never dropped
	record_show_fn *show; // replaces the text that follows from the unit; may be NULL
	const char *inside;   // of a column only: `key` is a member of this object of the row
};

// clang-format off
#define RECORD_TYPE(value)           \
	_Generic((value),            \
		const char *: RECORD_STRING, char *: RECORD_TEXT, bool: RECORD_BOOL, \
		int32_t: RECORD_INT32, uint32_t: RECORD_UINT32, uint64_t: RECORD_UINT64, \
		json_t *: RECORD_JSON)
// The JSON key is the name of the member. RECORD_COLUMN has label, width, rank and show as well.
#define RECORD_COLUMN(row, member, unit, help, ...) \
	{#member, RECORD_TYPE(((row *)NULL)->member), offsetof(row, member), unit, help, \
	 __VA_ARGS__, NULL}
#define RECORD_MEMBER(row, member, unit, help) \
	RECORD_COLUMN(row, member, unit, help, NULL, 0, 0, NULL)
// A column that `show` makes of several members: label, width, rank and show.
#define RECORD_MADE(unit, ...) {NULL, RECORD_NONE, 0, unit, NULL, __VA_ARGS__, NULL}
// A column of a member of an object that is a member of the row: label, width and rank.
#define RECORD_INNER(inside, key, unit, ...) \
	{key, RECORD_NONE, 0, unit, NULL, __VA_ARGS__, NULL, inside}
#define RECORD(name, fields) {name, fields, sizeof(fields) / sizeof((fields)[0])}
// clang-format on

struct record {
	const char *name; // of the array that holds the rows of an answer
	const struct record_field *fields;
	size_t count;
};

// Returns the row as a JSON object, or NULL if memory is short.
json_t *record_to_json(const struct record *record, const void *row);

// Prints lines below a row. May print nothing.
typedef void record_note_fn(void *ctx, const json_t *row);

// Print a heading and one line per row. If `columns` is not 0, the table drops columns by rank and
// cuts texts until it has at most so many characters. Columns of rank 0 keep their width, so a
// table may be wider. With columns 0 nothing is dropped, cut or rounded.
void record_print_table(
	const struct record *record,
	const json_t *rows,
	size_t columns,
	record_note_fn *note, // may be NULL
	void *ctx,
	FILE *out
);

// Returns the JSON type of a field that has a key, in the words of the manual.
const char *record_type_name(const struct record_field *field);
