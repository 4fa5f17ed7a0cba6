// SPDX-License-Identifier: BSD-3-Clause
// Fields of a line, separated by blanks.
#include <lib/fields.h>
#include <lib/parse.h>

#include <string.h>

#define BLANKS " \t"
#define WHOLE_MAX 99999

bool field_next(const char **at, const char **ret_word, size_t *ret_size) {
	const char *word = *at + strspn(*at, BLANKS);
	size_t size = strcspn(word, BLANKS "\n");

	if (size == 0)
		return false;
	*ret_word = word;
	*ret_size = size;
	*at = word + size;
	return true;
}

bool field_match_word(const char **at, const char *word) {
	const char *next = *at, *found;
	size_t size;

	if (!field_next(&next, &found, &size) || size != strlen(word) ||
	    memcmp(found, word, size) != 0)
		return false;
	*at = next;
	return true;
}

bool field_read_text(const char **at, char *text, size_t size) {
	const char *next = *at, *found;
	size_t length;

	if (!field_next(&next, &found, &length) || length >= size)
		return false;
	memcpy(text, found, length);
	text[length] = '\0';
	*at = next;
	return true;
}

bool field_read_u64(const char **at, uint64_t max, uint64_t *ret_value) {
	const char *next = *at, *found;
	size_t length;

	if (!field_next(&next, &found, &length) ||
	    parse_u64(found, length, 0, max, NULL, ret_value) != 0)
		return false;
	*at = next;
	return true;
}

static bool is_digits(const char *text, size_t length) {
	for (size_t n = 0; n < length; n++) {
		if (text[n] < '0' || text[n] > '9')
			return false;
	}
	return length > 0;
}

bool thousandths_parse(const char *text, size_t length, uint32_t *ret_thousandths) {
	const char *point = memchr(text, '.', length);
	size_t whole = point != NULL ? (size_t)(point - text) : length;
	size_t digits = point != NULL ? length - whole - 1 : 0;
	uint64_t value, part = 0;

	if (!is_digits(text, whole) || parse_u64(text, whole, 0, WHOLE_MAX, NULL, &value) != 0)
		return false;
	if (point != NULL && (digits > 3 || !is_digits(point + 1, digits)))
		return false;
	for (size_t n = 0; n < 3; n++)
		part = part * 10 + (n < digits ? (uint64_t)(point[1 + n] - '0') : 0);
	*ret_thousandths = (uint32_t)(value * 1000 + part);
	return true;
}
