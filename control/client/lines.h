// SPDX-License-Identifier: BSD-3-Clause
// Cuts the bytes of a client into lines.
#pragma once

#include <control/client.h>

#include <stddef.h>

struct lines {
	size_t used;
	char bytes[CLIENT_LINE_BYTES_MAX];
};

// Return the place for the next bytes, and its size. The size is 0 only if a line is too long or
// waits to be consumed.
void *lines_room(struct lines *lines, size_t *ret_size);
void lines_filled(struct lines *lines, size_t size);

// Consume the next line, without its end. As in NCCL, a NUL ends the line. Returns 0, -EAGAIN
// (incomplete line) or -EMSGSIZE (line too long).
int lines_next(struct lines *lines, char ret_line[static CLIENT_LINE_BYTES_MAX]);
