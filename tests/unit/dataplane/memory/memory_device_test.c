// SPDX-License-Identifier: BSD-3-Clause
// Tests of GPU memory with a fake libcuda: its kind, the device that registers it, and the ways to
// register it in order of preference. FAKE_CUDA is the path of the library.
#include "dataplane/memory/cuda_bed.h"
#include "dataplane/memory/memory_world.h"

#include <lib/scoped.h>
#include <support/cases.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static struct world world;
static int set_up(void **state) {
	(void)state;
	fake_cuda->reset();
	modules_are("nvidia 1 0 - Live 0x0\nib_core 1 0 - Live 0x0\n");
	world_open(&world);
	world_register(&world, (struct memory_config){.cuda = cuda, .modules_path = modules});
	return 0;
}

// With a limit of 5 MiB per region, memory is registered in pieces of 4 MiB.
static int set_up_limited(void **state) {
	(void)state;
	fake_cuda->reset();
	modules_are("");
	world_open(&world);
	world_register(
		&world, (struct memory_config
			){.cuda = cuda, .modules_path = modules, .region_bytes_max = 5 * MIB}
	);
	return 0;
}

static int tear_down(void **state) {
	int depth = fake_cuda->context_depth;

	(void)state;
	return world_close(&world) == 0 && depth == 0 ? 0 : -1;
}

static uint8_t *gpu_memory(size_t offset, size_t size) {
	return fake_cuda->allocate(FAKE_CUDA_DEVICE, 0, offset, size);
}

static uint64_t dmabufs(void) {
	return fake_verbs_calls_made(FAKE_REG_DMABUF_MR);
}

// Location of memory.

static void memory_is_told_apart_by_what_cuda_knows_of_it(void **state) {
	static const struct {
		enum fake_cuda_kind made;
		int ordinal;
		enum memory_kind kind;
		const char *pci;
	} rows[] = {
		{FAKE_CUDA_DEVICE, 0, MEMORY_DEVICE, "0000:1a:00.0"},
		{FAKE_CUDA_DEVICE, 1, MEMORY_DEVICE, "0000:1b:00.0"},
		{FAKE_CUDA_POOL, 1, MEMORY_DEVICE, "0000:1b:00.0"},
		{FAKE_CUDA_HOST, 1, MEMORY_HOST, ""}, // registered with CUDA, but host memory
		{FAKE_CUDA_MANAGED, 1, MEMORY_MANAGED, "0000:1b:00.0"},
	};
	uint8_t own[16];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		const uint8_t *at = fake_cuda->allocate(rows[n].made, rows[n].ordinal, 0, 4096);
		struct memory_location place = memory_location(cuda, (uintptr_t)at + 100);

		assert_int_equal(place.kind, rows[n].kind);
		assert_int_equal(place.ordinal, place.kind == MEMORY_HOST ? 0 : rows[n].ordinal);
		assert_string_equal(place.pci, rows[n].pci);
		fake_cuda->release(at);
	}
	assert_int_equal(memory_location(cuda, (uintptr_t)own).kind, MEMORY_HOST);
	assert_int_equal(memory_location(NULL, (uintptr_t)own).kind, MEMORY_HOST);
}

// Ways to register memory.

static void views_of_one_allocation_share_its_registration(void **state) {
	uint8_t *at = gpu_memory(2 * MIB, 2 * MIB);
	struct memory_view one = world_view(&world, at + 100, 10, MEMORY_PEER_READS);
	struct memory_view two = world_view(&world, at + MIB, MIB, MEMORY_PEER_READS);

	(void)state;
	assert_int_equal(dmabufs(), 1);
	assert_int_equal(fake_cuda->range_calls, 1);
	assert_ptr_equal(one.region, two.region);
	assert_int_equal(one.region->address, (uintptr_t)at);
	assert_int_equal(one.region->length, 2 * MIB);
	assert_false(one.host);
	assert_int_equal(one.wire_address, (uintptr_t)at + 100);
	assert_int_equal(two.remote_key, one.remote_key);
	// The last view frees the registration.
	memory_view_put(&one);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 1);
	memory_view_put(&two);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 0);
}

