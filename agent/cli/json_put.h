// SPDX-License-Identifier: BSD-3-Clause
// Building of JSON answers with one check at the end.
#pragma once

#include <lib/escape.h>

#include <jansson.h>

#include <stdbool.h>
#include <string.h>

// Add a member to an object. jansson takes the new reference even if it fails. The object is then
// incomplete, and *failed is set.
static inline void json_put(json_t *object, const char *key, json_t *value, bool *failed) {
	if (json_object_set_new(object, key, value) != 0)
		*failed = true;
}

static inline void json_append(json_t *array, json_t *value, bool *failed) {
	if (json_array_append_new(array, value) != 0)
		*failed = true;
}

// Return text of a user, the kernel or a driver as JSON; NULL becomes null. Text that is not UTF-8
// is escaped.
static inline json_t *string_json(const char *text) {
	char quoted[1024];
	json_t *string;

	if (text == NULL)
		return json_null();
	string = json_string(text);
	if (string != NULL)
		return string;
	escape_quote(text, strlen(text), quoted, sizeof(quoted));
	return json_string(quoted);
}
