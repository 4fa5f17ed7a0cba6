// SPDX-License-Identifier: BSD-3-Clause
// Prints a page of text: cells, wrapped words, and facts of an answer as people read them.
#include "show/page.h"

#include "show/paint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_INDENT 8

// Strings.

// A string that would break a line or steer a terminal is replaced by what shows it.
static int string_clean(json_t *string) {
	const char *text = json_string_value(string);
	size_t size = 4 * strlen(text) + 1;
	char *clean = malloc(size);
	int err = 0;

	if (clean == NULL)
		return -ENOMEM;
	paint_escape(text, size, clean, size);
	if (strcmp(clean, text) != 0 && json_string_set(string, clean) != 0)
		err = -ENOMEM;
	free(clean);
	return err;
}

// jansson reads no deeper than 2048 values in each other.
static int value_clean(json_t *value) { // NOLINT(misc-no-recursion): bounded by jansson
	const char *key;
	json_t *inner;
	size_t n;
	int err = 0;

	if (json_is_string(value))
		return string_clean(value);
	if (json_is_array(value)) {
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

// Return the bytes of `words` that fit into so many columns: up to a blank, or one long word.
static size_t line_length(const char *words, size_t columns) {
	size_t last_blank = 0, at = 0, count = 0;

	for (; words[at] != '\0'; at++) {
		if (words[at] == ' ' && at > 0)
			last_blank = at;
		count += ((unsigned char)words[at] & 0xc0) != 0x80;
		if (count > columns)
			return last_blank > 0 ? last_blank : strcspn(words, " ");
	}
	return at;
}

// Print a line. On a terminal it is wrapped at PAGE_COLUMNS; all pieces but the first are indented
// by two blanks more than the line.
static void print_line(const struct page *page, char *line, bool coloured, FILE *out) {
	size_t indent = strspn(line, " ");
	size_t blanks = indent < PAGE_COLUMNS / 2 ? indent : PAGE_COLUMNS / 2;

	if (page->whole || line[indent] == '\0' ||
	    line_length(line, PAGE_COLUMNS) == strlen(line)) {
		paint_print_line(line, coloured, out);
		return;
	}
	line += indent;
	for (bool first = true; *line != '\0'; first = false) {
		size_t piece_indent = first ? blanks : blanks + 2;
		size_t length = line_length(line, PAGE_COLUMNS - piece_indent);
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
		print_line(page, line, coloured, out);
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
		size_t length = line_length(words, (size_t)(PAGE_COLUMNS - indent));

		page_print(page, "%*s%.*s\n", indent, "", (int)length, words);
		words += length;
		words += strspn(words, " ");
	}
}

void page_words(struct page *page, const char *words) {
	page_wrap(page, WORDS_INDENT, WORDS_INDENT, words);
}
