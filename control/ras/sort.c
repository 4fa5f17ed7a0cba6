// SPDX-License-Identifier: BSD-3-Clause
#include "sort.h"

#include <stdint.h>
#include <string.h>

struct heap {
	uint8_t *rows;
	size_t row_bytes;
	int (*compare)(const void *a, const void *b);
};

static uint8_t *row_at(const struct heap *heap, size_t n) {
	return heap->rows + n * heap->row_bytes;
}

static void swap(const struct heap *heap, size_t a, size_t b) {
	uint8_t *left = row_at(heap, a);
	uint8_t *right = row_at(heap, b);
	uint8_t held[64];

	for (size_t at = 0; at < heap->row_bytes; at += sizeof(held)) {
		size_t size = heap->row_bytes - at;

		if (size > sizeof(held))
			size = sizeof(held);
		memcpy(held, left + at, size);
		memcpy(left + at, right + at, size);
		memcpy(right + at, held, size);
	}
}

static void sift(const struct heap *heap, size_t parent, size_t count) {
	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			return;
		if (child + 1 < count &&
		    heap->compare(row_at(heap, child), row_at(heap, child + 1)) < 0)
			child++;
		if (heap->compare(row_at(heap, parent), row_at(heap, child)) >= 0)
			return;
		swap(heap, parent, child);
		parent = child;
	}
}

void sort_rows(
	void *rows, size_t count, size_t row_bytes, int (*compare)(const void *a, const void *b)
) {
	struct heap heap = {.rows = rows, .row_bytes = row_bytes, .compare = compare};

	for (size_t n = count / 2; n > 0; n--)
		sift(&heap, n - 1, count);
	for (size_t last = count; last > 1; last--) {
		swap(&heap, 0, last - 1);
		sift(&heap, 0, last - 1);
	}
}
