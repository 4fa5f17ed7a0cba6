// SPDX-License-Identifier: BSD-3-Clause
// The output text of a session, up to a limit, and the lines of its input.
#include "client/text.h"

#include "client/lines.h"

#include <lib/must.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_FIRST 1024
#define COLUMNS 100

void text_fini(struct text *text) {
	free(text->data);
	*text = (struct text){0};
}

// Reserve `size` bytes and a terminator after the end.
static bool text_reserve(struct text *text, size_t size) {
	size_t capacity = text->capacity > 0 ? text->capacity : TEXT_BYTES_FIRST;
	char *data;

	if (text->failed || size > TEXT_BYTES_MAX - text->end) {
		text->failed = true;
		return false;
	}
	if (text->end + size < text->capacity)
		return true;
	while (capacity <= text->end + size)
		capacity *= 2;
	data = realloc(text->data, capacity);
	if (data == NULL) {
		text->failed = true;
		return false;
	}
	text->data = data;
	text->capacity = capacity;
	return true;
}

void text_add(struct text *text, const void *bytes, size_t size) {
	if (size == 0 || !text_reserve(text, size))
		return;
	memcpy(text->data + text->end, bytes, size);
	text->end += size;
}

void text_print(struct text *text, const char *format, ...) {
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (size < 0 || !text_reserve(text, (size_t)size)) {
		text->failed = true;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text->data + text->end, (size_t)size + 1, format, arguments);
	va_end(arguments);
	text->end += (size_t)size;
}

void text_wrap(struct text *text, int indent, const char *words) {
	size_t columns = (size_t)(COLUMNS - indent);

	while (*words != '\0') {
		size_t length = strlen(words);

		// A line ends at a blank, or after one long word.
		if (length > columns) {
			for (length = columns; length > 0 && words[length] != ' ';)
				length--;
			if (length == 0)
				length = strcspn(words, " ");
		}
		text_print(text, "%*s%.*s\n", indent, "", (int)length, words);
		words += length;
		words += strspn(words, " ");
	}
}

static int add_piece(const char *piece, size_t size, void *ctx) {
	struct text *text = ctx;

	text_add(text, piece, size);
	return text->failed ? -1 : 0;
}

void text_add_json(struct text *text, json_t *value) {
	if (value == NULL ||
	    json_dump_callback(value, add_piece, text, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		text->failed = true;
	json_decref(value);
}

void text_consume(struct text *text, size_t size) {
	must(size <= text_size(text));
	text->taken += size;
	if (text->taken == text->end)
		text->taken = text->end = 0;
}

void *lines_room(struct lines *lines, size_t *ret_size) {
	*ret_size = sizeof(lines->bytes) - lines->used;
	return lines->bytes + lines->used;
}

void lines_filled(struct lines *lines, size_t size) {
	must(size <= sizeof(lines->bytes) - lines->used);
	lines->used += size;
}

int lines_next(struct lines *lines, char ret_line[static CLIENT_LINE_BYTES_MAX]) {
	const char *end = memchr(lines->bytes, '\n', lines->used);
	size_t length;
	size_t taken;

	if (end == NULL)
		return lines->used == sizeof(lines->bytes) ? -EMSGSIZE : -EAGAIN;
	length = (size_t)(end - lines->bytes);
	taken = length + 1;
	if (length > 0 && lines->bytes[length - 1] == '\r')
		length--;
	memcpy(ret_line, lines->bytes, length);
	ret_line[length] = '\0';
	lines->used -= taken;
	memmove(lines->bytes, lines->bytes + taken, lines->used);
	return 0;
}
