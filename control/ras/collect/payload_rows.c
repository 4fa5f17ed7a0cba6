// SPDX-License-Identifier: BSD-3-Clause
// Growing table of merged rows, sorted and without duplicates.
#include "collect/payload_rows.h"

#include <lib/sort.h>
#include <ras/payload.h>

#include <errno.h>
#include <string.h>

#define ROWS_FIRST 16

void payload_rows_init(
	struct payload_rows *rows, const struct ras_memory *memory, size_t row_bytes
) {
	*rows = (struct payload_rows){.memory = *memory, .row_bytes = row_bytes};
}

void payload_rows_fini(struct payload_rows *rows) {
	if (rows->rows != NULL)
		rows->memory.release(
			rows->memory.ctx, rows->rows, rows->capacity * rows->row_bytes
		);
	rows->rows = NULL;
	rows->count = 0;
	rows->capacity = 0;
}

int payload_rows_add(struct payload_rows *rows, const void *row) {
	if (rows->count == rows->capacity) {
		uint32_t capacity = rows->capacity > 0 ? rows->capacity * 2 : ROWS_FIRST;
		size_t size = capacity * rows->row_bytes;
		uint8_t *grown;

		if (size > RAS_MERGE_BYTES_MAX)
			return -ENOSPC;
		grown = rows->memory.allocate(rows->memory.ctx, size);
		if (grown == NULL)
			return -ENOMEM;
		if (rows->rows != NULL) {
			memcpy(grown, rows->rows, rows->count * rows->row_bytes);
			rows->memory.release(
				rows->memory.ctx, rows->rows, rows->capacity * rows->row_bytes
			);
		}
		rows->rows = grown;
		rows->capacity = capacity;
	}
	memcpy(payload_rows_at(rows, rows->count), row, rows->row_bytes);
	rows->count++;
	return 0;
}

uint32_t payload_rows_settle(
	struct payload_rows *rows,
	int (*compare)(const void *a, const void *b),
	int (*same)(const void *a, const void *b)
) {
	uint32_t kept = 0;
	uint32_t removed;

	sort_rows(rows->rows, rows->count, rows->row_bytes, compare);
	for (uint32_t n = 0; n < rows->count; n++) {
		const void *row = payload_rows_at(rows, n);

		if (kept > 0 && same(payload_rows_at(rows, kept - 1), row) == 0)
			continue;
		if (kept != n)
			memcpy(payload_rows_at(rows, kept), row, rows->row_bytes);
		kept++;
	}
	removed = rows->count - kept;
	rows->count = kept;
	return removed;
}
