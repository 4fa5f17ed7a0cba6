// SPDX-License-Identifier: BSD-3-Clause
// Writes a long answer in steps, so that it does not block the loop.
#include "client/listing.h"

bool listing_step(struct session *session) {
	struct listing *listing = session->work;
	const struct listing_ops *ops = listing->ops;
	struct text *out = &session->out;
	json_t *facts, *row;
	uint32_t rows = 0;

	if (!listing->begun) {
		listing->begun = true;
		facts = ops->facts != NULL ? ops->facts(session, listing) : json_object();
		session_add_schema(facts);
		text_add_json(out, facts);
		if (!out->failed) {
			out->end--; // drop the closing brace, which is written after the rows
			if (out->data[out->end - 1] != '{')
				text_add(out, ",", 1);
			text_print(out, "\"%s\":[", ops->key);
		}
	}
	while (listing->next < listing->count && rows++ < SESSION_STEP_ROWS &&
	       text_size(out) < SESSION_STEP_BYTES) {
		row = (listing->more ? ops->more_json : ops->row_json
		)(session, listing, listing->next);
		listing->next++;
		if (json_is_null(row))
			continue;
		if (listing->any)
			text_add(out, ",", 1);
		listing->any = true;
		text_add_json(out, row);
	}
	if (listing->next < listing->count)
		return false;
	if (ops->more_json != NULL && !listing->more) {
		text_print(out, "],\"%s\":[", ops->more_key);
		listing->more = true;
		listing->any = false;
		listing->next = 0;
		return false;
	}
	text_print(out, "]}\n");
	return true;
}