static uint32_t open_descriptors(void) {
	scoped_dir DIR *directory = opendir("/proc/self/fd");
	uint32_t count = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		count++;
	return count;
}

static void the_descriptor_of_a_dmabuf_is_closed_whatever_comes(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view view;
	uint32_t before;

	(void)state;
	before = open_descriptors();
	fake_verbs_fail(FAKE_REG_DMABUF_MR, 1, 2, -EINVAL);
	assert_int_equal(world_take(&world, at, 10, 0, &view), -EOPNOTSUPP);
	assert_int_equal(fake_cuda->export_calls, 2);
	assert_int_equal(open_descriptors(), before);
	view = world_view(&world, at, 11, 0);
	assert_int_equal(open_descriptors(), before);
	memory_view_put(&view);
}

static void another_allocation_in_the_same_place_is_registered_anew(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view old = world_view(&world, at, 10, 0), present;

	(void)state;
	fake_cuda->release(at);
	assert_ptr_equal(gpu_memory(0, 2 * MIB), at);
	present = world_view(&world, at, 10, 0);
	assert_ptr_not_equal(old.region, present.region);
	assert_int_equal(fake_cuda->range_calls, 2);
	memory_view_put(&old);
	memory_view_put(&present);
}

static void a_failure_is_not_held_against_the_next_allocation(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view view;

	(void)state;
	fake_cuda->export_error = 801;
	assert_int_equal(world_take(&world, at, 10, 0, &view), -EOPNOTSUPP);
	fake_cuda->export_error = 0;
	assert_int_equal(world_take(&world, at, 10, 0, &view), -EOPNOTSUPP);
	fake_cuda->release(at);
	gpu_memory(0, 2 * MIB);
	view = world_view(&world, at, 10, 0);
	memory_view_put(&view);
}

static void an_allocation_larger_than_a_region_is_registered_in_pieces(void **state) {
	uint8_t *at = gpu_memory(2 * MIB, 11 * MIB);
	struct memory_view first = world_view(&world, at + 100, 10, 0);
	struct memory_view second = world_view(&world, at + 4 * MIB, 4 * MIB, 0);
	struct memory_view last = world_view(&world, at + 11 * MIB - 1, 1, 0);
	struct memory_view across = world_view(&world, at + 4 * MIB - 10, 20, 0);

	(void)state;
	assert_int_equal(first.region->length, 4 * MIB);
	assert_int_equal(second.region->address, (uintptr_t)at + 4 * MIB);
	assert_int_equal(last.region->address, (uintptr_t)at + 8 * MIB);
	assert_int_equal(last.region->length, 3 * MIB);
	// A range that crosses two pieces gets its own registration.
	assert_int_equal(across.region->length, 20);
	assert_int_equal(dmabufs(), 4);
	memory_view_put(&first);
	memory_view_put(&second);
	memory_view_put(&last);
	memory_view_put(&across);
}

static void a_range_over_two_mappings_is_registered_for_itself(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view view;

	(void)state;
	gpu_memory(2 * MIB, 2 * MIB);
	view = world_view(&world, at + MIB, 2 * MIB, 0);
	assert_int_equal(view.region->address, (uintptr_t)at + MIB);
	assert_int_equal(view.region->length, 2 * MIB);
	memory_view_put(&view);
}

