// SPDX-License-Identifier: BSD-3-Clause
// Tests of registered memory. The test chooses the random keys, so that they collide as intended.
#include "nic/region.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <pthread.h>

#define REGIONS 199 // a prime, so that any step visits all regions

static uint64_t drawn[REGIONS + 8];
static uint32_t draw_next, draw_count;

uint64_t nic_random(struct soft_nic *nic) {
	(void)nic;
	return draw_next < draw_count ? drawn[draw_next++] : ++nic->random;
}

static void draw(uint64_t value) {
	drawn[draw_count++] = value;
}

static int make(void **state) {
	(void)state;
	draw_next = draw_count = 0;
	return 0;
}

static void each_key_is_drawn_once_and_never_zero(void **state) {
	struct soft_nic nic = {0};
	struct soft_mr one = {0}, two = {0};

	(void)state;
	draw(0);
	draw(7);
	draw(7);
	draw(UINT64_C(0xffffffff00000008));
	assert_int_equal(region_add(&nic, &one), 0);
	assert_int_equal(region_add(&nic, &two), 0);
	assert_int_equal(one.verbs.lkey, 7);
	assert_int_equal(one.verbs.rkey, 7);
	assert_int_equal(two.verbs.lkey, 8);
	region_remove(&nic, &one);
	region_remove(&nic, &two);
	assert_null(nic.regions.places);
}

static void a_range_is_reached_only_within_its_region(void **state) {
	static uint8_t bytes[100];
	static const struct {
		uint64_t iova, address, length;
		bool reached;
	} cases[] = {
		{1000, 1000, 100, true},
		{1000, 1099, 1, true},
		{1000, 1000, 101, false},
		{1000, 1100, 1, false},
		{1000, 999, 1, false},
		{1000, 999, 2, false},
		{1000, 1050, 0, false},
		{1000, 1050, UINT64_MAX, false},
		{1000, 1050, UINT64_MAX - 1049, false},
		{1000, 0, UINT64_MAX, false},
		{0, 0, 100, true},
		{0, UINT64_MAX, 1, false},
		{0, UINT64_MAX, 2, false},
		{UINT64_MAX - 99, UINT64_MAX, 1, true},
		{UINT64_MAX - 99, UINT64_MAX, 2, false},
		{UINT64_MAX - 99, 0, 1, false},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct soft_nic nic = {0};
		struct ibv_pd pd = {0}, other = {0};
		struct soft_mr mr = {.verbs.pd = &pd, .bytes = bytes, .length = sizeof(bytes)};
		uint8_t *reached;

		mr.iova = cases[n].iova;
		assert_int_equal(region_add(&nic, &mr), 0);
		reached = region_resolve(
			&nic, &pd, mr.verbs.rkey, cases[n].address, cases[n].length, 0
		);
		if (cases[n].reached)
			assert_ptr_equal(reached, bytes + (cases[n].address - cases[n].iova));
		else
			assert_null(reached);
		assert_null(region_resolve(
			&nic, &other, mr.verbs.rkey, cases[n].address, cases[n].length, 0
		));
		assert_null(region_resolve(
			&nic, &pd, mr.verbs.rkey ^ 1, cases[n].address, cases[n].length, 0
		));
		region_remove(&nic, &mr);
	}
}

static void every_right_that_is_asked_for_is_needed(void **state) {
	static uint8_t bytes[1];
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;

	(void)state;
	for (int has = 0; has <= all; has++) {
		struct soft_nic nic = {0};
		struct ibv_pd pd = {0};
		struct soft_mr mr = {.verbs.pd = &pd, .bytes = bytes, .length = 1, .access = has};

		assert_int_equal(region_add(&nic, &mr), 0);
		for (int asked = 0; asked <= all; asked++) {
			bool reached =
				region_resolve(&nic, &pd, mr.verbs.lkey, 0, 1, asked) != NULL;

			assert_int_equal(reached, (asked & ~has) == 0);
		}
		region_remove(&nic, &mr);
	}
}

