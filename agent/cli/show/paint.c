// SPDX-License-Identifier: BSD-3-Clause
// Colours on a terminal, and the escaping of names from other machines.
#include "show/paint.h"

#include <lib/escape.h>
#include <lib/utf8.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *word;
	enum paint paint;
} word_colours[] = {
	{"ok", PAINT_GOOD},	      {"alive", PAINT_GOOD},	   {"ALIVE", PAINT_GOOD},
	{"REFUTED", PAINT_GOOD},      {"REJOINED", PAINT_GOOD},	   {"BRAKE_OFF", PAINT_GOOD},
	{"warning", PAINT_WARN},      {"unknown", PAINT_WARN},	   {"suspect", PAINT_WARN},
	{"unreachable", PAINT_WARN},  {"missing", PAINT_WARN},	   {"delayed", PAINT_WARN},
	{"SUSPECT", PAINT_WARN},      {"UNREACHABLE", PAINT_WARN}, {"BRAKE_ON", PAINT_WARN},
	{"PAUSED", PAINT_WARN},	      {"LINK_STUCK", PAINT_WARN},  {"JOIN_WAITING", PAINT_WARN},
	{"critical", PAINT_BAD},      {"dead", PAINT_BAD},	   {"down", PAINT_BAD},
	{"DEAD", PAINT_BAD},	      {"CONFLICT", PAINT_BAD},	   {"JOIN_REFUSED", PAINT_BAD},
	{"DECLARED_DEAD", PAINT_BAD},
};

static const char *const codes[] = {
	[PAINT_PLAIN] = "",	    [PAINT_GOOD] = "\x1b[32m", [PAINT_WARN] = "\x1b[33m",
	[PAINT_BAD] = "\x1b[1;31m", [PAINT_FAINT] = "\x1b[2m", [PAINT_TITLE] = "\x1b[1m",
};

bool paint_is_enabled(FILE *stream) {
	const char *term = getenv("TERM");	  // NOLINT(concurrency-mt-unsafe): one thread
	const char *refused = getenv("NO_COLOR"); // NOLINT(concurrency-mt-unsafe): one thread

	return (refused == NULL || refused[0] == '\0') && term != NULL &&
	       strcmp(term, "dumb") != 0 && isatty(fileno(stream)) == 1;
}

const char *paint_begin(enum paint paint, bool wanted) {
	return wanted ? codes[paint] : "";
}

const char *paint_end(enum paint paint, bool wanted) {
	return wanted && paint != PAINT_PLAIN ? "\x1b[0m" : "";
}

static void escape_next_unit(const char *text, size_t size, struct escape_unit *ret_unit) {
	escape_next(text, size, ret_unit);
	if (text[0] == '"' || text[0] == '\\') {
		ret_unit->text[0] = text[0];
		ret_unit->text_size = 1;
	}
}

// Returns whether all of the text fits.
static bool
escape_columns(const char *text, size_t columns, char *out, size_t out_size, const char *end) {
	size_t size = strlen(text);
	struct escape_unit unit;
	size_t used = 0, at = 0;

	for (; at < size; at += unit.taken_bytes) {
		// An escaped character is as wide as its bytes.
		size_t width;

		escape_next_unit(text + at, size - at, &unit);
		width = unit.text_size > 1 && unit.text[0] == '\\'
				? unit.text_size
				: utf8_character_columns(unit.text, unit.text_size);
		if (width > columns || used + unit.text_size + strlen(end) >= out_size)
			break;
		memcpy(out + used, unit.text, unit.text_size);
		used += unit.text_size;
		columns -= width;
	}
	memcpy(out + used, end, strlen(end) + 1);
	return at == size;
}

void paint_escape(const char *text, size_t columns, char *out, size_t out_size) {
	(void)escape_columns(text, columns, out, out_size, "");
}

void paint_cut(const char *text, size_t columns, char *out, size_t out_size) {
	if (!escape_columns(text, columns, out, out_size, ""))
		(void)escape_columns(text, columns - 1, out, out_size, "~");
}

// Return the colour of a state, grade or event name; PAINT_PLAIN for an unknown word.
static enum paint word_paint(const char *text, size_t size) {
	while (size > 0 && strchr(":,.;", text[size - 1]) != NULL)
		size--;
	for (size_t n = 0; n < sizeof(word_colours) / sizeof(word_colours[0]); n++) {
		if (strlen(word_colours[n].word) == size &&
		    memcmp(word_colours[n].word, text, size) == 0)
			return word_colours[n].paint;
	}
	return PAINT_PLAIN;
}

// Return true for the number 0, which a comma or a full stop may follow.
static bool word_is_zero(const char *word, size_t size) {
	return word[0] == '0' && (size == 1 || (size == 2 && strchr(",.", word[1]) != NULL));
}

void paint_print_words(const char *line, bool wanted, FILE *stream) {
	struct escape_unit unit;
	bool after_zero = false; // "0 dead" is no reason for a colour

	while (*line != '\0') {
		size_t blanks = strspn(line, " ");
		const char *word = line + blanks;
		size_t size = strcspn(word, " ");
		enum paint paint = wanted && !after_zero ? word_paint(word, size) : PAINT_PLAIN;

		fwrite(line, 1, blanks, stream);
		fputs(paint_begin(paint, wanted), stream);
		for (size_t at = 0; at < size; at += unit.taken_bytes) {
			escape_next_unit(word + at, size - at, &unit);
			fwrite(unit.text, 1, unit.text_size, stream);
		}
		fputs(paint_end(paint, wanted), stream);
		after_zero = word_is_zero(word, size);
		line = word + size;
	}
}

size_t paint_line_bytes(const char *words, size_t columns) {
	size_t last_blank = 0, at = 0, count = 0, left = strlen(words), size;

	for (; left > 0; at += size, left -= size) {
		if (words[at] == ' ')
			last_blank = at;
		count += utf8_character_columns(words + at, left);
		if (count > columns && last_blank > 0)
			return last_blank;
		size = utf8_character_size(words + at, left);
		size = size > 0 ? size : 1;
	}
	return at;
}

void paint_print_line(const char *line, bool wanted, FILE *stream) {
	paint_print_words(line, wanted, stream);
	fputc('\n', stream);
}