static void a_mapping_that_was_added_is_registered_beside_the_old_one(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view old = world_view(&world, at, 10, MEMORY_PEER_READS), added;

	(void)state;
	gpu_memory(2 * MIB, 2 * MIB);
	// Registering the new part fails; the old registration must remain.
	fake_cuda->export_error = 2;
	assert_int_not_equal(world_take(&world, at + 2 * MIB, 10, MEMORY_PEER_READS, &added), 0);
	assert_int_equal(memory_counts(world.registry).regions, 1);
	fake_cuda->export_error = 0;
	clock_advance(&world.clock, WORLD_FAILURE_NS);
	added = world_view(&world, at + 2 * MIB, 10, MEMORY_PEER_READS);
	assert_int_equal(added.region->address, (uintptr_t)at + 2 * MIB);
	assert_int_not_equal(added.remote_key, old.remote_key);
	assert_int_equal(memory_counts(world.registry).regions, 2);
	memory_view_put(&old);
	memory_view_put(&added);
}

static void one_allocation_is_registered_on_every_device_that_uses_it(void **state) {
	struct memory_config config = {.cuda = cuda, .clock = &world.clock};
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_request request = {.address = (uintptr_t)at, .length = 10};
	char reason[DEVICE_REASON_MAX + 1];
	struct memory_registry *other;
	struct memory_view one, two;

	(void)state;
	fake_device_add("fake1");
	assert_int_equal(device_open(&fake_verbs_calls, "fake1", NULL, reason, &config.device), 0);
	assert_int_equal(memory_registry_create(&config, &other), 0);
	one = world_view(&world, at, 10, 0);
	assert_int_equal(memory_view_get(other, &request, world.reason, &two), 0);
	assert_int_equal(dmabufs(), 2);
	assert_ptr_not_equal(one.region->mr->pd, two.region->mr->pd);
	memory_view_put(&one);
	memory_view_put(&two);
	assert_null(memory_registry_destroy(other));
	device_put(config.device);
}

static void a_range_beyond_all_allocations_is_refused_with_every_reason(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view view;

	(void)state;
	assert_int_equal(world_take(&world, at + MIB, 2 * MIB, 0, &view), -EOPNOTSUPP);
	assert_non_null(strstr(world.reason, "whole allocation: the range extends beyond it; "));
	assert_non_null(strstr(
		world.reason,
		"dmabuf of the range: cuMemGetHandleForAddressRange: CUDA_ERROR_INVALID_VALUE (1); "
	));
	assert_non_null(strstr(
		world.reason,
		"peer memory: the kernel module nvidia_peermem is not loaded: it is not in /tmp/"
	));
}

static void an_allocation_off_the_page_is_registered_to_the_byte(void **state) {
	uint8_t *at = gpu_memory(4096 + 512, 6000);
	struct memory_view view = world_view(&world, at + 5000, 1000, MEMORY_LOCAL_WRITES);

	(void)state;
	assert_int_equal(view.region->address, (uintptr_t)at);
	assert_int_equal(view.region->mr->length, 6000);
	memory_view_put(&view);
}

static void alone_means_the_range_and_nothing_else(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view whole = world_view(&world, at, 10, MEMORY_PEER_READS);
	struct memory_view alone =
		world_view(&world, at + 5000, 100, MEMORY_PEER_READS | MEMORY_UNSHARED);

	(void)state;
	assert_ptr_not_equal(whole.region, alone.region);
	assert_int_equal(alone.region->address, (uintptr_t)at + 5000);
	assert_int_equal(alone.region->mr->length, 100);
	assert_int_equal(alone.wire_address, (uintptr_t)at + 5000);
	memory_view_put(&whole);
	memory_view_put(&alone);
}

// Return a dmabuf of one allocation, as the caller would export it.
static int exported(uint8_t *at, uint64_t length) {
	char reason[CUDA_REASON_MAX + 1];
	int fd = -1;

	assert_int_equal(cuda_export_dmabuf(cuda, (uintptr_t)at, length, reason, &fd), 0);
	return fd;
}