static void assert_found(struct soft_nic *nic, struct soft_mr *mr, bool found) {
	uint8_t *reached = region_resolve(nic, mr->verbs.pd, mr->verbs.lkey, 0, 1, 0);

	if (found)
		assert_ptr_equal(reached, mr->bytes);
	else
		assert_null(reached);
}

// All keys share few hash buckets. Regions are removed in several orders.
static void what_is_left_is_found_whatever_went_before(void **state) {
	static struct soft_mr mrs[REGIONS];
	static uint8_t bytes[REGIONS];

	(void)state;
	for (uint32_t step = 1; step < 12; step++) {
		struct soft_nic nic = {0};
		struct ibv_pd pd = {0};

		draw_next = draw_count = 0;
		for (uint32_t n = 0; n < REGIONS; n++) {
			draw((n + 1) << 20 | (n % 5));
			mrs[n] = (struct soft_mr){.verbs.pd = &pd, .bytes = &bytes[n], .length = 1};
			assert_int_equal(region_add(&nic, &mrs[n]), 0);
		}
		for (uint32_t n = 0; n < REGIONS; n++) {
			region_remove(&nic, &mrs[n * step % REGIONS]);
			assert_found(&nic, &mrs[n * step % REGIONS], false);
			for (uint32_t m = n + 1; m < REGIONS; m++)
				assert_found(&nic, &mrs[m * step % REGIONS], true);
		}
		assert_int_equal(nic.regions.count, 0);
	}
}

static void a_copy_is_exact_whatever_its_end_is_aligned_to(void **state) {
	uint8_t from[40], to[64];

	(void)state;
	for (uint32_t n = 0; n < sizeof(from); n++)
		from[n] = (uint8_t)(n + 1);
	for (uint32_t at = 8; at < 16; at++) {
		for (uint32_t size = 0; size <= sizeof(from); size++) {
			memset(to, 0xee, sizeof(to));
			copy_last_byte_last(to + at, from, size);
			assert_memory_equal(to + at, from, size);
			assert_int_equal(to[at - 1], 0xee);
			assert_int_equal(to[at + size], 0xee);
		}
	}
}

#define LOOKS 3000000

struct watched {
	uint64_t before, word; // 16 bytes, written together
	uint64_t torn;	       // torn reads of the watching thread; valid after `over`
	bool over;
};

// Read a word that another thread overwrites again and again with all zeros or all ones.
static void *watch(void *argument) {
	struct watched *watched = argument;

	for (uint32_t n = 0; n < LOOKS; n++) {
		uint64_t word = __atomic_load_n(&watched->word, __ATOMIC_ACQUIRE);

		watched->torn += word != 0 && word != UINT64_MAX;
	}
	__atomic_store_n(&watched->over, true, __ATOMIC_RELEASE);
	return NULL;
}

static void a_word_at_the_end_is_never_seen_in_halves(void **state) {
	static const uint8_t ones[16] = {[8] = 255, 255, 255, 255, 255, 255, 255, 255};
	static const uint8_t zeros[16];
	static struct watched watched;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, watch, &watched), 0);
	while (!__atomic_load_n(&watched.over, __ATOMIC_ACQUIRE)) {
		copy_last_byte_last((uint8_t *)&watched.before, ones, sizeof(ones));
		copy_last_byte_last((uint8_t *)&watched.before, zeros, sizeof(zeros));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(watched.torn, 0);
}

UNIT_GROUP(soft_region) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_key_is_drawn_once_and_never_zero, make),
		cmocka_unit_test_setup(a_range_is_reached_only_within_its_region, make),
		cmocka_unit_test_setup(every_right_that_is_asked_for_is_needed, make),
		cmocka_unit_test_setup(what_is_left_is_found_whatever_went_before, make),
		cmocka_unit_test(a_copy_is_exact_whatever_its_end_is_aligned_to),
		cmocka_unit_test(a_word_at_the_end_is_never_seen_in_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
