// SPDX-License-Identifier: BSD-3-Clause
// Turns an event of the agent's event stream into one line of `tocsin events`.
#include "show/event_line.h"

#include "show/paint.h"

#include <lib/fact.h>
#include <lib/utf8.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODE_COLUMNS 18
#define DETAIL_COLUMNS 32
#define WHOLE_COLUMNS 500 // as much as a cell holds
#define CELL_BYTES 512
#define COLUMNS 80
#define PIPE_COLUMNS 100
#define WORDS_INDENT 8
#define WORDS_COLUMNS 1000 // all of them

const char event_line_head[] =
	" NUMBER TIME                     EVENT          NODE               DETAIL";

// Escaped and cut to its column, a "~" where something is missing; blanks up to its width.
static void
event_cell(const json_t *event, const char *key, size_t columns, char out[static CELL_BYTES]) {
	const char *text = fact_word(event, key);

	paint_cut(text[0] != '\0' ? text : "-", columns, out, CELL_BYTES);
}

int64_t event_line_sequence(const json_t *event) {
	return json_integer_value(json_object_get(event, "sequence"));
}

// Write one event as a row. Returns false if the detail did not fit and was left out.
static bool
event_row(const json_t *event, bool whole, size_t columns, char line[static EVENT_LINE_BYTES]) {
	char time[CELL_BYTES], name[CELL_BYTES], node[CELL_BYTES], detail[CELL_BYTES];
	char number[24] = "-"; // of an earlier run of the agent, which had numbers of its own
	size_t used;

	event_cell(event, "time", 24, time);
	event_cell(event, "event", 14, name);
	event_cell(event, "node", whole ? WHOLE_COLUMNS : NODE_COLUMNS, node);
	event_cell(event, "detail", whole ? WHOLE_COLUMNS : DETAIL_COLUMNS, detail);
	if (event_line_sequence(event) > 0)
		snprintf(number, sizeof(number), "%" PRId64, event_line_sequence(event));
	snprintf(line, EVENT_LINE_BYTES, "%7s %-24s %-14s %-18s", number, time, name, node);
	used = strlen(line);
	if (utf8_text_columns(line) + 1 + utf8_text_columns(detail) > columns) {
		while (line[used - 1] == ' ')
			line[--used] = '\0';
		return false;
	}
	snprintf(line + used, EVENT_LINE_BYTES - used, " %s", detail);
	return true;
}

void event_line_format(const json_t *event, bool whole, char line[static EVENT_LINE_BYTES]) {
	(void)event_row(event, whole, SIZE_MAX, line);
}

static void print_words(const char *text, size_t columns, FILE *stream) {
	char clean[EVENT_LINE_BYTES];
	const char *words = clean;

	paint_escape(text, WORDS_COLUMNS, clean, sizeof(clean));
	while (*words != '\0') {
		size_t length = paint_line_bytes(words, columns);

		fprintf(stream, "%*s%.*s\n", WORDS_INDENT, "", (int)length, words);
		words += length;
		words += strspn(words, " ");
	}
}

void event_line_print(const json_t *event, bool whole, bool colour, FILE *stream) {
	const char *detail = json_string_value(json_object_get(event, "detail"));
	char line[EVENT_LINE_BYTES];
	size_t columns = whole ? PIPE_COLUMNS : COLUMNS;
	bool fits = event_row(event, whole, columns, line);

	paint_print_line(line, colour, stream);
	// The detail ends in the words.
	if (!fits && detail != NULL)
		print_words(detail, columns - WORDS_INDENT, stream);
	else if (!whole)
		print_words(fact_word(event, "text"), columns - WORDS_INDENT, stream);
}

bool event_line_matters(const json_t *event) {
	static const char *const daily[] = {"CLOCK_", "LINK_", "DIVERGED"};
	const char *name = fact_word(event, "event");

	for (size_t n = 0; n < sizeof(daily) / sizeof(daily[0]); n++) {
		if (strncmp(name, daily[n], strlen(daily[n])) == 0)
			return strcmp(name, "LINK_STUCK") == 0;
	}
	return true;
}
