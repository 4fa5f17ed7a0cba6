// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes an order to the root helper. An accepted order has bounded lengths, and its name ends with
// the record.
#include "loop/spawn_inside.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	// A copy of the exact size, so that a sanitizer sees a read past the end.
	uint8_t *record = calloc(1, size + (size == 0));
	struct spawn_order_head head;

	must(record != NULL);
	if (size > 0)
		memcpy(record, data, size);
	if (spawn_order_is_valid(record, size)) {
		must(size >= sizeof(head));
		memcpy(&head, record, sizeof(head));
		if (head.order == SPAWN_ORDER_RUN) {
			const char *name = (const char *)record + sizeof(head) + head.input_bytes;

			must(head.input_bytes <= SPAWN_INPUT_BYTES_MAX);
			must(head.output_max <= SPAWN_OUTPUT_BYTES_MAX);
			must(sizeof(head) + head.input_bytes + strlen(name) + 1 == size);
		}
	}
	free(record);
	return 0;
}
