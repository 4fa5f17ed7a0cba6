// SPDX-License-Identifier: BSD-3-Clause
// A table that grows by rows and is then settled: sorted, and reduced to the first row of each key.
// The result depends on the set of rows only, not on the order in which they arrived.
#pragma once

#include <ras/memory.h>

#include <stddef.h>
#include <stdint.h>

struct payload_rows {
	struct ras_memory memory;
	uint8_t *rows;
	size_t row_bytes;
	uint32_t count, capacity;
};

void payload_rows_init(
	struct payload_rows *rows, const struct ras_memory *memory, size_t row_bytes
);
void payload_rows_fini(struct payload_rows *rows);
// Return 0, -ENOMEM, or -ENOSPC beyond RAS_MERGE_BYTES_MAX.
int payload_rows_add(struct payload_rows *rows, const void *row);
// Sort the rows by `compare`, a total order, and keep only the first of rows for which `same`
// returns 0. Returns the number of removed rows.
uint32_t payload_rows_settle(
	struct payload_rows *rows,
	int (*compare)(const void *a, const void *b),
	int (*same)(const void *a, const void *b)
);

static inline void *payload_rows_at(const struct payload_rows *rows, uint32_t n) {
	return rows->rows + (size_t)n * rows->row_bytes;
}

static inline int payload_compare_u64(uint64_t a, uint64_t b) {
	return (a > b) - (a < b);
}

static inline int payload_compare_i64(int64_t a, int64_t b) {
	return (a > b) - (a < b);
}