static void a_dmabuf_of_the_caller_is_registered_alone_and_without_libcuda(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_request request = {
		.address = (uintptr_t)at + 8192, .length = 4096, .access = MEMORY_PEER_READS};
	int fd = exported(at, 2 * MIB);
	struct memory_view one, two;

	(void)state;
	assert_int_equal(
		memory_view_get_dmabuf(world.registry, &request, fd, 8192, world.reason, &one), 0
	);
	assert_int_equal(
		memory_view_get_dmabuf(world.registry, &request, fd, 8192, world.reason, &two), 0
	);
	close(fd);
	assert_int_equal(fake_cuda->range_calls, 0);
	assert_ptr_not_equal(one.region, two.region);
	assert_int_equal(one.wire_address, request.address);
	assert_int_equal(one.region->mr->length, 4096);
	assert_int_not_equal(one.remote_key, 0);
	assert_false(one.host);
	memory_view_put(&one);
	memory_view_put(&two);
	assert_int_equal(memory_deregister_dead(world.registry), 0);
	assert_int_equal(memory_counts(world.registry).regions, 0);
}

static void a_dmabuf_that_a_device_does_not_take_is_refused_with_the_call(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_request request = {
		.address = (uintptr_t)at, .length = 4096, .access = MEMORY_PEER_READS};
	int fd = exported(at, 2 * MIB);
	struct memory_view view;

	(void)state;
	world.fake->no_dmabuf = true;
	assert_int_equal(
		memory_view_get_dmabuf(world.registry, &request, fd, 0, world.reason, &view),
		-EOPNOTSUPP
	);
	assert_string_equal(world.reason, "dmabuf: ibv_reg_dmabuf_mr failed with EOPNOTSUPP");
	assert_int_equal(memory_counts(world.registry).failed, 1);
	request.length = 0;
	assert_int_equal(
		memory_view_get_dmabuf(world.registry, &request, fd, 0, world.reason, &view),
		-EINVAL
	);
	assert_int_equal(memory_counts(world.registry).regions, 0);
	close(fd);
}

static void memory_without_a_context_is_registered_all_the_same(void **state) {
	uint8_t *at = fake_cuda->allocate(FAKE_CUDA_POOL, 1, 0, 2 * MIB);
	struct memory_view view = world_view(&world, at, 10, 0);

	(void)state;
	assert_int_equal(view.region->length, 2 * MIB);
	memory_view_put(&view);
}

// Failures, and the way that succeeds with them.
static const struct chain {
	int range_error, export_error;
	uint32_t dmabuf_failures;
	bool peer_memory;
	uint64_t registered_bytes; // 0: refused
	const char *reason;
} chains[] = {
	{0, 0, 0, false, 2 * MIB, ""},
	{1, 0, 0, false, 100, ""},
	{0, 0, 1, false, 100, ""},
	{0, 801, 0, true, 100, ""},
	{0, 0, 2, true, 100, ""},
	{1, 801, 0, false, 0,
	 "whole allocation: cuMemGetAddressRange: CUDA_ERROR_INVALID_VALUE (1); "
	 "dmabuf of the range: cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801); "
	 "peer memory: the kernel module nvidia_peermem is not loaded: it is not in "},
	{0, 0, 2, false, 0,
	 "whole allocation: ibv_reg_dmabuf_mr failed with EINVAL; "
	 "dmabuf of the range: ibv_reg_dmabuf_mr failed with EINVAL; "
	 "peer memory: the kernel module nvidia_peermem is not loaded: it is not in "},
};

static void each_way_is_tried_when_the_one_before_fails(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);

	(void)state;
	for (size_t n = 0; n < COUNT_OF(chains); n++) {
		const struct chain *chain = &chains[n];
		struct memory_view view;
		int err;

		// nvidia_peermem_old is a different module.
		modules_are(
			chain->peer_memory ? "nvidia 1 0\nnvidia_peermem 16384 0 - Live 0x0\n"
					   : "nvidia_peermem_old 16384 0 - Live 0x0\n"
		);
		fake_cuda->range_error = chain->range_error;
		fake_cuda->export_error = chain->export_error;
		if (chain->dmabuf_failures > 0)
			fake_verbs_fail(FAKE_REG_DMABUF_MR, 1, chain->dmabuf_failures, -EINVAL);
		err = world_take(&world, at + 50, 100, 0, &view);
		if ((err == 0) != (chain->registered_bytes > 0))
			fail_msg("row %zu: %s", n, world.reason);
		if (err == 0) {
			assert_int_equal(view.region->length, chain->registered_bytes);
			memory_view_put(&view);
		} else {
			assert_memory_equal(world.reason, chain->reason, strlen(chain->reason));
		}
		assert_int_equal(memory_deregister_dead(world.registry), 0);
		fake_verbs_fail_no_more();
		clock_advance(&world.clock, WORLD_FAILURE_NS);
	}
}

