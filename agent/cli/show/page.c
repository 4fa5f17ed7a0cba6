// SPDX-License-Identifier: BSD-3-Clause
// Prints a page of text: cells, wrapped words, and facts of an answer as people read them.
#include "show/page.h"

#include "show/paint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_SEC 1e9
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

void page_end(struct page *page, bool coloured, FILE *out) {
	bool written = fclose(page->text) == 0;
	char *line = page->bytes, *end;

	while (written && (end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		paint_print_line(line, coloured, out);
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
	show_cell(value, width, cell);
	return cell;
}

// How much of the words a line of so many columns takes: up to a blank, or one long word.
static size_t line_length(const char *words, size_t columns) {
	size_t length = strlen(words);

	if (length <= columns)
		return length;
	for (length = columns; length > 0 && words[length] != ' ';)
		length--;
	return length > 0 ? length : strcspn(words, " ");
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

// Facts.

const char *fact_word(const json_t *object, const char *key) {
	const char *word = json_string_value(json_object_get(object, key));

	return word != NULL ? word : "";
}

const char *fact_name(const json_t *object, const char *key) {
	const char *word = fact_word(object, key);

	return word[0] != '\0' ? word : "?";
}

bool fact_is(const json_t *object, const char *key, const char *word) {
	return strcmp(fact_word(object, key), word) == 0;
}

bool fact_holds(const json_t *object, const char *key) {
	return json_is_true(json_object_get(object, key));
}

bool fact_known(const json_t *object, const char *key) {
	const json_t *value = json_object_get(object, key);

	return value != NULL && !json_is_null(value);
}

uint64_t fact_number(const json_t *object, const char *key) {
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

void fact_duration(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	snprintf(text, SHOW_BYTES, "-");
	if (json_is_integer(json_object_get(object, key)))
		show_duration(fact_number(object, key), text);
}

void fact_seconds(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	const json_t *value = json_object_get(object, key);
	double seconds = json_number_value(value);

	snprintf(text, SHOW_BYTES, "-");
	if (!json_is_number(value) || !isfinite(seconds))
		return;
	seconds = fmin(fmax(seconds, 0), UINT32_MAX);
	show_duration((uint64_t)llround(seconds * NS_PER_SEC), text);
}

void fact_bytes(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	snprintf(text, SHOW_BYTES, "-");
	if (json_is_integer(json_object_get(object, key)))
		show_bytes(fact_number(object, key), text);
}

void count_show(uint64_t count, char text[static SHOW_BYTES]) {
	const uint64_t thousand = 1000, million = 1000000;

	if (count < 100 * thousand)
		snprintf(text, SHOW_BYTES, "%" PRIu64, count);
	else if (count < 100 * million)
		snprintf(text, SHOW_BYTES, "%" PRIu64 "k", count / thousand);
	else
		snprintf(
			text, SHOW_BYTES, "%" PRIu64 "M",
			count / million < 100 * thousand ? count / million : 100 * thousand - 1
		);
}

void fact_count(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	count_show(fact_number(object, key), text);
}
