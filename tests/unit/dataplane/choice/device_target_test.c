// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/device_choice.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void every_target_is_read_and_written_alike(void **state) {
	static const struct {
		const char *text;
		struct device_target target;
	} cases[] = {
		{"auto", {DEVICE_TARGET_AUTO, 0, ""}},
		{"best", {DEVICE_TARGET_BEST, 0, ""}},
		{"soft", {DEVICE_TARGET_SOFT, 0, ""}},
		{"none", {DEVICE_TARGET_NONE, 0, ""}},
		{"cpu:0", {DEVICE_TARGET_CPU, 0, ""}},
		{"cpu:4095", {DEVICE_TARGET_CPU, 4095, ""}},
		{"cuda:7", {DEVICE_TARGET_CUDA, 7, ""}},
		{"nic:mlx5_0", {DEVICE_TARGET_NIC, 0, "mlx5_0"}},
		{"nic:none", {DEVICE_TARGET_NIC, 0, "none"}},
		{"nic:a:b", {DEVICE_TARGET_NIC, 0, "a:b"}},
		{"nic:rocep193s0f0v12-and-31-bytes..", {DEVICE_TARGET_NIC, 0, ""}},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		char text[DEVICE_TARGET_TEXT_BYTES];
		struct device_target target;
		const char *given = cases[n].text;

		assert_int_equal(device_target_parse(given, strlen(given), NULL, &target), 0);
		assert_int_equal(target.kind, cases[n].target.kind);
		assert_int_equal(target.number, cases[n].target.number);
		if (cases[n].target.name[0] != '\0')
			assert_string_equal(target.name, cases[n].target.name);
		device_target_format(&target, text);
		assert_string_equal(text, given);
	}
}

static void a_malformed_target_is_refused_with_its_value_and_what_is_allowed(void **state) {
#define FORMS " is not allowed: use auto, best, nic:NAME, cpu:N, cuda:N, soft or none"
#define NAME \
	" is not allowed: nic: needs a device name of 1 to 31 printable bytes without blank or /"
#define CPU " is not allowed: cpu: needs a number from 0 to 4095"
#define CUDA " is not allowed: cuda: needs a number from 0 to 4095"
	static const struct {
		const char *text;
		int err;
		const char *error;
	} cases[] = {
		{"", -EINVAL, "\"\"" FORMS},
		{"Auto", -EINVAL, "\"Auto\"" FORMS},
		{"auto ", -EINVAL, "\"auto \"" FORMS},
		{" auto", -EINVAL, "\" auto\"" FORMS},
		{"auto:", -EINVAL, "\"auto:\"" FORMS},
		{"cpu", -EINVAL, "\"cpu\"" FORMS},
		{"cuda", -EINVAL, "\"cuda\"" FORMS},
		{"nic", -EINVAL, "\"nic\"" FORMS},
		{"gpu:0", -EINVAL, "\"gpu:0\"" FORMS},
		{"mlx5_0", -EINVAL, "\"mlx5_0\"" FORMS},
		{"soft:0", -EINVAL, "\"soft:0\"" FORMS},
		{"\x1b[2J", -EINVAL, "\"\\x1b[2J\"" FORMS},
		{"cpu:", -EINVAL, "\"cpu:\"" CPU},
		{"cpu: 1", -EINVAL, "\"cpu: 1\"" CPU},
		{"cpu:1 ", -EINVAL, "\"cpu:1 \"" CPU},
		{"cpu:0-1", -EINVAL, "\"cpu:0-1\"" CPU},
		{"cpu:-1", -ERANGE, "\"cpu:-1\"" CPU},
		{"cpu:4096", -ERANGE, "\"cpu:4096\"" CPU},
		{"cuda:x", -EINVAL, "\"cuda:x\"" CUDA},
		{"cuda:all", -EINVAL, "\"cuda:all\"" CUDA},
		{"cuda:99999999999999999999", -ERANGE, "\"cuda:99999999999999999999\"" CUDA},
		{"nic:", -EINVAL, "\"nic:\"" NAME},
		{"nic:a b", -EINVAL, "\"nic:a b\"" NAME},
		{"nic:../x", -EINVAL, "\"nic:../x\"" NAME},
		{"nic:a\n", -EINVAL, "\"nic:a\\n\"" NAME},
		{"nic:\xc3\xa9", -EINVAL, "\"nic:\xc3\xa9\"" NAME},
		{"nic:name-that-is-32-bytes-long-1234567", -EINVAL,
		 "\"nic:name-that-is-32-bytes-long-1234567\"" NAME},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct device_target target = {.number = 77};
		struct parse_error error;
		const char *given = cases[n].text;

		assert_int_equal(
			device_target_parse(given, strlen(given), &error, &target), cases[n].err
		);
		assert_string_equal(error.text, cases[n].error);
		assert_int_equal(target.number, 77);
	}
}

static void a_byte_of_zero_does_not_end_a_target(void **state) {
	struct device_target target;

	(void)state;
	assert_int_equal(device_target_parse("auto\0x", 6, NULL, &target), -EINVAL);
	assert_int_equal(device_target_parse("nic:a\0b", 7, NULL, &target), -EINVAL);
	assert_int_equal(device_target_parse("cpu:1\0", 6, NULL, &target), -EINVAL);
}

UNIT_GROUP(device_target) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_target_is_read_and_written_alike),
		cmocka_unit_test(a_malformed_target_is_refused_with_its_value_and_what_is_allowed),
		cmocka_unit_test(a_byte_of_zero_does_not_end_a_target),
	};

	return cmocka_run_group_tests_name("device_target", tests, NULL, NULL);
}
