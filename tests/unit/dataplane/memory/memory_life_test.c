// SPDX-License-Identifier: BSD-3-Clause
// Tests of the lifetime of a registration: views, owners and shutdown.
#include "dataplane/memory/memory_world.h"

#include <support/cases.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct world world;
static uint8_t memory[8 * WORLD_PAGE] __attribute__((aligned(WORLD_PAGE)));

static int set_up(void **state) {
	(void)state;
	world_open(&world);
	world_register(&world, (struct memory_config){0});
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	return world_close(&world);
}

static uint64_t registrations(void) {
	return fake_verbs_calls_made(FAKE_REG_MR);
}

static void a_region_lives_as_long_as_its_last_view(void **state) {
	struct memory_view one = world_view(&world, memory, 100, 0);
	struct memory_view two = one;

	(void)state;
	memory_view_ref(&two);
	memory_view_put(&one);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 1);
	memory_view_put(&two);
	// Putting a view is on the hot path. The driver is called only when dead regions are
	// deregistered.
	assert_int_equal(fake_verbs_calls_made(FAKE_DEREG_MR), 0);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(fake_verbs_calls_made(FAKE_DEREG_MR), 1);
	assert_int_equal(memory_counts(world.registry).regions, 0);
	assert_int_equal(memory_counts(world.registry).bytes, 0);
}

static void what_is_dead_is_never_used_again(void **state) {
	struct memory_view one = world_view(&world, memory, 100, 0), two;

	(void)state;
	memory_view_put(&one);
	// The region still exists, but its memory may already belong to somebody else.
	two = world_view(&world, memory, 100, 0);
	assert_int_equal(registrations(), 2);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 1);
	memory_view_put(&two);
}

static void memory_that_the_driver_does_not_let_go_is_tried_again(void **state) {
	struct memory_view view = world_view(&world, memory, 100, 0);

	(void)state;
	memory_view_put(&view);
	fake_verbs_fail(FAKE_DEREG_MR, 1, 2, -EIO);
	assert_int_equal(memory_deregister_dead(world.registry), -EIO);
	assert_int_equal(memory_counts(world.registry).regions, 1);
	// The region must not be reused.
	view = world_view(&world, memory, 100, 0);
	assert_int_equal(registrations(), 2);
	memory_view_put(&view);
	assert_int_equal(memory_deregister_dead(world.registry), -EIO);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 0);
}

static void regions_go_before_the_registry_and_that_before_the_device(void **state) {
	struct memory_view view = world_view(&world, memory, 100, 0), none;
	struct fake_alive alive;

	(void)state;
	// The test drops its reference to the device; the registry keeps its own.
	world.device = device_put(world.device);
	assert_int_equal(fake_verbs_alive().contexts, 1);
	assert_ptr_equal(memory_registry_destroy(world.registry), world.registry);
	assert_int_equal(world_take(&world, memory, 100, 0, &none), -ESHUTDOWN);
	assert_string_equal(world.reason, "fake0 is being closed");
	assert_int_equal(fake_verbs_alive().mrs, 1);
	assert_int_equal(fake_verbs_alive().contexts, 1);
	memory_view_put(&view);
	world.registry = memory_registry_destroy(world.registry);
	assert_null(world.registry);
	alive = fake_verbs_alive();
	assert_int_equal(alive.mrs + alive.pds + alive.contexts, 0);
}

struct owned {
	uint32_t held, dropped;
	uint32_t regions_at_drop; // regions of the device at that time
};

static void owned_hold(void *ctx) {
	((struct owned *)ctx)->held++;
}

static void owned_drop(void *ctx) {
	struct owned *owned = ctx;

	owned->dropped++;
	owned->regions_at_drop = fake_verbs_alive().mrs;
}

static void an_owner_is_held_once_and_dropped_with_the_last_view(void **state) {
	struct owned owned = {0};
	struct memory_owner owner = {owned_hold, owned_drop, &owned};
	struct memory_request request = {
		.address = (uintptr_t)memory, .length = 100, .owner = &owner};
	struct memory_view one, two;

	(void)state;
	assert_int_equal(memory_view_get(world.registry, &request, world.reason, &one), 0);
	assert_int_equal(memory_view_get(world.registry, &request, world.reason, &two), 0);
	assert_ptr_equal(one.region, two.region);
	assert_int_equal(owned.held, 1);
	memory_view_put(&one);
	memory_deregister_dead(world.registry);
	assert_int_equal(owned.dropped, 0);
	memory_view_put(&two);
	assert_int_equal(owned.dropped, 0);
	memory_deregister_dead(world.registry);
	assert_int_equal(owned.dropped, 1);
	assert_int_equal(owned.regions_at_drop, 0);
}

