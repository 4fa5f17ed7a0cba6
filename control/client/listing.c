// SPDX-License-Identifier: BSD-3-Clause
// Writes a long answer in steps, so that it does not block the loop.
#include "client/listing.h"

static void listing_begin(struct session *session, struct listing *listing) {
	const struct listing_ops *ops = listing->ops;
	json_t *facts;

	listing->begun = true;
	facts = ops->facts != NULL ? ops->facts(session, listing) : json_object();
	session_add_schema(facts);
	text_add_json(&session->out, facts);
	if (session->out.failed)
		return;
	session->out.end--; // drop the closing brace, which is written after the rows
	if (session->out.data[session->out.end - 1] != '{')
		text_add(&session->out, ",", 1);
	text_print(&session->out, "\"%s\":[", ops->key);
}

static void add_row(struct session *session, struct listing *listing) {
	json_t *row;

	row = (listing->more ? listing->ops->more_json : listing->ops->row_json
	)(session, listing, listing->next);
	if (json_is_null(row))
		return;
	if (listing->any)
		text_add(&session->out, ",", 1);
	listing->any = true;
	text_add_json(&session->out, row);
}

bool listing_step(struct session *session) {
	struct listing *listing = session->work;
	uint32_t rows = 0;

	if (!listing->begun)
		listing_begin(session, listing);
	while (listing->next < listing->count && rows++ < SESSION_STEP_ROWS &&
	       text_size(&session->out) < SESSION_STEP_BYTES) {
		add_row(session, listing);
		listing->next++;
	}
	if (listing->next < listing->count)
		return false;
	if (listing->ops->more_json != NULL && !listing->more) {
		text_print(&session->out, "],\"%s\":[", listing->ops->more_key);
		listing->more = true;
		listing->any = false;
		listing->next = 0;
		return false;
	}
	text_print(&session->out, "]}\n");
	return true;
}
