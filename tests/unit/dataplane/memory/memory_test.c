// SPDX-License-Identifier: BSD-3-Clause
// Tests of registrations of host memory: sharing, limits, and remembered failures.
#include "dataplane/memory/memory_world.h"

#include <support/cases.h>

#include <string.h>
#include <sys/resource.h>

static struct world world;
static uint8_t memory[8 * WORLD_PAGE] __attribute__((aligned(WORLD_PAGE)));

static int set_up(void **state) {
	(void)state;
	world_open(&world);
	world_register(&world, (struct memory_config){0});
	return 0;
}

static int set_up_limited(void **state) {
	(void)state;
	world_open(&world);
	world_register(
		&world, (struct memory_config){.regions_max = 2, .region_bytes_max = 2 * WORLD_PAGE}
	);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	return world_close(&world);
}

static uint64_t registrations(void) {
	return fake_verbs_calls_made(FAKE_REG_MR);
}

static void a_view_says_what_a_work_request_needs(void **state) {
	struct memory_view own = world_view(&world, memory + 10, 100, MEMORY_LOCAL_WRITES);
	struct memory_view theirs = world_view(&world, memory + 10, 100, MEMORY_PEER_READS);

	(void)state;
	assert_int_equal(own.address, (uintptr_t)memory + 10);
	assert_int_equal(own.wire_address, own.address);
	assert_int_equal(own.length, 100);
	assert_ptr_equal(own.device, world.device);
	assert_true(own.host);
	assert_int_equal(own.local_key, own.region->mr->lkey);
	// Without access for peers there is no remote key.
	assert_int_equal(own.remote_key, 0);
	assert_int_equal(theirs.remote_key, theirs.region->mr->rkey);
	memory_view_put(&own);
	memory_view_put(&theirs);
}

static void own_views_on_the_same_pages_share_one_registration(void **state) {
	struct memory_view views[] = {
		world_view(&world, memory + 10, 100, MEMORY_LOCAL_WRITES),
		world_view(&world, memory, WORLD_PAGE, MEMORY_LOCAL_WRITES),
		// Less access than registered is enough.
		world_view(&world, memory + WORLD_PAGE - 1, 1, 0),
	};

	(void)state;
	assert_int_equal(registrations(), 1);
	assert_int_equal(memory_counts(world.registry).shared, 2);
	assert_int_equal(memory_counts(world.registry).bytes, WORLD_PAGE);
	for (size_t n = 0; n < COUNT_OF(views); n++) {
		assert_ptr_equal(views[n].region, views[0].region);
		memory_view_put(&views[n]);
	}
}

static void more_access_than_registered_takes_a_registration_of_its_own(void **state) {
	struct memory_view reads = world_view(&world, memory, 100, 0);
	struct memory_view writes = world_view(&world, memory, 100, MEMORY_LOCAL_WRITES);

	(void)state;
	assert_int_equal(registrations(), 2);
	assert_ptr_not_equal(reads.region, writes.region);
	memory_view_put(&reads);
	memory_view_put(&writes);
}

// Existing access, requested access, and whether both share one registration.
static const struct sharing {
	uint32_t have, want;
	bool shared;
} sharings[] = {
	{MEMORY_PEER_READS, MEMORY_PEER_READS, true},
	{MEMORY_PEER_READS, 0, true},
	{MEMORY_PEER_READS, MEMORY_LOCAL_WRITES, false},
	{MEMORY_PEER_READS | MEMORY_PEER_WRITES, MEMORY_PEER_READS, false},
	{MEMORY_PEER_READS, MEMORY_PEER_READS | MEMORY_PEER_WRITES, false},
	// Write access for a peer implies local write access, so both requests are equal.
	{MEMORY_PEER_WRITES, MEMORY_PEER_WRITES | MEMORY_LOCAL_WRITES, true},
	{MEMORY_PEER_ATOMICS, MEMORY_LOCAL_WRITES, true},
	{MEMORY_PEER_READS | MEMORY_UNSHARED, MEMORY_PEER_READS, false},
	{MEMORY_PEER_READS, MEMORY_PEER_READS | MEMORY_UNSHARED, false},
	{MEMORY_PEER_READS | MEMORY_UNSHARED, MEMORY_PEER_READS | MEMORY_UNSHARED, false},
	{MEMORY_UNSHARED, 0, false},
};

static void a_peer_is_given_a_key_with_exactly_its_access(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(sharings); n++) {
		const struct sharing *sharing = &sharings[n];
		struct memory_view have = world_view(&world, memory, 100, sharing->have);
		struct memory_view want = world_view(&world, memory, 100, sharing->want);

		if ((have.region == want.region) != sharing->shared)
			fail_msg("row %zu", n);
		memory_view_put(&have);
		memory_view_put(&want);
		assert_int_equal(memory_deregister_dead(world.registry), 0);
	}
}

