// SPDX-License-Identifier: BSD-3-Clause
// The root helper's end: orders from an agent that is not trusted.
#include "loop/spawn_inside.h"

#include <string.h>

bool spawn_order_is_valid(const void *record, size_t size) {
	struct spawn_order_head head;
	const char *name;
	size_t name_bytes;

	if (size < sizeof(head))
		return false;
	memcpy(&head, record, sizeof(head));
	if (head.protocol != SPAWN_PROTOCOL)
		return false;
	if (head.order == SPAWN_ORDER_CANCEL)
		return size == sizeof(head);
	if (head.order != SPAWN_ORDER_RUN || head.has_input > 1 ||
	    head.timeout_ns > SPAWN_NAMED_TIMEOUT_NS_MAX ||
	    head.output_max > SPAWN_OUTPUT_BYTES_MAX || head.input_bytes > SPAWN_INPUT_BYTES_MAX ||
	    (head.has_input == 0 && head.input_bytes > 0) ||
	    head.input_bytes >= size - sizeof(head))
		return false;
	// The rest is one string.
	name = (const char *)record + sizeof(head) + head.input_bytes;
	name_bytes = size - sizeof(head) - head.input_bytes;
	return memchr(name, '\0', name_bytes) == name + name_bytes - 1;
}

void spawn_serve_named(int fd, spawn_find_fn *find, void *ctx) {
	static struct spawn_catalog catalog;

	catalog = (struct spawn_catalog){find, ctx};
	spawn_helper_main(fd, &catalog);
}