static void memory_of_different_owners_is_not_shared(void **state) {
	struct owned owned[2] = {0};
	struct memory_owner owners[2] = {
		{owned_hold, owned_drop, &owned[0]}, {owned_hold, owned_drop, &owned[1]}};
	struct memory_request request = {.address = (uintptr_t)memory, .length = 100};
	struct memory_view views[3];

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		request.owner = n < 2 ? &owners[n] : NULL;
		assert_int_equal(
			memory_view_get(world.registry, &request, world.reason, &views[n]), 0
		);
	}
	assert_int_equal(registrations(), 3);
	memory_view_put(&views[0]);
	memory_deregister_dead(world.registry);
	assert_int_equal(owned[0].dropped, 1);
	assert_int_equal(owned[1].dropped, 0);
	memory_view_put(&views[1]);
	memory_view_put(&views[2]);
	memory_deregister_dead(world.registry);
}

static void a_failed_registration_holds_no_owner(void **state) {
	struct owned owned = {0};
	struct memory_owner owner = {owned_hold, owned_drop, &owned};
	struct memory_request request = {
		.address = (uintptr_t)memory, .length = 100, .owner = &owner};
	struct memory_view view;

	(void)state;
	fake_verbs_fail(FAKE_REG_MR, 1, 1, -EFAULT);
	assert_int_equal(memory_view_get(world.registry, &request, world.reason, &view), -EFAULT);
	assert_int_equal(owned.held, 0);
}

// Workers hold and put views while the keeper gets views and deregisters dead regions.

#define THREADS 3
#define ROUNDS 3000

static _Atomic(struct memory_view *) handed[THREADS];

static void *hold_and_put(void *arg) {
	_Atomic(struct memory_view *) *slot = arg;

	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct memory_view *view;

		while ((view = atomic_exchange(slot, NULL)) == NULL)
			sched_yield();
		memory_view_ref(view);
		memory_view_ref(view);
		memory_view_put(view);
		memory_view_put(view);
		memory_view_put(view);
		free(view);
	}
	return NULL;
}

static void hand_over(_Atomic(struct memory_view *) *slot, const uint8_t *at) {
	struct memory_view *view = malloc(sizeof(*view)), *none = NULL;

	assert_non_null(view);
	*view = world_view(&world, at, 64, MEMORY_LOCAL_WRITES);
	while (!atomic_compare_exchange_strong(slot, &none, view)) {
		none = NULL;
		memory_deregister_dead(world.registry);
		sched_yield();
	}
}

static void views_are_held_and_given_back_by_any_thread(void **state) {
	pthread_t threads[THREADS];

	(void)state;
	for (uint32_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, hold_and_put, &handed[t]), 0);
	// Two of the three threads use the same page.
	for (uint32_t n = 0; n < ROUNDS; n++) {
		for (uint32_t t = 0; t < THREADS; t++)
			hand_over(&handed[t], memory + t / 2 * WORLD_PAGE + t * 64);
		memory_deregister_dead(world.registry);
	}
	for (uint32_t t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 0);
	assert_int_equal(
		memory_counts(world.registry).registered + memory_counts(world.registry).shared,
		ROUNDS * THREADS
	);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

UNIT_GROUP(memory_life) {
	static const struct CMUnitTest tests[] = {
		WORLD(a_region_lives_as_long_as_its_last_view),
		WORLD(what_is_dead_is_never_used_again),
		WORLD(memory_that_the_driver_does_not_let_go_is_tried_again),
		WORLD(regions_go_before_the_registry_and_that_before_the_device),
		WORLD(an_owner_is_held_once_and_dropped_with_the_last_view),
		WORLD(memory_of_different_owners_is_not_shared),
		WORLD(a_failed_registration_holds_no_owner),
		WORLD(views_are_held_and_given_back_by_any_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
