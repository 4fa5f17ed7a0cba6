// SPDX-License-Identifier: BSD-3-Clause
// Size and width of a UTF-8 character.
#include <lib/must.h>
#include <lib/utf8.h>

#include <stdint.h>
#include <string.h>

// One row per form in table 3-7 of the Unicode standard. Only the second byte has its own range,
// which excludes overlong forms and surrogates.
struct utf8_form {
	uint8_t first_min, first_max;
	uint8_t second_min, second_max;
	uint8_t size;
};

static const struct utf8_form utf8_forms[] = {
	{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
	{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
	{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

size_t utf8_character_size(const void *text, size_t size) {
	const uint8_t *bytes = text;

	must(size > 0);
	if (bytes[0] < 0x80)
		return 1;
	for (size_t n = 0; n < sizeof(utf8_forms) / sizeof(utf8_forms[0]); n++) {
		const struct utf8_form *form = &utf8_forms[n];

		if (bytes[0] < form->first_min || bytes[0] > form->first_max)
			continue;
		if (size < form->size || bytes[1] < form->second_min || bytes[1] > form->second_max)
			return 0;
		for (size_t i = 2; i < form->size; i++) {
			if ((bytes[i] & 0xc0) != 0x80)
				return 0;
		}
		return form->size;
	}
	return 0;
}

// Ranges of code points that do not take one column, ascending. Wide ranges are those of Unicode's
// East Asian Width W and F and of emoji; rare scripts are left out of the combining marks.
static const struct utf8_width {
	uint32_t first, last;
	uint8_t columns;
} utf8_widths[] = {
	{0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},   {0x0610, 0x061a, 0},
	{0x064b, 0x065f, 0},   {0x0e34, 0x0e3a, 0},   {0x0e47, 0x0e4e, 0},   {0x1100, 0x115f, 2},
	{0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200f, 0},   {0x20d0, 0x20f0, 0},
	{0x231a, 0x231b, 2},   {0x2329, 0x232a, 2},   {0x23e9, 0x23ec, 2},   {0x23f0, 0x23f0, 2},
	{0x23f3, 0x23f3, 2},   {0x25fd, 0x25fe, 2},   {0x2614, 0x2615, 2},   {0x2648, 0x2653, 2},
	{0x267f, 0x267f, 2},   {0x2693, 0x2693, 2},   {0x26a1, 0x26a1, 2},   {0x26aa, 0x26ab, 2},
	{0x26bd, 0x26be, 2},   {0x26c4, 0x26c5, 2},   {0x26ce, 0x26ce, 2},   {0x26d4, 0x26d4, 2},
	{0x26ea, 0x26ea, 2},   {0x26f2, 0x26f3, 2},   {0x26f5, 0x26f5, 2},   {0x26fa, 0x26fa, 2},
	{0x26fd, 0x26fd, 2},   {0x2705, 0x2705, 2},   {0x270a, 0x270b, 2},   {0x2728, 0x2728, 2},
	{0x274c, 0x274c, 2},   {0x274e, 0x274e, 2},   {0x2753, 0x2755, 2},   {0x2757, 0x2757, 2},
	{0x2795, 0x2797, 2},   {0x27b0, 0x27b0, 2},   {0x27bf, 0x27bf, 2},   {0x2b1b, 0x2b1c, 2},
	{0x2b50, 0x2b50, 2},   {0x2b55, 0x2b55, 2},   {0x2e80, 0x3029, 2},   {0x302a, 0x302d, 0},
	{0x302e, 0x303e, 2},   {0x3041, 0x3098, 2},   {0x3099, 0x309a, 0},   {0x309b, 0x3247, 2},
	{0x3250, 0x4dbf, 2},   {0x4e00, 0xa4cf, 2},   {0xa960, 0xa97f, 2},   {0xac00, 0xd7a3, 2},
	{0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe10, 0xfe19, 2},   {0xfe20, 0xfe2f, 0},
	{0xfe30, 0xfe6f, 2},   {0xfeff, 0xfeff, 0},   {0xff01, 0xff60, 2},   {0xffe0, 0xffe6, 2},
	{0x16fe0, 0x1b2ff, 2}, {0x1f004, 0x1f004, 2}, {0x1f0cf, 0x1f0cf, 2}, {0x1f18e, 0x1f18e, 2},
	{0x1f191, 0x1f19a, 2}, {0x1f200, 0x1f320, 2}, {0x1f32d, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2},
	{0x1f7e0, 0x1f7eb, 2}, {0x1f90c, 0x1f9ff, 2}, {0x1fa70, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
	{0xe0100, 0xe01ef, 0},
};

size_t utf8_character_columns(const void *text, size_t size) {
	const uint8_t *bytes = text;
	size_t count = utf8_character_size(text, size);
	uint32_t code;

	if (count < 2)
		return 1;
	code = bytes[0] & (0x7fU >> count);
	for (size_t n = 1; n < count; n++)
		code = code << 6 | (bytes[n] & 0x3fU);
	for (size_t n = 0; n < sizeof(utf8_widths) / sizeof(utf8_widths[0]); n++) {
		if (code <= utf8_widths[n].last)
			return code >= utf8_widths[n].first ? utf8_widths[n].columns : 1;
	}
	return 1;
}

size_t utf8_text_columns(const char *text) {
	size_t left = strlen(text), columns = 0, size;

	for (; left > 0; text += size, left -= size) {
		columns += utf8_character_columns(text, left);
		size = utf8_character_size(text, left);
		size = size > 0 ? size : 1;
	}
	return columns;
}
