// SPDX-License-Identifier: BSD-3-Clause
// Sorting of rows of any size in bounded time and without allocation.
#include <lib/sort.h>

#include <stdint.h>
#include <string.h>

#define HEAP_SORT_ROWS_MAX 16 // largest range that heap sort handles alone
#define WAITING_SPANS_MAX 64  // waiting ranges; at least log2 of the number of rows

struct heap {
	uint8_t *rows;
	size_t row_bytes;
	int (*compare)(const void *a, const void *b);
};

static uint8_t *row_at(const struct heap *heap, size_t n) {
	return heap->rows + n * heap->row_bytes;
}

static void heap_swap(const struct heap *heap, size_t a, size_t b) {
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

static void heap_sift(const struct heap *heap, size_t parent, size_t count) {
	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			return;
		if (child + 1 < count &&
		    heap->compare(row_at(heap, child), row_at(heap, child + 1)) < 0)
			child++;
		if (heap->compare(row_at(heap, parent), row_at(heap, child)) >= 0)
			return;
		heap_swap(heap, parent, child);
		parent = child;
	}
}

static void heap_sort(const struct heap *heap, size_t count) {
	for (size_t n = count / 2; n > 0; n--)
		heap_sift(heap, n - 1, count);
	for (size_t last = count; last > 1; last--) {
		heap_swap(heap, 0, last - 1);
		heap_sift(heap, 0, last - 1);
	}
}

static int rows_compare(const struct heap *heap, size_t a, size_t b) {
	return heap->compare(row_at(heap, a), row_at(heap, b));
}

// Partition the rows around a pivot. Returns the pivot's final index: no row before it is larger,
// no row after it is smaller.
static size_t heap_partition(const struct heap *heap, size_t count) {
	size_t low = 0, high = count, middle = count / 2, last = count - 1;

	// Move the median of first, middle and last row to the front as the pivot.
	if (rows_compare(heap, middle, last) > 0)
		heap_swap(heap, middle, last);
	// The larger of middle and last is now last. So the median is the larger of first and
	// middle, unless the first exceeds the last.
	if (rows_compare(heap, 0, last) > 0)
		heap_swap(heap, 0, last);
	else if (rows_compare(heap, 0, middle) < 0)
		heap_swap(heap, 0, middle);
	for (;;) {
		do
			low++;
		while (low < count && rows_compare(heap, low, 0) < 0);
		do
			high--;
		while (rows_compare(heap, high, 0) > 0);
		if (low >= high)
			break;
		heap_swap(heap, low, high);
	}
	heap_swap(heap, 0, high);
	return high;
}

struct span {
	size_t first, count;
	uint32_t depth; // number of further partitions allowed
};

// Sort by partitioning, which accesses adjacent rows. A large heap accesses memory at random, but
// its worst case is bounded. So heap sort takes over after too many bad pivots.
void sort_rows(
	void *rows, size_t count, size_t row_bytes, int (*compare)(const void *a, const void *b)
) {
	struct span waiting[WAITING_SPANS_MAX], now = {.count = count};
	uint32_t held = 0;

	if (count < 2)
		return;
	for (size_t left = count; left > 0; left /= 2)
		now.depth += 2;
	for (;;) {
		struct heap heap = {
			.rows = (uint8_t *)rows + now.first * row_bytes,
			.row_bytes = row_bytes,
			.compare = compare,
		};
		struct span more = now;

		if (now.count <= HEAP_SORT_ROWS_MAX || now.depth == 0) {
			heap_sort(&heap, now.count);
			if (held == 0)
				return;
			now = waiting[--held];
			continue;
		}
		more.depth = --now.depth;
		now.count = heap_partition(&heap, now.count);
		more.first += now.count + 1;
		more.count -= now.count + 1;
		// The larger range waits, so the next one has at most half of the rows. This bounds
		// the number of waiting ranges.
		if (now.count > more.count) {
			waiting[held++] = now;
			now = more;
		} else {
			waiting[held++] = more;
		}
	}
}