static void a_chain_that_failed_is_not_walked_again_for_a_while(void **state) {
	uint8_t *at = gpu_memory(0, 2 * MIB);
	struct memory_view view;

	(void)state;
	fake_cuda->export_error = 801;
	assert_int_equal(world_take(&world, at, 10, 0, &view), -EOPNOTSUPP);
	assert_int_equal(world_take(&world, at, 10, 0, &view), -EOPNOTSUPP);
	assert_int_equal(fake_cuda->export_calls, 2);
	clock_advance(&world.clock, WORLD_FAILURE_NS);
	fake_cuda->export_error = 0;
	view = world_view(&world, at, 10, 0);
	memory_view_put(&view);
}

static void managed_and_host_memory_are_registered_by_address(void **state) {
	uint8_t *managed = fake_cuda->allocate(FAKE_CUDA_MANAGED, 0, 0, 4096);
	uint8_t *host = fake_cuda->allocate(FAKE_CUDA_HOST, 0, 4096, 4096);
	struct memory_view views[] = {
		world_view(&world, managed, 10, 0), world_view(&world, host, 10, 0)};
	struct memory_view none;

	(void)state;
	assert_int_equal(fake_verbs_calls_made(FAKE_REG_MR), 2);
	assert_int_equal(dmabufs(), 0);
	assert_true(views[0].host && views[1].host);
	memory_view_put(&views[0]);
	memory_view_put(&views[1]);
	fake_verbs_fail(FAKE_REG_MR, 1, 1, -EFAULT);
	assert_int_equal(world_take(&world, managed + 1, 10, MEMORY_UNSHARED, &none), -EFAULT);
	assert_string_equal(world.reason, "managed memory: ibv_reg_mr failed with EFAULT");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define LIMITED(test) cmocka_unit_test_setup_teardown(test, set_up_limited, tear_down)

UNIT_GROUP(memory_device) {
	static const struct CMUnitTest tests[] = {
		WORLD(memory_is_told_apart_by_what_cuda_knows_of_it),
		WORLD(views_of_one_allocation_share_its_registration),
		WORLD(the_descriptor_of_a_dmabuf_is_closed_whatever_comes),
		WORLD(another_allocation_in_the_same_place_is_registered_anew),
		WORLD(a_failure_is_not_held_against_the_next_allocation),
		LIMITED(an_allocation_larger_than_a_region_is_registered_in_pieces),
		WORLD(a_range_over_two_mappings_is_registered_for_itself),
		WORLD(a_mapping_that_was_added_is_registered_beside_the_old_one),
		WORLD(one_allocation_is_registered_on_every_device_that_uses_it),
		WORLD(a_range_beyond_all_allocations_is_refused_with_every_reason),
		WORLD(an_allocation_off_the_page_is_registered_to_the_byte),
		WORLD(alone_means_the_range_and_nothing_else),
		WORLD(memory_without_a_context_is_registered_all_the_same),
		WORLD(a_dmabuf_of_the_caller_is_registered_alone_and_without_libcuda),
		WORLD(a_dmabuf_that_a_device_does_not_take_is_refused_with_the_call),
		WORLD(each_way_is_tried_when_the_one_before_fails),
		WORLD(a_chain_that_failed_is_not_walked_again_for_a_while),
		WORLD(managed_and_host_memory_are_registered_by_address),
	};

	return cmocka_run_group_tests(tests, open_library, close_library);
}
