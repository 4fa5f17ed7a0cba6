// SPDX-License-Identifier: BSD-3-Clause
// Tests of sorting rows of any size, in orders that are hard for quicksort.
#include <lib/sort.h>
#include <support/cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 3000
#define ROW_BYTES_MAX 152

static uint8_t rows[ROWS_MAX * ROW_BYTES_MAX];
static uint64_t random_state;
static uint64_t compared;

static uint32_t draw(uint32_t below) {
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % below;
}

static uint32_t key_of(const void *row) {
	uint32_t key;

	memcpy(&key, row, sizeof(key));
	return key;
}

static int compare(const void *a, const void *b) {
	compared++;
	return (key_of(a) > key_of(b)) - (key_of(a) < key_of(b));
}

enum shape { RANDOM, FEW_KEYS, SAME, ASCENDING, DESCENDING, PIPE, SAW, SHAPES };

static uint32_t key_at(enum shape shape, uint32_t n, uint32_t count) {
	switch (shape) {
	case RANDOM:
		return draw(UINT32_MAX);
	case FEW_KEYS:
		return draw(3);
	case SAME:
		return 7;
	case ASCENDING:
		return n;
	case DESCENDING:
		return count - n;
	case PIPE:
		return n < count / 2 ? n : count - n;
	case SAW:
		return n % 10 * 1000 + n / 10;
	case SHAPES:
		break;
	}
	return 0;
}

// Write a row whose other bytes derive from its key. So a row that was not moved as a whole is
// detected.
static void put(size_t row_bytes, uint32_t n, uint32_t key) {
	uint8_t *row = rows + n * row_bytes;

	memset(row, (int)(key % 251), row_bytes);
	memcpy(row, &key, sizeof(key));
}

static void assert_sorted(size_t row_bytes, uint32_t count, uint64_t sum) {
	for (uint32_t n = 0; n < count; n++) {
		const uint8_t *row = rows + n * row_bytes;

		assert_true(n == 0 || key_of(row - row_bytes) <= key_of(row));
		for (size_t at = sizeof(uint32_t); at < row_bytes; at++)
			assert_int_equal(row[at], key_of(row) % 251);
		sum -= key_of(row);
	}
	assert_int_equal(sum, 0); // every row is still there
}

static void sort_of_shape(enum shape shape, uint32_t count, size_t size) {
	uint64_t sum = 0;

	for (uint32_t n = 0; n < count; n++) {
		put(size, n, key_at(shape, n, count));
		sum += key_of(rows + n * size);
	}
	sort_rows(rows, count, size, compare);
	assert_sorted(size, count, sum);
}

static void rows_are_sorted_whatever_their_order_was(void **state) {
	static const uint32_t counts[] = {0, 1, 2, 3, 16, 17, 18, 31, 100, 1000, ROWS_MAX};
	static const size_t sizes[] = {4, 5, 24, 64, 65, ROW_BYTES_MAX};

	(void)state;
	random_state = 1;
	for (enum shape shape = 0; shape < SHAPES; shape++) {
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
				sort_of_shape(shape, counts[c], sizes[s]);
		}
	}
}

// McIlroy's adversary makes any quicksort quadratic. It assigns a key only when it is compared, so
// that each pivot becomes one of the smallest.
static uint32_t given[ROWS_MAX], last_given, candidate;

static int compare_against(const void *a, const void *b) {
	uint32_t left = key_of(a), right = key_of(b);

	compared++;
	if (given[left] == 0 && given[right] == 0)
		given[left == candidate ? left : right] = ++last_given;
	if (given[left] == 0)
		candidate = left;
	else if (given[right] == 0)
		candidate = right;
	if (given[left] == 0 || given[right] == 0)
		return given[left] == 0 ? 1 : -1;
	return (given[left] > given[right]) - (given[left] < given[right]);
}

static void no_order_is_slow(void **state) {
	(void)state;
	last_given = candidate = 0;
	memset(given, 0, sizeof(given));
	for (uint32_t n = 0; n < ROWS_MAX; n++)
		put(sizeof(uint32_t), n, n);
	compared = 0;
	sort_rows(rows, ROWS_MAX, sizeof(uint32_t), compare_against);
	// Partitioning to a depth of twice log2, then heapsort: 12 bits x (2 + 2). A quadratic sort
	// needs 4.5 million comparisons.
	assert_in_range(compared, ROWS_MAX, 60 * ROWS_MAX);
}

UNIT_GROUP(sort) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_whatever_their_order_was),
		cmocka_unit_test(no_order_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
