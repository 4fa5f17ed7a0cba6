// SPDX-License-Identifier: BSD-3-Clause
// Functions shared by all pages.
#include "report/page_parts.h"

#include "report/output.h"

#include <jansson.h>

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

int page_save(struct page *page, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file), written;

	if (err != 0)
		return err;
	written = page_write(page, file);
	err = output_close(path, file, why);
	return err == 0 && written != 0
		       ? lab_fail(why, written, "%s: %s", path, strerrordesc_np(-written))
		       : err;
}

void page_facts(struct page *page, const char *heading, const json_t *object) {
	const char *const columns[] = {heading, ""};
	void *at = json_object_iter((json_t *)object);

	page_table_begin(page, columns, 2);
	for (; at != NULL; at = json_object_iter_next((json_t *)object, at)) {
		const json_t *value = json_object_iter_value(at);
		char number[PAGE_CELL_BYTES] = "not known";
		const char *cells[2] = {json_object_iter_key(at), number};

		if (json_is_string(value))
			cells[1] = json_string_value(value);
		else if (json_is_integer(value))
			snprintf(
				number, sizeof(number), "%" JSON_INTEGER_FORMAT,
				json_integer_value(value)
			);
		else if (json_is_number(value))
			snprintf(number, sizeof(number), "%g", json_number_value(value));
		else if (json_is_boolean(value))
			cells[1] = json_is_true(value) ? "yes" : "no";
		else if (!json_is_null(value))
			continue;
		page_table_row(page, cells, 2);
	}
	page_table_end(page);
}
