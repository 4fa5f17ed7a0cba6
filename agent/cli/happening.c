// SPDX-License-Identifier: BSD-3-Clause
#include "happening.h"

#include "paint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODE_COLUMNS 18
#define DETAIL_COLUMNS 32
#define WHOLE_COLUMNS 500 // as much as a cell holds
#define CELL_BYTES 512

const char happening_head[] =
	" NUMBER TIME                     EVENT          NODE               DETAIL";

// Escaped and cut to its column, a "~" where something is missing; blanks up to its width.
static void
cell(const json_t *event, const char *key, size_t columns, char out[static CELL_BYTES]) {
	const char *text = json_string_value(json_object_get(event, key));
	char longer[CELL_BYTES];

	if (text == NULL || text[0] == '\0')
		text = "-";
	paint_escape(text, columns, out, CELL_BYTES);
	paint_escape(text, columns + 1, longer, sizeof(longer));
	if (strlen(longer) > strlen(out)) {
		paint_escape(text, columns - 1, out, CELL_BYTES - 1);
		memcpy(out + strlen(out), "~", 2);
	}
}

const char *happening_name(const json_t *event) {
	const char *name = json_string_value(json_object_get(event, "event"));

	return name != NULL ? name : "";
}

int64_t happening_sequence(const json_t *event) {
	return json_integer_value(json_object_get(event, "sequence"));
}

const char *happening_words(const json_t *event) {
	const char *text = json_string_value(json_object_get(event, "text"));

	return text != NULL ? text : "";
}

void happening_line(const json_t *event, bool whole, char line[static HAPPENING_BYTES]) {
	char time[CELL_BYTES], name[CELL_BYTES], node[CELL_BYTES], detail[CELL_BYTES];

	cell(event, "time", 24, time);
	cell(event, "event", 14, name);
	cell(event, "node", whole ? WHOLE_COLUMNS : NODE_COLUMNS, node);
	cell(event, "detail", whole ? WHOLE_COLUMNS : DETAIL_COLUMNS, detail);
	snprintf(
		line, HAPPENING_BYTES, "%7" PRId64 " %-24s %-14s %-18s %s",
		happening_sequence(event), time, name, node, detail
	);
}

bool happening_matters(const json_t *event) {
	static const char *const daily[] = {"CLOCK_", "LINK_", "DIVERGED"};
	const char *name = happening_name(event);

	for (size_t n = 0; n < sizeof(daily) / sizeof(daily[0]); n++) {
		if (strncmp(name, daily[n], strlen(daily[n])) == 0)
			return strcmp(name, "LINK_STUCK") == 0;
	}
	return true;
}
