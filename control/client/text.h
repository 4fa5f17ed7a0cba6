// SPDX-License-Identifier: BSD-3-Clause
// Text on its way to a client: grows at the end, is taken from the front, has a bound.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

// What one step of a command may add is far below; a text that would pass this has failed, and
// its connection ends rather than tell half a story as if it were the whole.
#define TEXT_BYTES_MAX ((size_t)32 << 20)

struct text {
	char *data;
	size_t taken; // from the front
	size_t end;
	size_t capacity;
	bool failed; // no memory, or too long: sticky
};

void text_fini(struct text *text);

static inline size_t text_size(const struct text *text) {
	return text->end - text->taken;
}
static inline const char *text_front(const struct text *text) {
	return text->data + text->taken;
}

void text_add(struct text *text, const void *bytes, size_t size);
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);
// In lines of at most 100 columns, as far as words allow.
void text_wrap(struct text *text, int indent, const char *words);
// Compact, on one line, without its end. Takes over the reference; NULL is a failure.
void text_json(struct text *text, json_t *value);
void text_take(struct text *text, size_t size);
