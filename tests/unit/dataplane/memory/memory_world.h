// SPDX-License-Identifier: BSD-3-Clause
// One open device with a registry, and a clock that the test advances.
#pragma once

#include "memory/memory_impl.h"

#include <lib/must.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <errno.h>

#define WORLD_FAILURE_NS UINT64_C(1000000000)
#define WORLD_PAGE 4096

struct world {
	struct clock clock;
	struct fake_device *fake;
	struct device *device;
	struct memory_registry *registry;
	char reason[MEMORY_REASON_MAX + 1];
};

static inline void world_open(struct world *world) {
	char reason[DEVICE_REASON_MAX + 1];

	clock_init_fake(&world->clock, 1000000);
	fake_verbs_init(&world->clock);
	world->fake = fake_device_add("fake0");
	must(device_open(&fake_verbs_calls, "fake0", NULL, reason, &world->device) == 0);
	world->registry = NULL;
}

static inline void world_register(struct world *world, struct memory_config config) {
	config.device = world->device;
	config.clock = &world->clock;
	config.failure_ns = WORLD_FAILURE_NS;
	must(memory_registry_create(&config, &world->registry) == 0);
}

// A test must put all its views, or closing fails.
static inline int world_close(struct world *world) {
	const char *broken;

	world->registry = memory_registry_destroy(world->registry);
	if (world->registry != NULL) {
		print_error("views are left\n");
		return -1;
	}
	device_put(world->device);
	broken = fake_verbs_fini();
	if (broken != NULL)
		print_error("%s\n", broken);
	return broken == NULL ? 0 : -1;
}

static inline int world_take(
	struct world *world,
	const void *at,
	uint64_t length,
	uint32_t access,
	struct memory_view *ret_view
) {
	struct memory_request request = {
		.address = (uintptr_t)at, .length = length, .access = access};

	return memory_view_get(world->registry, &request, world->reason, ret_view);
}

static inline struct memory_view
world_view(struct world *world, const void *at, uint64_t length, uint32_t access) {
	struct memory_view view;
	int err = world_take(world, at, length, access, &view);

	if (err != 0)
		fail_msg("%s: %s", memory_errno_name(err), world->reason);
	return view;
}
