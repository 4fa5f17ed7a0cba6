// SPDX-License-Identifier: BSD-3-Clause
// Reads members of a JSON object that another program wrote.
#include <lib/fact.h>
#include <lib/must.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SEC 1e9
#define KEY_BYTES 32

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

// An answer of schema 1 has most durations in seconds: `for_s` instead of `for_ns`.
static bool read_seconds(const json_t *object, const char *key, uint64_t *ret_ns) {
	const json_t *value;
	char old[KEY_BYTES];
	double seconds;

	snprintf(old, sizeof(old), "%.*ss", (int)(strlen(key) - strlen("ns")), key);
	value = json_object_get(object, old);
	seconds = json_number_value(value);
	if (!json_is_number(value) || !isfinite(seconds))
		return false;
	*ret_ns = (uint64_t)llround(fmin(fmax(seconds, 0), UINT32_MAX) * NS_PER_SEC);
	return true;
}

bool fact_read_ns(const json_t *object, const char *key, uint64_t *ret_ns) {
	must(strlen(key) > strlen("_ns"));
	if (!json_is_integer(json_object_get(object, key)))
		return read_seconds(object, key, ret_ns);
	*ret_ns = fact_number(object, key);
	return true;
}

bool fact_duration(const json_t *object, const char *key, char text[static SHOW_BYTES]) {
	uint64_t duration_ns;
	bool known = fact_read_ns(object, key, &duration_ns);

	snprintf(text, SHOW_BYTES, "-");
	if (known)
		show_duration(duration_ns, text);
	return known;
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
