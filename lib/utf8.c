// SPDX-License-Identifier: BSD-3-Clause
// Size of a UTF-8 character.
#include <lib/must.h>
#include <lib/utf8.h>

#include <stdint.h>

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
