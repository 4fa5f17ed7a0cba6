// SPDX-License-Identifier: BSD-3-Clause
// Writes rows as JSON, as a table and as a part of a manual page.
#include <lib/escape.h>
#include <lib/fact.h>
#include <lib/must.h>
#include <lib/record.h>
#include <lib/utf8.h>

#include <inttypes.h>
#include <string.h>

#define COLUMNS_MAX 24
#define ESCAPED_BYTES (4 * 1024 + 8) // a text of 1024 bytes, each as \xNN, in quotes

// JSON.

// jansson refuses a string that is not UTF-8; such text is written escaped and quoted.
static json_t *string_to_json(const char *text) {
	char quoted[ESCAPED_BYTES];
	json_t *string;

	if (text == NULL)
		return json_null();
	string = json_string(text);
	if (string != NULL)
		return string;
	escape_quote(text, strlen(text), quoted, sizeof(quoted));
	return json_string(quoted);
}

static json_t *value_to_json(const struct record_field *field, const void *row) {
	const void *place = (const char *)row + field->offset;
	uint64_t count;

	switch (field->type) {
	case RECORD_NONE:
		break;
	case RECORD_STRING:
		return string_to_json(*(const char *const *)place);
	case RECORD_TEXT:
		return string_to_json(place);
	case RECORD_BOOL:
		return json_boolean(*(const bool *)place);
	case RECORD_INT32:
		return json_integer(*(const int32_t *)place);
	case RECORD_UINT32:
		return json_integer(*(const uint32_t *)place);
	case RECORD_UINT64:
		count = *(const uint64_t *)place;
		if (count == RECORD_UNKNOWN)
			return json_null();
		// JSON's integers are signed; sums of what other agents report may be larger.
		return json_integer(count < INT64_MAX ? (json_int_t)count : INT64_MAX);
	case RECORD_JSON:
		return *(json_t *const *)place;
	}
	must(false); // a field with a key has a type
	return NULL;
}

json_t *record_to_json(const struct record *record, const void *row) {
	json_t *object = json_object();
	bool complete = object != NULL;

	for (size_t n = 0; n < record->count; n++) {
		const struct record_field *field = &record->fields[n];

		// Also called after a failure: it takes the references of RECORD_JSON.
		if (field->type != RECORD_NONE)
			complete &= json_object_set_new_nocheck(
					    object, field->key, value_to_json(field, row)
				    ) == 0;
	}
	if (complete)
		return object;
	json_decref(object);
	return NULL;
}

// Table.

struct column {
	const struct record_field *field;
	size_t longest; // columns of the longest text or the label
	size_t width;	// columns that are printed
};

struct table {
	struct column columns[COLUMNS_MAX];
	size_t count;
};

static void show_number(
	const json_t *object,
	const struct record_field *field,
	bool exact,
	char text[static SHOW_BYTES]
) {
	int length;

	if (field->unit == UNIT_NANOSECONDS) {
		fact_duration(object, field->key, text);
	} else if (field->unit == UNIT_BYTES) {
		fact_bytes(object, field->key, text);
	} else {
		length = snprintf(text, SHOW_BYTES, "%" PRIu64, fact_number(object, field->key));
		if (!exact && length > field->width)
			fact_count(object, field->key, text);
	}
}

// Return the text of a column: `text`, or a string of the row, which may be longer. A count that
// is wider than its column is rounded unless `exact` is set.
static const char *field_read_text(
	const struct record_field *field,
	const json_t *row,
	bool exact,
	char text[static SHOW_BYTES]
) {
	const json_t *value;

	if (field->show != NULL)
		return field->show(row, text);
	snprintf(text, SHOW_BYTES, "-");
	if (field->inside != NULL)
		row = json_object_get(row, field->inside);
	value = json_object_get(row, field->key);
	if (field->unit == UNIT_NONE && json_is_string(value) && json_string_length(value) > 0)
		return json_string_value(value);
	if (json_is_boolean(value))
		snprintf(text, SHOW_BYTES, "%s", json_is_true(value) ? "yes" : "no");
	else if (json_is_number(value) || field->unit == UNIT_NANOSECONDS)
		show_number(row, field, exact, text);
	return text;
}

