// SPDX-License-Identifier: BSD-3-Clause
// An answer of many rows, written in steps: an object with an array.
#pragma once

#include "client/session.h"

struct listing_ops {
	const char *key; // key of the array
	// Returns the members before the array; NULL: none.
	json_t *(*facts)(struct session *session, void *work);
	// Returns one row. The row's subject may have disappeared by now; then it returns null and
	// the row is skipped.
	json_t *(*row_json)(struct session *session, void *work, uint32_t n);
	// A second array after the first, over the same rows; may be NULL. It extends an answer for
	// new clients while old ones still parse the rows.
	const char *more_key;
	json_t *(*more_json)(struct session *session, void *work, uint32_t n);
};

// State of a listing. Must be the first member of a command's work.
struct listing {
	const struct listing_ops *ops;
	uint32_t count;
	uint32_t next;
	bool begun;
	bool any;  // the current array has a row
	bool more; // the second array is being written
};

// A session_step_fn that writes the next rows.
bool listing_step(struct session *session);
