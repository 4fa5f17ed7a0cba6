// SPDX-License-Identifier: BSD-3-Clause
// Which drains are ours: what we wrote, exactly as the scheduler has it since, who it says gave it
// and when. Only such a drain is taken back. A drain that no record holds is nobody's, whatever its
// reason looks like: of an earlier version, of a record that was lost, or a person's who wrote as
// we do.
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
	// Who gave it and when, as the scheduler tells it; "": it was about to be drained so, and
	// whether it was is not known yet.
	char stamp[DRAIN_STAMP_MAX + 1];
};

struct drain_record {
	struct drain_row *rows; // by node
	size_t count;
};

// A file that is not there is a record of nothing. -errno, -EBADMSG if it is no such record; why in
// words: then nothing is known to be ours.
int drain_record_read(
	const char *file, struct drain_record *ret_record, char ret_why[static DRAIN_WHY_BYTES]
);
void drain_record_free(struct drain_record *record);

// NULL: there is none of it.
const struct drain_row *drain_record_find(const struct drain_record *record, const char *node);
// Every word of it is as we left it; a reason without its time and giver is never.
bool drain_record_holds(
	const struct drain_record *record, const char *node, const char *reason, const char *stamp
);

// Whether a row stays; for those that are no longer true.
typedef bool drain_keep_fn(void *ctx, const struct drain_row *row);

// Reads the file anew, drops the rows that `keep` does not want (NULL: keeps all), puts `row` in
// the place of its node's (NULL: none), and replaces the file if that changed anything. Others who
// do the same wait meanwhile. 0 or -errno, why in words, and the file is as it was.
int drain_record_change(
	const char *file,
	drain_keep_fn *keep,
	void *keep_ctx,
	const struct drain_row *row,
	char ret_why[static DRAIN_WHY_BYTES]
);
