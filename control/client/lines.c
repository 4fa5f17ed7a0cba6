// SPDX-License-Identifier: BSD-3-Clause
// Takes whole lines out of a buffer of received bytes.
#include "client/lines.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

void *lines_room(struct lines *lines, size_t *ret_size) {
	*ret_size = sizeof(lines->bytes) - lines->used;
	return lines->bytes + lines->used;
}

void lines_filled(struct lines *lines, size_t size) {
	must(size <= sizeof(lines->bytes) - lines->used);
	lines->used += size;
}

int lines_take(struct lines *lines, char ret_line[static CLIENT_LINE_BYTES_MAX]) {
	const char *end = memchr(lines->bytes, '\n', lines->used);
	size_t length;
	size_t taken;

	if (end == NULL)
		return lines->used == sizeof(lines->bytes) ? -EMSGSIZE : -EAGAIN;
	length = (size_t)(end - lines->bytes);
	taken = length + 1;
	if (length > 0 && lines->bytes[length - 1] == '\r')
		length--;
	memcpy(ret_line, lines->bytes, length);
	ret_line[length] = '\0';
	lines->used -= taken;
	memmove(lines->bytes, lines->bytes + taken, lines->used);
	return 0;
}
