// SPDX-License-Identifier: BSD-3-Clause
// Reads members of a JSON object that another program wrote.
#include <lib/fact.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SEC 1e9

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
