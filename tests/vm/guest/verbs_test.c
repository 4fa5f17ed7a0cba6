// SPDX-License-Identifier: BSD-3-Clause
// Runs in the guest: the view of libibverbs on the kernel's devices, from C.
#include <dataplane/verbs.h>
#include <support/cmocka.h>

#include <string.h>

static const char *const names[] = {"rxe0", "rxe1"};

// Open the device of that name. Returns NULL if there is none.
static struct ibv_context *open_named(const char *name) {
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	assert_non_null(list);
	for (size_t i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return context;
}

static void both_devices_have_one_active_ethernet_port(void **state) {
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct ibv_context *context = open_named(names[i]);
		struct ibv_port_attr port;

		assert_non_null(context);
		assert_int_equal(ibv_query_port(context, 1, &port), 0);
		assert_int_equal(port.state, IBV_PORT_ACTIVE);
		assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
		assert_int_equal(ibv_close_device(context), 0);
	}
}

static void both_devices_register_memory_and_give_it_back(void **state) {
	static char memory[1 << 16];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct ibv_context *context = open_named(names[i]);
		struct ibv_pd *domain;
		struct ibv_mr *region;

		assert_non_null(context);
		domain = ibv_alloc_pd(context);
		assert_non_null(domain);
		region = ibv_reg_mr(domain, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(region);
		assert_int_not_equal(region->lkey, 0);
		assert_int_equal(ibv_dereg_mr(region), 0);
		assert_int_equal(ibv_dealloc_pd(domain), 0);
		assert_int_equal(ibv_close_device(context), 0);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_devices_have_one_active_ethernet_port),
		cmocka_unit_test(both_devices_register_memory_and_give_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
