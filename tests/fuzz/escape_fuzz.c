// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes escaping. The quoted form of any bytes is one line of printable, well-formed text, and
// every byte is consumed exactly once.
#include <lib/escape.h>
#include <lib/must.h>

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_visible(const char *text, size_t size) {
	for (size_t i = 0; i < size; i++) {
		must((unsigned char)text[i] >= 0x20);
		must(text[i] != 0x7f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *text = (const char *)data;
	struct escape_unit unit;
	struct escape_unit again;
	char quoted[64];

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		must(unit.taken_bytes >= 1 && unit.taken_bytes <= size - at);
		check_visible(unit.text, unit.text_size);
		if (unit.text[0] == '\\' || unit.text_size == 1)
			continue;
		// A character that passed as UTF-8 must pass again.
		escape_next(unit.text, unit.text_size, &again);
		must(again.text_size == unit.text_size);
	}
	escape_quote(text, size, quoted, sizeof(quoted));
	must(strlen(quoted) < sizeof(quoted));
	check_visible(quoted, strlen(quoted));
	return 0;
}