static size_t table_width(const struct table *table) {
	size_t width = 0;

	for (size_t n = 0; n < table->count; n++)
		width += table->columns[n].width + (n > 0);
	return width;
}

// Returns false if no column may be dropped.
static bool drop_least_important(struct table *table) {
	size_t least = 0;

	for (size_t n = 1; n < table->count; n++) {
		if (table->columns[n].field->rank > table->columns[least].field->rank)
			least = n;
	}
	if (table->count == 0 || table->columns[least].field->rank == 0)
		return false;
	table->count--;
	memmove(&table->columns[least], &table->columns[least + 1],
		(table->count - least) * sizeof(table->columns[0]));
	return true;
}

// Columns are dropped until the rest fits; then texts that are cut get the room that is left.
static void
table_layout(struct table *table, const struct record *record, const json_t *rows, size_t columns) {
	char text[SHOW_BYTES];
	const json_t *row;
	size_t width, r;

	table->count = 0;
	for (size_t n = 0; n < record->count; n++) {
		const struct record_field *field = &record->fields[n];
		size_t longest;

		if (field->label == NULL)
			continue;
		longest = strlen(field->label);
		json_array_foreach(rows, r, row) {
			size_t length =
				utf8_text_columns(field_read_text(field, row, columns == 0, text));

			longest = length > longest ? length : longest;
		}
		must(table->count < COLUMNS_MAX && field->width > 0);
		table->columns[table->count++] = (struct column
		){field, longest, longest > field->width ? field->width : longest};
	}
	if (columns == 0)
		columns = SIZE_MAX;
	while (table_width(table) > columns && drop_least_important(table))
		;
	width = table_width(table);
	for (size_t n = 0; n < table->count && width < columns; n++) {
		struct column *column = &table->columns[n];
		size_t wanted = column->longest - column->width;
		size_t given = wanted < columns - width ? wanted : columns - width;

		column->width += given;
		width += given;
	}
}

static void print_cell(const struct column *column, const char *text, bool last, FILE *out) {
	size_t length = utf8_text_columns(text), width = column->width;
	int blanks = length < width ? (int)(width - length) : 0;
	bool right = column->field->unit == UNIT_COUNT;
	size_t left = strlen(text), bytes = 0, used = 0, shown = 0, size;

	if (right)
		fprintf(out, "%*s", blanks, "");
	if (length > width) {
		// Find the characters that fit into width - 1 columns; the text has more.
		for (; left > 0; bytes += size, left -= size) {
			used += utf8_character_columns(text + bytes, left);
			if (used >= width)
				break;
			shown = used;
			size = utf8_character_size(text + bytes, left);
			size = size > 0 ? size : 1;
		}
		fprintf(out, "%.*s~", (int)bytes, text);
		blanks = (int)(width - 1 - shown); // 1: half of a wide character
	} else {
		fputs(text, out);
	}
	if (last)
		fputc('\n', out);
	else
		fprintf(out, "%*s", right ? 1 : blanks + 1, "");
}

void record_print_table(
	const struct record *record,
	const json_t *rows,
	size_t columns,
	record_note_fn *note,
	void *ctx,
	FILE *out
) {
	char text[SHOW_BYTES];
	struct table table;
	const json_t *row;
	size_t r;

	table_layout(&table, record, rows, columns);
	for (size_t n = 0; n < table.count; n++)
		print_cell(
			&table.columns[n], table.columns[n].field->label, n + 1 == table.count, out
		);
	json_array_foreach(rows, r, row) {
		for (size_t n = 0; n < table.count; n++)
			print_cell(
				&table.columns[n],
				field_read_text(table.columns[n].field, row, columns == 0, text),
				n + 1 == table.count, out
			);
		if (note != NULL)
			note(ctx, row);
	}
}

// Manual.

const char *record_type_name(const struct record_field *field) {
	static const char *const names[] = {
		[RECORD_STRING] = "string",	   [RECORD_TEXT] = "string",
		[RECORD_BOOL] = "boolean",	   [RECORD_INT32] = "integer",
		[RECORD_UINT32] = "integer",	   [RECORD_UINT64] = "integer",
		[RECORD_JSON] = "object or array",
	};

	must(field->type != RECORD_NONE);
	return names[field->type];
}
