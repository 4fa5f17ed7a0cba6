// SPDX-License-Identifier: BSD-3-Clause
// Tests the contract of near_ring.h; built only with the ring of dataplane/dpdk_off.
#include "memory/near_ring.h"

#include <support/cmocka.h>

#include <pthread.h>
#include <sched.h>

#define SLOTS 8
#define HANDED_OVER 200000

struct element {
	uint64_t number, square;
};

static struct near_ring *ring_of_eight(void) {
	struct near near = {.known = false};
	struct near_ring *ring = near_ring_create(near, "test", SLOTS, sizeof(struct element));

	assert_non_null(ring);
	return ring;
}

static void ring_destroy(struct near_ring *ring) {
	near_ring_destroy((struct near){.known = false}, ring, sizeof(struct element));
}

static int number_enqueue(struct near_ring *ring, uint64_t number) {
	const struct element element = {number, number * number};

	return near_ring_enqueue(ring, &element, sizeof(element));
}

static void one_element_fewer_than_slots_fits(void **state) {
	struct near_ring *ring = ring_of_eight();

	(void)state;
	for (uint32_t n = 0; n < SLOTS - 1; n++) {
		assert_int_equal(near_ring_free_count(ring), SLOTS - 1 - n);
		assert_int_equal(number_enqueue(ring, n), 0);
	}
	assert_int_equal(near_ring_free_count(ring), 0);
	assert_int_equal(number_enqueue(ring, 99), -ENOBUFS);
	ring_destroy(ring);
}

static void elements_come_in_order_across_the_end_of_the_ring(void **state) {
	struct near_ring *ring = ring_of_eight();
	struct element got[SLOTS];
	uint64_t next_in = 0, next_out = 0;

	(void)state;
	assert_false(near_ring_has_elements(ring));
	for (uint32_t turn = 0; turn < 5 * SLOTS; turn++) {
		for (uint32_t n = 0; n < 5; n++)
			assert_int_equal(number_enqueue(ring, next_in++), 0);
		assert_true(near_ring_has_elements(ring));
		assert_int_equal(near_ring_dequeue_burst(ring, got, sizeof(got[0]), 3), 3);
		assert_int_equal(near_ring_dequeue_burst(ring, got + 3, sizeof(got[0]), SLOTS), 2);
		for (uint32_t n = 0; n < 5; n++, next_out++) {
			assert_int_equal(got[n].number, next_out);
			assert_int_equal(got[n].square, next_out * next_out);
		}
		assert_false(near_ring_has_elements(ring));
	}
	assert_int_equal(near_ring_dequeue_burst(ring, got, sizeof(got[0]), SLOTS), 0);
	ring_destroy(ring);
}

static void *produce_all(void *arg) {
	struct near_ring *ring = arg;

	for (uint64_t number = 0; number < HANDED_OVER;) {
		if (number_enqueue(ring, number) == 0)
			number++;
		else
			sched_yield();
	}
	return NULL;
}

static void elements_pass_whole_between_two_threads(void **state) {
	struct near_ring *ring = ring_of_eight();
	uint64_t wanted = 0, wrong = 0;
	pthread_t producer;

	(void)state;
	assert_int_equal(pthread_create(&producer, NULL, produce_all, ring), 0);
	while (wanted < HANDED_OVER) {
		struct element got[3];
		uint32_t count = 0;

		if (near_ring_has_elements(ring))
			count = near_ring_dequeue_burst(ring, got, sizeof(got[0]), 3);
		else
			sched_yield();
		for (uint32_t n = 0; n < count; n++, wanted++)
			wrong += got[n].number != wanted || got[n].square != wanted * wanted;
	}
	pthread_join(producer, NULL);
	assert_int_equal(wrong, 0);
	assert_false(near_ring_has_elements(ring));
	ring_destroy(ring);
}

UNIT_GROUP(near_ring) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_element_fewer_than_slots_fits),
		cmocka_unit_test(elements_come_in_order_across_the_end_of_the_ring),
		cmocka_unit_test(elements_pass_whole_between_two_threads),
	};

	return cmocka_run_group_tests_name("near_ring", tests, NULL, NULL);
}