static void what_peers_may_reach_is_registered_to_the_byte(void **state) {
	struct memory_view view = world_view(&world, memory + 10, 101, MEMORY_PEER_READS);

	(void)state;
	assert_ptr_equal(view.region->mr->addr, memory + 10);
	assert_int_equal(view.region->mr->length, 101);
	memory_view_put(&view);
}

static void a_long_region_is_found_behind_many_short_ones(void **state) {
	struct memory_view whole = world_view(&world, memory, sizeof(memory), MEMORY_PEER_READS);
	struct memory_view parts[50], found;

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(parts); n++)
		parts[n] = world_view(
			&world, memory + 100 + n, 10, MEMORY_PEER_READS | MEMORY_UNSHARED
		);
	found = world_view(&world, memory + 5000, 100, MEMORY_PEER_READS);
	assert_ptr_equal(found.region, whole.region);
	memory_view_put(&found);
	memory_view_put(&whole);
	for (uint32_t n = 0; n < COUNT_OF(parts); n++)
		memory_view_put(&parts[n]);
}

static void what_cannot_be_registered_is_refused_before_the_driver_is_asked(void **state) {
	static const struct {
		uint64_t address, length;
		uint32_t access;
		int err;
		const char *reason;
	} rows[] = {
		{4096, 0, 0, -EINVAL, "a range of 0 bytes cannot be registered"},
		{UINT64_MAX - 9, 11, 0, -EINVAL, "exceed the address space"},
		{UINT64_MAX, UINT64_MAX, 0, -EINVAL, "exceed the address space"},
		{4096, 1, 0x100, -EINVAL, "access 0x100 has unknown bits"},
		{4096, 1, MEMORY_PEER_ATOMICS, -EOPNOTSUPP, "fake0 has no atomics"},
		{4096, 2 * WORLD_PAGE + 1, 0, -EFBIG,
		 "exceed the largest region of fake0: 8192 bytes"},
	};
	char reason[DEVICE_REASON_MAX + 1];
	struct memory_view view;

	(void)state;
	world_open(&world);
	device_put(world.device);
	world.fake->attr.atomic_cap = IBV_ATOMIC_NONE;
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", NULL, reason, &world.device), 0);
	world_register(&world, (struct memory_config){.region_bytes_max = 2 * WORLD_PAGE});
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct memory_request request = {
			.address = rows[n].address,
			.length = rows[n].length,
			.access = rows[n].access,
		};
		int err = memory_view_get(world.registry, &request, world.reason, &view);

		if (err != rows[n].err || strstr(world.reason, rows[n].reason) == NULL)
			fail_msg("%d: %s", err, world.reason);
	}
	assert_int_equal(registrations(), 0);
	assert_int_equal(world_close(&world), 0);
}

static void rounding_to_pages_never_exceeds_a_limit(void **state) {
	// The range covers two pages' worth of bytes, but touches three pages. Rounding to pages
	// would exceed the limit.
	struct memory_view view =
		world_view(&world, memory + 100, 2 * WORLD_PAGE, MEMORY_LOCAL_WRITES);

	(void)state;
	assert_int_equal(view.region->length, 2 * WORLD_PAGE);
	memory_view_put(&view);
}

static void there_are_no_more_regions_than_may_be(void **state) {
	struct memory_view one = world_view(&world, memory, 1, 0);
	struct memory_view two = world_view(&world, memory + WORLD_PAGE, 1, 0);
	struct memory_view three;

	(void)state;
	assert_int_equal(world_take(&world, memory + 2 * WORLD_PAGE, 1, 0, &three), -ENOSPC);
	assert_string_equal(world.reason, "fake0 already has 2 regions, the maximum");
	// A dead region makes room.
	memory_view_put(&one);
	three = world_view(&world, memory + 2 * WORLD_PAGE, 1, 0);
	memory_view_put(&two);
	memory_view_put(&three);
}

