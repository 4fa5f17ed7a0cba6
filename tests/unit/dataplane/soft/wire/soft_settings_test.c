// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/soft_settings.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void without_a_word_there_is_one_device_on_an_address_that_is_free(void **state) {
	static const char *const words[][SOFT_SETTING_COUNT] = {
		{NULL, NULL, NULL, NULL},
		{"", "", "", ""},
		{"soft0", "udp", NULL, "loss=0"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		struct soft_config configs[SOFT_DEVICES_MAX];
		struct parse_error error;
		enum soft_setting wrong;
		uint32_t count = 0;

		assert_int_equal(soft_settings_read(words[i], &error, &wrong, configs, &count), 0);
		assert_int_equal(count, 1);
		assert_string_equal(configs[0].name, "soft0");
		assert_int_equal(configs[0].wire, SOFT_WIRE_UDP);
		assert_true(configs[0].address_any);
		assert_false(configs[0].faults.any);
		assert_null(configs[0].clock);
	}
}

static void each_of_several_devices_has_its_address_and_all_have_the_faults(void **state) {
	static const char *const words[SOFT_SETTING_COUNT] = {
		[SOFT_SETTING_NAME] = "a0,b-1,c_2.x",
		[SOFT_SETTING_ADDRESS] = "127.0.0.9,::1,10.1.2.3",
		[SOFT_SETTING_FAULTS] = "loss=1%,seed=7",
	};
	static const char *const names[] = {"a0", "b-1", "c_2.x"};
	static const char *const addresses[] = {"127.0.0.9", "::1", "10.1.2.3"};
	struct soft_config configs[SOFT_DEVICES_MAX];
	struct parse_error error;
	enum soft_setting wrong;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(soft_settings_read(words, &error, &wrong, configs, &count), 0);
	assert_int_equal(count, COUNT_OF(names));
	for (size_t n = 0; n < COUNT_OF(names); n++) {
		char text[SOCK_ADDR_TEXT_BYTES];

		sock_addr_format_host(&configs[n].address, text);
		assert_string_equal(configs[n].name, names[n]);
		assert_string_equal(text, addresses[n]);
		assert_false(configs[n].address_any);
		assert_int_equal(configs[n].faults.loss_ppm, 10000);
	}
}

static void a_port_of_dpdk_comes_with_its_arguments(void **state) {
	static const char *const words[SOFT_SETTING_COUNT] = {
		[SOFT_SETTING_WIRE] = "dpdk:net_af_packet0,iface=veth0",
		[SOFT_SETTING_ADDRESS] = "10.0.0.1",
	};
	struct soft_config configs[SOFT_DEVICES_MAX];
	struct parse_error error;
	enum soft_setting wrong;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(soft_settings_read(words, &error, &wrong, configs, &count), 0);
	assert_int_equal(configs[0].wire, SOFT_WIRE_DPDK);
	assert_string_equal(configs[0].wire_args, "net_af_packet0,iface=veth0");
}

#define LONG_16 "0123456789abcdef"
#define LONG_256                                                                                \
	LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 \
		LONG_16 LONG_16 LONG_16 LONG_16 LONG_16

static void what_is_wrong_is_named_with_its_value_and_what_is_allowed(void **state) {
	static const struct {
		const char *words[SOFT_SETTING_COUNT];
		enum soft_setting wrong;
		const char *text;
	} rows[] = {
		{{"a b"}, SOFT_SETTING_NAME, "\"a b\" is not a device name; use 1 to 31 "},
		{{LONG_16 LONG_16}, SOFT_SETTING_NAME, "is not a device name"},
		{{"a,,b"}, SOFT_SETTING_NAME, "\"\" is not a device name"},
		{{"a,"}, SOFT_SETTING_NAME, "\"\" is not a device name"},
		{{"a:1"}, SOFT_SETTING_NAME, "\"a:1\" is not a device name"},
		{{"a,b,a"}, SOFT_SETTING_NAME, "\"a\" is given twice"},
		{{"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"},
		 SOFT_SETTING_NAME,
		 "names too many devices; at most 16 are allowed"},
		{{NULL, "tcp"}, SOFT_SETTING_WIRE, "\"tcp\" is not a wire; use udp or dpdk:DEV"},
		{{NULL, "UDP"}, SOFT_SETTING_WIRE, "\"UDP\" is not a wire"},
		{{NULL, "udp "}, SOFT_SETTING_WIRE, "\"udp \" is not a wire"},
		{{NULL, "dpdk"}, SOFT_SETTING_WIRE, "\"dpdk\" is not a wire"},
		{{NULL, "dpdk:"}, SOFT_SETTING_WIRE, "\"dpdk:\" names no port"},
		{{NULL, "dpdk:a b"}, SOFT_SETTING_WIRE, "contains a space or a control character"},
		{{NULL, "dpdk:" LONG_256}, SOFT_SETTING_WIRE, "is longer than 255 bytes"},
		{{NULL, "memory"},
		 SOFT_SETTING_WIRE,
		 "\"memory\" connects only devices of one process"},
		{{"a,b", "dpdk:x", "10.0.0.1"}, SOFT_SETTING_WIRE, "is one port, but 2 devices"},
		{{NULL, "dpdk:x"}, SOFT_SETTING_ADDRESS, "must be given: a DPDK port"},
		{{NULL, NULL, "localhost"}, SOFT_SETTING_ADDRESS, "\"localhost\" "},
		{{NULL, NULL, "0.0.0.0"}, SOFT_SETTING_ADDRESS, "is the wildcard address"},
		{{NULL, NULL, "224.0.0.1"},
		 SOFT_SETTING_ADDRESS,
		 "is a multicast or broadcast address"},
		{{NULL, NULL, "255.255.255.255"},
		 SOFT_SETTING_ADDRESS,
		 "is a multicast or broadcast address"},
		{{"a,b", NULL, "::1,ff02::1"}, SOFT_SETTING_ADDRESS, "\"ff02::1\" is a multicast"},
		{{NULL, NULL, "127.0.0.1,"},
		 SOFT_SETTING_ADDRESS,
		 "does not have one address per device"},
		{{"a,b", NULL, "127.0.0.1"},
		 SOFT_SETTING_ADDRESS,
		 "does not have one address per device"},
		{{"a,b", NULL, "::1,::1"}, SOFT_SETTING_ADDRESS, "\"::1\" is given twice"},
		{{NULL, NULL, NULL, "loss=2"}, SOFT_SETTING_FAULTS, "\"loss=2\" "},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct soft_config configs[SOFT_DEVICES_MAX];
		struct parse_error error = {""};
		enum soft_setting wrong = SOFT_SETTING_COUNT;
		uint32_t count = 99;

		assert_true(soft_settings_read(rows[i].words, &error, &wrong, configs, &count) < 0);
		assert_int_equal(wrong, rows[i].wrong);
		if (strstr(error.text, rows[i].text) == NULL)
			fail_msg("row %zu: '%s' is not in '%s'", i, rows[i].text, error.text);
		assert_int_equal(count, 99);
	}
}

UNIT_GROUP(soft_settings) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_word_there_is_one_device_on_an_address_that_is_free),
		cmocka_unit_test(each_of_several_devices_has_its_address_and_all_have_the_faults),
		cmocka_unit_test(a_port_of_dpdk_comes_with_its_arguments),
		cmocka_unit_test(what_is_wrong_is_named_with_its_value_and_what_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
