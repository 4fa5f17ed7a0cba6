// SPDX-License-Identifier: BSD-3-Clause
// Stores on disk which nodes Tocsin drained in Slurm, with the exact reason, user and time.
#include "slurm/drain_record.h"

#include "replace.h"

#include <lib/scoped.h>

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define VERSION 1
#define FILE_BYTES_MAX ((size_t)128 << 20)
#define LOCK_TRIES 40 // bounded, so that a hanging lock holder cannot prevent drains
#define LOCK_PAUSE_NS 50000000L

static int record_set_error(char *ret_why, const char *file, int err, const char *words) {
	snprintf(ret_why, DRAIN_WHY_BYTES, "%.120s: %s", file, words);
	return err;
}

static int compare_rows(const void *a, const void *b) {
	return strcmp(((const struct drain_row *)a)->node, ((const struct drain_row *)b)->node);
}

// Copy a text member. Returns false if it is missing, or longer than any text that this program
// writes.
static bool row_copy_text(const json_t *row, const char *key, char *text, size_t size) {
	const char *value = json_string_value(json_object_get(row, key));

	if (value == NULL || strlen(value) >= size)
		return false;
	memcpy(text, value, strlen(value) + 1);
	return true;
}

static int record_read_rows(const json_t *whole, struct drain_record *ret_record) {
	const json_t *rows = json_object_get(whole, "drains");
	struct drain_record record = {0};

	if (json_integer_value(json_object_get(whole, "version")) != VERSION ||
	    !json_is_array(rows) || json_array_size(rows) > DRAIN_ROWS_MAX)
		return -EBADMSG;
	// One spare row for drain_record_change().
	record.rows = calloc(json_array_size(rows) + 1, sizeof(*record.rows));
	if (record.rows == NULL)
		return -ENOMEM;
	for (size_t n = 0; n < json_array_size(rows); n++) {
		const json_t *from = json_array_get(rows, n);
		struct drain_row *row = &record.rows[record.count++];

		if (!row_copy_text(from, "node", row->node, sizeof(row->node)) ||
		    !row_copy_text(from, "reason", row->reason, sizeof(row->reason)) ||
		    !row_copy_text(from, "stamp", row->stamp, sizeof(row->stamp)) ||
		    row->node[0] == '\0') {
			free(record.rows);
			return -EBADMSG;
		}
	}
	qsort(record.rows, record.count, sizeof(*record.rows), compare_rows);
	*ret_record = record;
	return 0;
}

int drain_record_read(
	const char *file, struct drain_record *ret_record, char ret_why[static DRAIN_WHY_BYTES]
) {
	// O_NONBLOCK: opening a pipe would hang.
	scoped_fd int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	json_t *whole;
	off_t size;
	int err;

	if (fd < 0 && errno == ENOENT) {
		*ret_record = (struct drain_record){0};
		return 0;
	}
	size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (size < 0 || lseek(fd, 0, SEEK_SET) != 0) {
		err = -errno;
	} else if ((size_t)size > FILE_BYTES_MAX) {
		err = -EFBIG;
	} else {
		whole = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
		err = whole != NULL ? record_read_rows(whole, ret_record) : -EBADMSG;
		json_decref(whole);
	}
	if (err == 0)
		return 0;
	return record_set_error(
		ret_why, file, err,
		err == -EBADMSG ? "it is not a record of drains" : strerrordesc_np(-err)
	);
}

void drain_record_free(struct drain_record *record) {
	free(record->rows);
	*record = (struct drain_record){0};
}

const struct drain_row *drain_record_find(const struct drain_record *record, const char *node) {
	struct drain_row key;

	if (record->count == 0 || strlen(node) >= sizeof(key.node))
		return NULL;
	memcpy(key.node, node, strlen(node) + 1);
	return bsearch(&key, record->rows, record->count, sizeof(*record->rows), compare_rows);
}

bool drain_record_holds(
	const struct drain_record *record, const char *node, const char *reason, const char *stamp
) {
	const struct drain_row *row = drain_record_find(record, node);

	return row != NULL && reason[0] != '\0' && stamp[0] != '\0' &&
	       strcmp(row->reason, reason) == 0 && strcmp(row->stamp, stamp) == 0;
}

static json_t *drain_row_json(const struct drain_row *row) {
	return json_pack(
		"{s:s,s:s,s:s}", "node", row->node, "reason", row->reason, "stamp", row->stamp
	);
}

static void write_record(FILE *out, const void *what) {
	const struct drain_record *record = what;
	const char *before = "\n";

	fprintf(out, "{\"version\": %d, \"drains\": [", VERSION);
	for (size_t n = 0; n < record->count; n++) {
		json_t *text = drain_row_json(&record->rows[n]);

		if (text == NULL)
			continue; // out of memory: the drain is no longer recorded as ours
		fputs(before, out);
		before = ",\n";
		json_dumpf(text, out, JSON_COMPACT | JSON_ENSURE_ASCII);
		json_decref(text);
	}
	fputs("\n]}\n", out);
}

static int record_put_row(struct drain_record *record, const struct drain_row *row) {
	json_t *text = drain_row_json(row);

	if (text == NULL)
		return -EILSEQ; // not UTF-8
	json_decref(text);
	if (record->count >= DRAIN_ROWS_MAX)
		return -E2BIG;
	if (record->rows == NULL)
		record->rows = calloc(1, sizeof(*record->rows));
	if (record->rows == NULL)
		return -ENOMEM;
	// A row is free: either one was dropped, or the spare row of record_read_rows().
	record->rows[record->count++] = *row;
	qsort(record->rows, record->count, sizeof(*record->rows), compare_rows);
	return 0;
}

// Lock a file next to the record. The record itself is replaced, so a lock on it would be lost.
static int record_lock(const char *file, int *ret_fd) {
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s.lock", file);
	int fd;

	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
		const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
		int err = -errno;

		if (tries < LOCK_TRIES && (err == -EWOULDBLOCK || err == -EINTR)) {
			nanosleep(&pause, NULL);
			continue;
		}
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

int drain_record_change(
	const char *file,
	drain_keep_fn *keep,
	void *keep_ctx,
	const struct drain_row *row,
	char ret_why[static DRAIN_WHY_BYTES]
) {
	scoped_fd int held = -1;
	struct drain_record record = {0};
	size_t kept = 0;
	bool changed;
	int err = record_lock(file, &held);

	if (err != 0)
		return record_set_error(ret_why, file, err, strerrordesc_np(-err));
	err = drain_record_read(file, &record, ret_why);
	if (err != 0)
		return err;
	for (size_t n = 0; n < record.count; n++) {
		const struct drain_row *old = &record.rows[n];

		if ((row == NULL || strcmp(old->node, row->node) != 0) &&
		    (keep == NULL || keep(keep_ctx, old)))
			record.rows[kept++] = *old;
	}
	changed = kept != record.count;
	record.count = kept;
	if (row != NULL) {
		err = record_put_row(&record, row);
		changed = true;
	}
	if (err == 0 && changed)
		err = replace_file(file, write_record, &record);
	drain_record_free(&record);
	return err == 0 ? 0 : record_set_error(ret_why, file, err, replace_error_text(err));
}
