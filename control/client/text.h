// SPDX-License-Identifier: BSD-3-Clause
// Text to be sent to a client. It grows at the end, is consumed at the front, and is limited.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

// Limit of a text, far above one step of a command. A text that exceeds it has failed. Its
// connection is closed, because a truncated answer could be taken for a complete one.
#define TEXT_BYTES_MAX ((size_t)32 << 20)

struct text {
	char *data;
	size_t taken; // bytes consumed at the front
	size_t end;
	size_t capacity;
	bool failed; // no memory, or too long; stays set
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
// Add words in lines of at most 100 columns, where possible.
void text_wrap(struct text *text, int indent, const char *words);
// Add a JSON value on one line, compact and without a newline. Takes over the reference; NULL
// counts as a failure.
void text_add_json(struct text *text, json_t *value);
void text_consume(struct text *text, size_t size);
