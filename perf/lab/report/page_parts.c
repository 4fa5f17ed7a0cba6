// SPDX-License-Identifier: BSD-3-Clause
// Functions shared by all pages.
#include "report/page_parts.h"

#include "report/output.h"

#include <lib/scoped.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <page.h>
#include <stdio.h>
#include <string.h>

const char *page_member_text(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

void page_format_us(double value_ns, char text[static PAGE_CELL_BYTES]) {
	double us = value_ns / 1e3;

	snprintf(text, PAGE_CELL_BYTES, "%.*f", us < 1 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0, us);
}

json_t *page_text(const char *text) {
	json_t *json = json_string(text);
	scoped_mem char *copy = json == NULL ? strdup(text) : NULL;

	for (char *at = copy; at != NULL && *at != '\0'; at++) {
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	}
	return json != NULL || copy == NULL ? json : json_string(copy);
}

json_t *page_number(double value) {
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *page_numbers(const double *values, uint32_t count) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < count; n++)
		failed |= json_array_append_new(array, page_number(values[n]));
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

int page_thin_member(json_t *object, const char *key, const char *without) {
	json_t *copy = json_copy(json_object_get(object, key));

	if (copy == NULL)
		return json_object_get(object, key) == NULL ? 0 : -1;
	(void)json_object_del(copy, without);
	return json_object_set_new(object, key, copy);
}

int page_save(struct page *page, json_t *json, const char *path, struct lab_why *why) {
	FILE *file;
	int err = json == NULL ? lab_fail(why, -ENOMEM, "no memory for the page")
			       : output_open(path, why, &file);
	int written;

	if (err == 0) {
		page->json = json;
		written = page_write(page, file);
		err = output_close(path, file, why);
		if (err == 0 && written != 0)
			err = lab_fail(why, written, "%s: %s", path, strerrordesc_np(-written));
	}
	json_decref(json);
	return err;
}
