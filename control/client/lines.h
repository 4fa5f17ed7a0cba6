// SPDX-License-Identifier: BSD-3-Clause
// Bytes of a client, cut into lines.
#pragma once

#include <control/client.h>

#include <stddef.h>

struct lines {
	size_t used;
	char bytes[CLIENT_LINE_BYTES_MAX];
};

// Where the next bytes go, and how many there is room for: 0 only if a line is too long or
// waits to be taken.
void *lines_room(struct lines *lines, size_t *ret_size);
void lines_filled(struct lines *lines, size_t size);

// Takes the next line, without its end and cut at a NUL as the seed cuts it. Returns 0,
// -EAGAIN (more is needed), or -EMSGSIZE (no line can be so long).
int lines_take(struct lines *lines, char ret_line[static CLIENT_LINE_BYTES_MAX]);