static void a_failed_registration_is_served_from_memory_for_a_while(void **state) {
	char first[MEMORY_REASON_MAX + 1];
	struct memory_view view;

	(void)state;
	fake_verbs_fail(FAKE_REG_MR, 1, 2, -EFAULT);
	assert_int_equal(world_take(&world, memory, 100, 0, &view), -EFAULT);
	assert_string_equal(world.reason, "host memory: ibv_reg_mr failed with EFAULT");
	memcpy(first, world.reason, sizeof(first));
	for (uint32_t n = 0; n < 5; n++) {
		world.reason[0] = '\0';
		assert_int_equal(world_take(&world, memory, 100, 0, &view), -EFAULT);
		assert_string_equal(world.reason, first);
	}
	assert_int_equal(registrations(), 1);
	assert_int_equal(memory_counts(world.registry).remembered, 5);

	// A different range or access is not covered by the remembered failure.
	assert_int_equal(world_take(&world, memory, 101, 0, &view), -EFAULT);
	assert_int_equal(registrations(), 2);
	clock_advance(&world.clock, WORLD_FAILURE_NS - 1);
	assert_int_equal(world_take(&world, memory, 100, 0, &view), -EFAULT);
	assert_int_equal(registrations(), 2);
	clock_advance(&world.clock, 1);
	view = world_view(&world, memory, 100, 0);
	assert_int_equal(registrations(), 3);
	memory_view_put(&view);
}

static void failures_are_remembered_up_to_a_number_the_last_ones_first(void **state) {
	struct memory_view view;

	(void)state;
	fake_verbs_fail(FAKE_REG_MR, 1, 1000, -EFAULT);
	for (uint32_t n = 0; n <= MEMORY_FAILURES_MAX; n++)
		assert_int_equal(
			world_take(&world, memory + n, 1, MEMORY_UNSHARED, &view), -EFAULT
		);
	assert_int_equal(registrations(), MEMORY_FAILURES_MAX + 1);
	assert_int_equal(world_take(&world, memory + 1, 1, MEMORY_UNSHARED, &view), -EFAULT);
	assert_int_equal(registrations(), MEMORY_FAILURES_MAX + 1);
	assert_int_equal(world_take(&world, memory, 1, MEMORY_UNSHARED, &view), -EFAULT);
	assert_int_equal(registrations(), MEMORY_FAILURES_MAX + 2);
	fake_verbs_fail_no_more();
}

static void a_lack_of_memory_names_the_limit_of_locked_memory(void **state) {
	struct rlimit limit, low = {65536, 65536};
	struct memory_view view;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	low.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	fake_verbs_fail(FAKE_REG_MR, 1, 1, -ENOMEM);
	assert_int_equal(world_take(&world, memory, 100, 0, &view), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	assert_string_equal(
		world.reason,
		"host memory: ibv_reg_mr failed with ENOMEM; the limit of locked memory (ulimit "
		"-l) is 65536 bytes"
	);
}

static void registries_of_two_devices_know_nothing_of_each_other(void **state) {
	struct memory_config config = {.clock = &world.clock, .failure_ns = WORLD_FAILURE_NS};
	struct memory_request request = {
		.address = (uintptr_t)memory, .length = 100, .access = MEMORY_PEER_READS};
	char reason[DEVICE_REASON_MAX + 1];
	struct memory_registry *other;
	struct memory_view one, two;

	(void)state;
	fake_device_add("fake1");
	assert_int_equal(device_open(&fake_verbs_calls, "fake1", NULL, reason, &config.device), 0);
	assert_int_equal(memory_registry_create(&config, &other), 0);
	fake_verbs_fail(FAKE_REG_MR, 1, 1, -EFAULT);
	assert_int_equal(memory_view_get(world.registry, &request, world.reason, &one), -EFAULT);
	// The failure on one device does not affect the other.
	assert_int_equal(memory_view_get(other, &request, world.reason, &two), 0);
	assert_ptr_equal(two.device, config.device);
	assert_int_equal(memory_counts(world.registry).regions, 0);
	memory_view_put(&two);
	assert_null(memory_registry_destroy(other));
	device_put(config.device);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define LIMITED(test) cmocka_unit_test_setup_teardown(test, set_up_limited, tear_down)

UNIT_GROUP(memory) {
	static const struct CMUnitTest tests[] = {
		WORLD(a_view_says_what_a_work_request_needs),
		WORLD(own_views_on_the_same_pages_share_one_registration),
		WORLD(more_access_than_registered_takes_a_registration_of_its_own),
		WORLD(a_peer_is_given_a_key_with_exactly_its_access),
		WORLD(what_peers_may_reach_is_registered_to_the_byte),
		WORLD(a_long_region_is_found_behind_many_short_ones),
		cmocka_unit_test(what_cannot_be_registered_is_refused_before_the_driver_is_asked),
		LIMITED(rounding_to_pages_never_exceeds_a_limit),
		LIMITED(there_are_no_more_regions_than_may_be),
		WORLD(a_failed_registration_is_served_from_memory_for_a_while),
		WORLD(failures_are_remembered_up_to_a_number_the_last_ones_first),
		WORLD(a_lack_of_memory_names_the_limit_of_locked_memory),
		WORLD(registries_of_two_devices_know_nothing_of_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
