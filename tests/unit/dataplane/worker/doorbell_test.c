// SPDX-License-Identifier: BSD-3-Clause
// Tests of the doorbell that ends a wait: it is written once, and only if the worker sleeps.
#include "worker/worker_impl.h"

#include <support/cmocka.h>

#include <poll.h>
#include <unistd.h>

static void bell_is_written_to_only_for_one_who_sleeps(void **state) {
	struct doorbell bell;
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	assert_int_equal(doorbell_init(&bell), 0);
	fd.fd = bell.fd;
	assert_false(doorbell_ring(&bell));
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_arm(&bell);
	assert_true(doorbell_ring(&bell));
	assert_false(doorbell_ring(&bell)); // a ring is pending already
	assert_int_equal(poll(&fd, 1, 0), 1);
	doorbell_disarm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_arm(&bell);
	doorbell_disarm(&bell);
	assert_false(doorbell_ring(&bell));
	doorbell_close(&bell);
	doorbell_close(&bell);
}

static void ring_that_comes_late_wakes_for_nothing_once(void **state) {
	const uint64_t one = 1;
	struct doorbell bell;
	struct pollfd fd = {.events = POLLIN};

	(void)state;
	assert_int_equal(doorbell_init(&bell), 0);
	fd.fd = bell.fd;
	doorbell_arm(&bell);
	atomic_store(&bell.armed, 0); // a ringer that was preempted before its write
	doorbell_disarm(&bell);
	assert_int_equal(write(bell.fd, &one, sizeof(one)), sizeof(one));
	doorbell_arm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 1);
	doorbell_disarm(&bell);
	doorbell_arm(&bell);
	assert_int_equal(poll(&fd, 1, 0), 0);
	doorbell_close(&bell);
}

UNIT_GROUP(doorbell) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bell_is_written_to_only_for_one_who_sleeps),
		cmocka_unit_test(ring_that_comes_late_wakes_for_nothing_once),
	};

	return cmocka_run_group_tests_name("doorbell", tests, NULL, NULL);
}
