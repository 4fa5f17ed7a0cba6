// SPDX-License-Identifier: BSD-3-Clause
// Record of the drains that Tocsin made: the reason as Slurm reports it, and who set it when. Only
// a recorded drain is undone. A drain that is not recorded belongs to nobody, even with a similar
// reason. It may come from an earlier version, a lost record, or a person.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DRAIN_NODE_MAX 255
#define DRAIN_REASON_MAX 511
#define DRAIN_STAMP_MAX 127
#define DRAIN_ROWS_MAX 100000
#define DRAIN_WHY_BYTES 256

struct drain_row {
	char node[DRAIN_NODE_MAX + 1];
	char reason[DRAIN_REASON_MAX + 1];
	// User and time of the reason as Slurm reports them. "": the drain was about to be made,
	// and its success is unknown.
	char stamp[DRAIN_STAMP_MAX + 1];
};

struct drain_record {
	struct drain_row *rows; // sorted by node
	size_t count;
};

// Read the record; a missing file is an empty record. Returns 0, or -errno with a reason in
// ret_why; -EBADMSG if the content is invalid. After an error no drain counts as ours.
int drain_record_read(
	const char *file, struct drain_record *ret_record, char ret_why[static DRAIN_WHY_BYTES]
);
void drain_record_free(struct drain_record *record);

// Return the row of a node, or NULL.
const struct drain_row *drain_record_find(const struct drain_record *record, const char *node);
// Return true if reason and stamp equal the recorded ones exactly. An empty reason or stamp never
// matches.
bool drain_record_holds(
	const struct drain_record *record, const char *node, const char *reason, const char *stamp
);

// Return true if a row stays.
typedef bool drain_keep_fn(void *ctx, const struct drain_row *row);

// Change the record under a lock. Read the file again and drop the rows that `keep` rejects (NULL:
// keep all). Then replace the row of row->node by `row` (NULL: none). The file is replaced only if
// something changed. Returns 0, or -errno with a reason and the file unchanged.
int drain_record_change(
	const char *file,
	drain_keep_fn *keep,
	void *keep_ctx,
	const struct drain_row *row,
	char ret_why[static DRAIN_WHY_BYTES]
);
