// SPDX-License-Identifier: BSD-3-Clause
// Files of the state directory. These functions may wait for a disk.
#pragma once

#include <control/state.h>

#include <stddef.h>
#include <stdint.h>

#define STATE_LINE_BYTES_MAX 2048

// Write "WHAT PATH: why" to `detail`. Returns err.
int state_detail(
	char detail[static STATE_DETAIL_BYTES], const char *what, const char *path, int err
);
// Create and open the directory, and take its lock, but not on a read-only file system. Fails as
// state_open() does; *ret_directory may be open then.
int state_directory_open(
	const char *path,
	char ret_detail[static STATE_DETAIL_BYTES],
	int *ret_directory,
	int *ret_lock
);

// Replace the file `name` as a whole, or leave it as it was. Returns 0 or -errno.
int state_file_replace(int directory, const char *name, const char *text);
// Read at most size - 1 bytes and terminate them. Returns 0, -EMSGSIZE, or -errno.
int state_file_read(int directory, const char *name, char *text, size_t size);

// Read the last STATE_EARLIER_MAX events of the journal, oldest first. Unreadable lines are logged.
// Returns 0 or -ENOMEM. The caller frees the events.
int state_earlier_read(int directory, struct state_event **ret_events, uint32_t *ret_count);

// Format one event as a line with its newline. Returns the length, or -EMSGSIZE.
int state_line_format(const struct state_event *event, char *line, size_t size);
// Parse a line of the journal. Returns 0, or -EBADMSG if it is invalid.
int state_line_parse(const char *line, size_t size, struct state_event *ret_event);
