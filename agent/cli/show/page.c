// SPDX-License-Identifier: BSD-3-Clause
// Prints a page of text: cells, wrapped words, and facts of an answer as people read them.
#include "show/page.h"

#include "show/paint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_INDENT 8

// Replace every string that would break a line or control a terminal by its escaped form. jansson
// reads no deeper than 2048 nested values.
static int value_clean(json_t *value) { // NOLINT(misc-no-recursion): bounded by jansson
	const char *key;
	json_t *inner;
	size_t n;
	int err = 0;

	if (json_is_string(value)) {
		const char *text = json_string_value(value);
		size_t size = 4 * strlen(text) + 1;
		char *clean = malloc(size);

		if (clean == NULL)
			return -ENOMEM;
		paint_escape(text, size, clean, size);
		if (strcmp(clean, text) != 0 && json_string_set(value, clean) != 0)
			err = -ENOMEM;
		free(clean);
	} else if (json_is_array(value)) {
		json_array_foreach(value, n, inner) {
			if (err == 0)
				err = value_clean(inner);
		}
	} else if (json_is_object(value)) {
		json_object_foreach(value, key, inner) {
			if (err == 0)
				err = value_clean(inner);
		}
	}
	return err;
}

// Page.

int page_begin(struct page *page, bool whole, json_t *answer) {
	int err = value_clean(answer);

	if (err != 0)
		return err;
	*page = (struct page){.whole = whole};
	page->text = open_memstream(&page->bytes, &page->size);
	return page->text != NULL ? 0 : -errno;
}

// Print a line in pieces of at most PAGE_COLUMNS. All pieces but the first are indented by two
// blanks more than the line.
static void print_wrapped(char *line, bool coloured, FILE *out) {
	size_t indent = strspn(line, " ");
	size_t blanks = indent < PAGE_COLUMNS / 2 ? indent : PAGE_COLUMNS / 2;

	line += indent;
	for (bool first = true; *line != '\0'; first = false) {
		size_t piece_indent = first ? blanks : blanks + 2;
		size_t length = paint_line_bytes(line, PAGE_COLUMNS - piece_indent);
		char after = line[length];

		line[length] = '\0';
		fprintf(out, "%*s", (int)piece_indent, "");
		paint_print_line(line, coloured, out);
		line[length] = after;
		line += length;
		line += strspn(line, " ");
	}
}

void page_end(struct page *page, bool coloured, FILE *out) {
	bool written = fclose(page->text) == 0;
	char *line = page->bytes, *end;

	while (written && (end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		if (page->whole || line[strspn(line, " ")] == '\0' ||
		    paint_line_bytes(line, PAGE_COLUMNS) == strlen(line))
			paint_print_line(line, coloured, out);
		else
			print_wrapped(line, coloured, out);
		line = end + 1;
	}
	free(page->bytes);
}

void page_print(struct page *page, const char *format, ...) {
	va_list arguments;

	va_start(arguments, format);
	vfprintf(page->text, format, arguments);
	va_end(arguments);
}

const char *
page_cell(const struct page *page, const char *value, size_t width, char cell[static SHOW_BYTES]) {
	if (page->whole)
		return value;
	show_truncated(value, width, cell);
	return cell;
}

struct row_note {
	struct page *page;
	page_note_fn *note;
};

static void print_note(void *ctx, const json_t *row) {
	const struct row_note *row_note = ctx;

	row_note->note(row_note->page, row);
}

void page_table(
	struct page *page, const struct record *record, const json_t *rows, page_note_fn *note
) {
	struct row_note row_note = {page, note};

	record_print_table(
		record, rows, page->whole ? 0 : PAGE_COLUMNS, note != NULL ? print_note : NULL,
		&row_note, page->text
	);
}

void page_wrap(struct page *page, int first, int rest, const char *words) {
	for (int indent = first; *words != '\0'; indent = rest) {
		size_t length = paint_line_bytes(words, (size_t)(PAGE_COLUMNS - indent));

		page_print(page, "%*s%.*s\n", indent, "", (int)length, words);
		words += length;
		words += strspn(words, " ");
	}
}

double page_answer_seconds(const json_t *answer) {
	uint64_t took_ns;

	return fact_read_ns(answer, "took_ns", &took_ns)
		       ? (double)took_ns / 1e9
		       : json_number_value(json_object_get(answer, "seconds"));
}

void page_words(struct page *page, const char *words) {
	page_wrap(page, WORDS_INDENT, WORDS_INDENT, words);
}
