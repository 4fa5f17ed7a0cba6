// SPDX-License-Identifier: BSD-3-Clause
// Escaping of untrusted text for terminals and JSON.
#include <lib/escape.h>
#include <lib/must.h>
#include <lib/utf8.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define QUOTE_TAIL "\"..."

// Return true for control characters, line separators, and marks that make a terminal reorder text.
static bool sequence_is_hidden(const uint8_t *bytes, size_t size) {
	if (size == 1)
		return bytes[0] < 0x20 || bytes[0] == 0x7f;
	if (size == 2)
		return bytes[0] == 0xc2 && bytes[1] < 0xa0;
	if (size != 3 || bytes[0] != 0xe2)
		return false;
	return (bytes[1] == 0x80 && bytes[2] >= 0xa8 && bytes[2] <= 0xae) ||
	       (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9);
}

static void unit_put_hex(struct escape_unit *unit, uint8_t byte) {
	static const char digits[] = "0123456789abcdef";
	const char text[] = {'\\', 'x', digits[byte >> 4], digits[byte & 0xf]};

	memcpy(unit->text + unit->text_size, text, sizeof(text));
	unit->text_size += sizeof(text);
}

static char short_escape(uint8_t byte) {
	switch (byte) {
	case '"':
	case '\\':
		return (char)byte;
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return '\0';
	}
}

void escape_next(const char *text, size_t size, struct escape_unit *ret_unit) {
	const uint8_t *bytes = (const uint8_t *)text;
	struct escape_unit *unit = ret_unit;
	size_t sequence_size;
	char letter;

	must(size > 0);
	letter = short_escape(bytes[0]);
	unit->text_size = 0;
	unit->taken_bytes = 1;
	if (letter != '\0') {
		unit->text[0] = '\\';
		unit->text[1] = letter;
		unit->text_size = 2;
		return;
	}
	sequence_size = utf8_character_size(bytes, size);
	if (sequence_size == 0) {
		unit_put_hex(unit, bytes[0]);
		return;
	}
	unit->taken_bytes = sequence_size;
	if (sequence_is_hidden(bytes, sequence_size)) {
		for (size_t i = 0; i < sequence_size; i++)
			unit_put_hex(unit, bytes[i]);
		return;
	}
	memcpy(unit->text, bytes, sequence_size);
	unit->text_size = sequence_size;
}

bool escape_text_is_plain(const char *text, size_t size) {
	struct escape_unit unit;

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		if (unit.text_size != unit.taken_bytes && text[at] != '"' && text[at] != '\\')
			return false;
	}
	return true;
}

void escape_quote(const char *text, size_t text_size, char *out, size_t out_size) {
	struct escape_unit unit;
	size_t used = 0;
	size_t taken = 0;

	must(out_size >= 8);
	out[used++] = '"';
	while (taken < text_size) {
		escape_next(text + taken, text_size - taken, &unit);
		if (used + unit.text_size + sizeof(QUOTE_TAIL) > out_size)
			break;
		memcpy(out + used, unit.text, unit.text_size);
		used += unit.text_size;
		taken += unit.taken_bytes;
	}
	if (taken < text_size)
		memcpy(out + used, QUOTE_TAIL, sizeof(QUOTE_TAIL));
	else
		memcpy(out + used, "\"", 2);
}

// Return true for a character allowed in XML. U+FFFE and U+FFFF are valid in UTF-8, but not in XML.
static bool character_is_xml(const char *text, size_t size) {
	return size > 0 && (size > 1 || (unsigned char)*text >= ' ') &&
	       memcmp(text, "\xef\xbf\xbe", size) != 0 && memcmp(text, "\xef\xbf\xbf", size) != 0;
}

void escape_put_markup(const char *text, FILE *file) {
	static const char *const entities[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};
	size_t left = strlen(text), size;

	for (; left > 0; text += size, left -= size) {
		unsigned char first = (unsigned char)*text;

		size = utf8_character_size(text, left);
		if (first < sizeof(entities) / sizeof(entities[0]) && entities[first] != NULL)
			fputs(entities[first], file);
		else if (character_is_xml(text, size))
			fwrite(text, 1, size, file);
		else
			fputc('?', file);
		size = size > 0 ? size : 1;
	}
}
