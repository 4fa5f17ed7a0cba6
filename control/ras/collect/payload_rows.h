// SPDX-License-Identifier: BSD-3-Clause
// A table that grows by rows and is then settled: sorted, and of rows with one key the first
// kept. The merge of whatever order of parts is the same, since only the set of rows counts.
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
// -ENOMEM, or -ENOSPC past RAS_MERGE_BYTES_MAX.
int payload_rows_add(struct payload_rows *rows, const void *row);
// `compare` orders the rows totally; of a run for which `same` says 0 only the first stays.
// Returns how many were removed.
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
