// SPDX-License-Identifier: BSD-3-Clause
// The files of the state directory, read and written by whoever may wait for a disk.
#pragma once

#include <control/state.h>

#include <stddef.h>
#include <stdint.h>

#define STATE_LINE_BYTES_MAX 2048

// "WHAT PATH: why"; returns err.
int state_detail(
	char detail[static STATE_DETAIL_BYTES], const char *what, const char *path, int err
);
// Makes and opens the directory, and takes its lock, which is not touched on a file system that may
// only be read. As state_open() fails; *ret_directory may be open then.
int state_directory_open(
	const char *path,
	char ret_detail[static STATE_DETAIL_BYTES],
	int *ret_directory,
	int *ret_lock
);

// Replaces the file `name` by a new one that is complete or not there. 0 or -errno.
int state_file_replace(int directory, const char *name, const char *text);
// At most size - 1 bytes, terminated. 0, -EMSGSIZE, or -errno.
int state_file_read(int directory, const char *name, char *text, size_t size);

// The last STATE_EARLIER_MAX events of the journal, oldest first; lines that cannot be read are
// logged. 0 or -ENOMEM; the caller frees them.
int state_earlier_read(int directory, struct state_event **ret_events, uint32_t *ret_count);

// One event as one line, newline included. The length, or -EMSGSIZE.
int state_line_format(const struct state_event *event, char *line, size_t size);
// -EBADMSG if it is no such line.
int state_line_parse(const char *line, size_t size, struct state_event *ret_event);
