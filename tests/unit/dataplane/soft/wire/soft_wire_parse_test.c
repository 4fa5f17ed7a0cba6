// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/soft.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void wire_is_known_by_its_name(void **state) {
	static const struct {
		const char *text;
		enum soft_wire_kind kind;
		const char *args;
	} cases[] = {
		{"udp", SOFT_WIRE_UDP, ""},
		{"memory", SOFT_WIRE_MEMORY, ""},
		{"dpdk:net_af_packet0,iface=veth0", SOFT_WIRE_DPDK, "net_af_packet0,iface=veth0"},
		{"dpdk:0000:03:00.1", SOFT_WIRE_DPDK, "0000:03:00.1"},
		{"dpdk:x", SOFT_WIRE_DPDK, "x"},
	};
	char args[SOFT_WIRE_ARGS_MAX + 1] = "old";
	enum soft_wire_kind kind;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(
			soft_wire_parse(cases[n].text, strlen(cases[n].text), NULL, &kind, args), 0
		);
		assert_int_equal(kind, cases[n].kind);
		assert_string_equal(args, cases[n].args);
	}
}

static void what_is_no_wire_is_refused_with_why(void **state) {
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "\"\" is not a wire; use udp or dpdk:DEVARGS"},
		{"UDP", "\"UDP\" is not a wire; use udp or dpdk:DEVARGS"},
		{"udp:", "\"udp:\" is not a wire; use udp or dpdk:DEVARGS"},
		{"udp ", "\"udp \" is not a wire; use udp or dpdk:DEVARGS"},
		{"dpdk", "\"dpdk\" is not a wire; use udp or dpdk:DEVARGS"},
		{"dpdk:",
		 "\"dpdk:\" names no port; give one, for example dpdk:net_af_packet0,iface=veth0"},
		{"dpdk:a b", "\"dpdk:a b\" contains a space or a control character"},
	};
	char args[SOFT_WIRE_ARGS_MAX + 1] = "old";
	enum soft_wire_kind kind = SOFT_WIRE_MEMORY;
	struct parse_error error;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(
			soft_wire_parse(cases[n].text, strlen(cases[n].text), &error, &kind, args),
			-EINVAL
		);
		assert_string_equal(error.text, cases[n].why);
		assert_int_equal(kind, SOFT_WIRE_MEMORY);
		assert_string_equal(args, "old");
	}
}

static void embedded_nul_is_no_end(void **state) {
	char args[SOFT_WIRE_ARGS_MAX + 1] = "old";
	enum soft_wire_kind kind;

	(void)state;
	assert_int_equal(soft_wire_parse("udp\0", 4, NULL, &kind, args), -EINVAL);
	assert_int_equal(soft_wire_parse("dpdk:a\0b", 8, NULL, &kind, args), -EINVAL);
}

static void device_may_be_as_long_as_there_is_room(void **state) {
	char text[5 + SOFT_WIRE_ARGS_MAX + 1] = "dpdk:";
	char args[SOFT_WIRE_ARGS_MAX + 1];
	enum soft_wire_kind kind;

	(void)state;
	memset(text + 5, 'x', sizeof(text) - 5);
	assert_int_equal(soft_wire_parse(text, sizeof(text) - 1, NULL, &kind, args), 0);
	assert_int_equal(strlen(args), SOFT_WIRE_ARGS_MAX);
	assert_int_equal(soft_wire_parse(text, sizeof(text), NULL, &kind, args), -EINVAL);
}

UNIT_GROUP(soft_wire_parse) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire_is_known_by_its_name),
		cmocka_unit_test(what_is_no_wire_is_refused_with_why),
		cmocka_unit_test(embedded_nul_is_no_end),
		cmocka_unit_test(device_may_be_as_long_as_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
