// SPDX-License-Identifier: BSD-3-Clause
// Tests of which ports of a machine are rails.
#include <dataplane/device_rails.h>
#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <stdio.h>
#include <string.h>

static int begin(void **state) {
	(void)state;
	fake_verbs_init(NULL);
	return 0;
}

static int end(void **state) {
	(void)state;
	assert_null(fake_verbs_fini());
	return 0;
}

static struct fake_device *add(const char *name, uint8_t ports) {
	struct fake_device *fake = fake_device_add(name);

	fake->attr.phys_port_cnt = ports;
	if (ports > 1) {
		fake->ports[1] = fake->ports[0];
		for (uint32_t n = 0; n < fake->ports[1].gid_count; n++)
			fake->ports[1].gids[n].port_num = 2;
	}
	return fake;
}

// Return "mlx5_0/1 mlx5_0:2/2" and, if any, the number left out.
static const char *rails(void) {
	static char text[DEVICE_RAILS_MAX * (DEVICE_NAME_MAX + 5)];
	struct device_rail found[DEVICE_RAILS_MAX];
	scoped_mem struct device_facts *facts = NULL;
	uint32_t count, rail_count, left_out;
	size_t used = 0;

	assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), 0);
	assert_int_equal(
		device_rails(&fake_verbs_calls, facts, count, found, &rail_count, &left_out), 0
	);
	text[0] = '\0';
	for (uint32_t n = 0; n < rail_count; n++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s/%u%s", n > 0 ? " " : "",
			found[n].name, found[n].port, found[n].waits ? "?" : ""
		);
	if (left_out > 0)
		snprintf(text + used, sizeof(text) - used, " +%u", left_out);
	return text;
}

static void every_device_is_one_in_natural_order(void **state) {
	(void)state;
	assert_string_equal(rails(), "");
	add("mlx5_10", 1);
	add("mlx5_2", 1);
	add("down", 1)->ports[0].attr.state = IBV_PORT_DOWN;
	add("efa_0", 1)->verbs.transport_type = IBV_TRANSPORT_UNSPECIFIED;
	assert_string_equal(rails(), "down/0? mlx5_2/0 mlx5_10/0");
}

static void all_ports_of_a_card_are_rails(void **state) {
	struct fake_device *card;

	(void)state;
	add("mlx4_1", 1);
	card = add("mlx4_0", 2);
	assert_string_equal(rails(), "mlx4_0/1 mlx4_0:2/2 mlx4_1/0");
	// The names do not depend on which port is up.
	card->ports[0].attr.state = IBV_PORT_DOWN;
	assert_string_equal(rails(), "mlx4_0/1? mlx4_0:2/2 mlx4_1/0");
	card->ports[0].attr.state = IBV_PORT_ACTIVE;
	card->ports[1].attr.state = IBV_PORT_DOWN;
	assert_string_equal(rails(), "mlx4_0/1 mlx4_0:2/2? mlx4_1/0");
}

static void there_are_sixteen_at_most_and_the_rest_is_counted(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 10; n++) {
		char name[16];

		snprintf(name, sizeof(name), "m%u", n);
		add(name, 2);
	}
	assert_non_null(strstr(rails(), " +4"));
}

static void those_that_wait_give_way_to_those_that_can_be_used(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		char name[16];

		snprintf(name, sizeof(name), "m%u", n);
		if (n < 10)
			add(name, 1)->ports[0].attr.state = IBV_PORT_DOWN;
		else
			add(name, 1);
	}
	assert_string_equal(
		rails(), "m0/0? m1/0? m2/0? m3/0? m4/0? m5/0? m10/0 m11/0 m12/0 m13/0 m14/0 "
			 "m15/0 m16/0 m17/0 m18/0 m19/0 +4"
	);
}

UNIT_GROUP(device_rails) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(every_device_is_one_in_natural_order),
		TEST(all_ports_of_a_card_are_rails),
		TEST(there_are_sixteen_at_most_and_the_rest_is_counted),
		TEST(those_that_wait_give_way_to_those_that_can_be_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
