// SPDX-License-Identifier: BSD-3-Clause
// An answer of rows, said in steps: an array of one object.
#pragma once

#include "client/session.h"

struct listing_ops {
	const char *key; // of the array
	// Members before it; NULL for none.
	json_t *(*facts)(struct session *session, void *work);
	// What a row speaks of may be gone by now: it is null then, and left out.
	json_t *(*row_json)(struct session *session, void *work, uint32_t n);
	// A second array behind the first, over the same rows; may be NULL. So an answer grows
	// without another row for those who know the rows alone.
	const char *more_key;
	json_t *(*more_json)(struct session *session, void *work, uint32_t n);
};

// Begins the work of a command, which begins with this.
struct listing {
	const struct listing_ops *ops;
	uint32_t count;
	uint32_t next;
	bool begun;
	bool any;  // row in the array
	bool more; // in the second array
};

// A session_step_fn.
bool listing_step(struct session *session);
