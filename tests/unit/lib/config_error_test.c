// SPDX-License-Identifier: BSD-3-Clause
// Tests of the exact error messages for an invalid configuration, and that loading then returns
// none.
#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/config_sample.h>

#include <stdlib.h>

struct messages {
	char text[16384];
	size_t used;
	size_t count;
};

static void collect(void *context, const char *message) {
	struct messages *messages = context;
	size_t room = sizeof(messages->text) - messages->used;
	int n = snprintf(messages->text + messages->used, room, "%s\n", message);

	assert_in_range(n, 1, room - 1);
	messages->used += (size_t)n;
	messages->count++;
}

// Load a configuration that must be refused, and check that the output pointer is unchanged.
static int refuse(const struct config_input *input, struct messages *messages) {
	const struct config_reporter reporter = {.report = collect, .context = messages};
	struct config *const before = (struct config *)&reporter;
	struct config *config = before;
	int err;

	messages->used = 0;
	messages->count = 0;
	messages->text[0] = '\0';
	err = config_load(&sample_schema, input, &reporter, &config);
	assert_true(err < 0);
	assert_ptr_equal(config, before);
	return err;
}

static int refuse_bytes(const void *bytes, size_t size, struct messages *messages) {
	scoped_file FILE *stream = fmemopen((void *)bytes, size, "r");
	struct config_input input = {.path = "t.conf", .stream = stream};

	assert_non_null(stream);
	return refuse(&input, messages);
}

struct error_case {
	const char *text;
	const char *message;
};

static void check_cases(const struct error_case *cases, size_t count) {
	struct messages messages;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(
			refuse_bytes(cases[i].text, strlen(cases[i].text), &messages), -EINVAL
		);
		assert_string_equal(messages.text, cases[i].message);
	}
}

#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

static void bad_value_is_quoted_with_what_is_allowed(void **state) {
	static const struct error_case cases[] = {
		{"[probe]\nenabled = maybe\n",
		 "t.conf:2: [probe] enabled: \"maybe\" is neither yes nor no: yes, on, true, no, off or "
		 "false is needed\n"},
		{"[probe]\ninterval = 5x\n",
		 "t.conf:2: [probe] interval: \"5x\" is not a duration: a number followed by ns, us, ms, "
		 "s, m, h or d is needed; allowed: a duration from 10ms to 1h\n"},
		{"[device x]\ngid_index = 3x\n",
		 "t.conf:2: [device x] gid_index: \"3x\" is not a number: decimal digits, or 0x and "
		 "hexadecimal digits, are needed; allowed: a number from -1 to 255\n"},
		{"[probe]\nsize = 1kb\n",
		 "t.conf:2: [probe] size: \"1kb\" is not a size: a number, alone or followed by B, KiB, "
		 "MiB, GiB, TiB (1024) or k, M, G, T (1000), is needed; allowed: a size from 8B to "
		 "64KiB\n"},
		{"[probe]\ninterval = 9ms\n",
		 "t.conf:2: [probe] interval: \"9ms\" is out of range: 10ms to 1h is allowed\n"},
		{"[probe]\nsize = 4GiB\n",
		 "t.conf:2: [probe] size: \"4GiB\" is out of range: 8B to 64KiB is allowed\n"},
		{"[probe]\npolicy = spinn\n",
		 "t.conf:2: [probe] policy: \"spinn\" is not one of adaptive, spin, event\n"},
		{"[device x]\ngid_index = -2\n",
		 "t.conf:2: [device x] gid_index: \"-2\" is out of range: -1 to 255 is allowed\n"},
		{"[device x]\ngid_index = 99999999999999999999\n",
		 "t.conf:2: [device x] gid_index: \"99999999999999999999\" is out of range: -1 to 255 is "
		 "allowed\n"},
		{"[node]\njoin = node[2-1]\n",
		 "t.conf:2: [node] join: \"node[2-1]\" has a range that runs backwards; allowed: a "
		 "hostlist such as node[001-128]\n"},
		{"[node]\ncores = 3-\n",
		 "t.conf:2: [node] cores: \"3-\" is not a set of CPUs: numbers and ranges "
		 "separated by commas are needed, such as 0-3,8; allowed: processors such as "
		 "0-3,8\n"},
		{"[check x]\ncommand =\n",
		 "t.conf:2: [check x] command: \"\" has 0 bytes; allowed: 1 to 200 bytes of text\n"},
		{"[probe]\ntags = a,,b\n",
		 "t.conf:2: [probe] tags: \"a,,b\" has an empty item; allowed: up to 3 items separated "
		 "by commas\n"},
		{"[probe]\ntags = a,b,c,d\n",
		 "t.conf:2: [probe] tags: \"a,b,c,d\" has 4 items; allowed: up to 3 items separated by "
		 "commas\n"},
		{"[probe]\ntags = a, B\n",
		 "t.conf:2: [probe] tags: \"B\" has upper case; allowed: up to 3 items separated by "
		 "commas\n"},
		{"[probe]\ntags = B;b\n",
		 "t.conf:2: [probe] tags: \"B;b\" has upper case; allowed: up to 3 items separated "
		 "by commas\n"},
		{"[node]\nname =#1\n",
		 "t.conf:2: [node] name: a value cannot begin with #, which begins a comment\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void unknown_name_comes_with_the_nearest_one_or_all(void **state) {
	static const struct error_case cases[] = {
		{"[probe]\nintervall = 1s\n",
		 "t.conf:2: unknown key \"intervall\" in [probe], did you mean \"interval\"?\n"},
		{"[node]\nfrobnicate = 1\n",
		 "t.conf:2: unknown key \"frobnicate\" in [node], known are: name, join, cores\n"},
		{"[porbe]\nanything = 1\n",
		 "t.conf:1: unknown section \"porbe\", did you mean \"probe\"?\n"},
		{"[frobnicate]\n",
		 "t.conf:1: unknown section \"frobnicate\", known are: node, probe, device, check\n"},
		{"[devices x]\n",
		 "t.conf:1: unknown section \"devices\", did you mean \"device\"?\n"},
		{"[]\n", "t.conf:1: unknown section \"\", known are: node, probe, device, check\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void line_that_is_no_line_is_named(void **state) {
	static const struct error_case cases[] = {
		{"name = x\n", "t.conf:1: the key is before the first [section]\n"},
		{"[node]\nname\n", "t.conf:2: [node] name has no value, write name = VALUE\n"},
		{"[node]\n= x\n", "t.conf:2: the value has no key\n"},
		{"[node\nname = skipped\n", "t.conf:1: the section header has no closing ]\n"},
		{"[node] x\nname = skipped\n",
		 "t.conf:1: only a comment may follow a section header\n"},
		{"[device]\ngid_index = skipped\n",
		 "t.conf:1: the section needs a name: [device NAME]\n"},
		{"[node x]\n", "t.conf:1: [node] takes no name, but \"x\" is given\n"},
		{"[device a/b]\n",
		 "t.conf:1: \"a/b\" is not a valid section name; allowed are up to 64 of A-Z a-z "
		 "0-9 _ . : "
		 "-\n"},
		{"[device a b]\n",
		 "t.conf:1: \"a b\" is not a valid section name; allowed are up to 64 of A-Z a-z "
		 "0-9 _ . : "
		 "-\n"},
		{"[check disk]\n", "t.conf:1: [check disk] needs the key command\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void duplicate_names_both_lines(void **state) {
	static const struct error_case cases[] = {
		{"[node]\nname = a\n\n[probe]\n[node]\nname = a\n",
		 "t.conf:6: [node] name is already set in line 2\n"},
		{"[probe]\nsize = 1\nsize = 8\n",
		 "t.conf:2: [probe] size: \"1\" is out of range: 8B to 64KiB is allowed\n"
		 "t.conf:3: [probe] size is already set in line 2\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void keys_that_contradict_each_other_are_named_with_their_origin(void **state) {
	static const struct error_case cases[] = {
		{"[probe]\ninterval = 1s\ndeadline = 2s\n",
		 "t.conf:3: [probe] deadline = \"2s\": must not be longer than interval\n"},
		{"[probe]\ninterval = 10ms\n",
		 "default: [probe] deadline = \"500ms\": must not be longer than interval\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void contradictions_are_found_among_what_is_right_beside_wrong_values(void **state) {
	static const struct error_case cases[] = {
		{"[probe]\nsize = 1\ninterval = 1s\ndeadline = 2s\n",
		 "t.conf:2: [probe] size: \"1\" is out of range: 8B to 64KiB is allowed\n"
		 "t.conf:4: [probe] deadline = \"2s\": must not be longer than interval\n"},
		// A wrong value is replaced by its default; the default must cause no further
		// errors.
		{"[probe]\ninterval = 9ms\ndeadline = 2s\n",
		 "t.conf:2: [probe] interval: \"9ms\" is out of range: 10ms to 1h is allowed\n"},
		{"[probe]\ninterval = 1s\ndeadline = x\ndeadline = 2s\n",
		 "t.conf:3: [probe] deadline: \"x\" is not a duration: a number followed by ns, us, "
		 "ms, s, m, h or d is needed; allowed: a duration from 0s to 1h\n"
		 "t.conf:4: [probe] deadline is already set in line 3\n"},
		// The same for a key without a default.
		{"[check x]\n[probe]\ninterval = 1s\ndeadline = 2s\n",
		 "t.conf:1: [check x] needs the key command\n"
		 "t.conf:4: [probe] deadline = \"2s\": must not be longer than interval\n"},
		{"[check x]\ncommand =\n[probe]\ninterval = 1s\ndeadline = 2s\n",
		 "t.conf:2: [check x] command: \"\" has 0 bytes; allowed: 1 to 200 bytes of text\n"
		 "t.conf:5: [probe] deadline = \"2s\": must not be longer than interval\n"},
	};

	(void)state;
	CHECK_CASES(cases);
}

static void every_error_of_a_file_and_of_the_settings_is_reported(void **state) {
	static const char text[] =
		"[probe]\nsize = 1\n[prob]\n[device]\nshare = 1\n[node]\nnme = x\n";
	static const char *const settings[] = {"probe.size=2", "nonsense"};
	scoped_file FILE *stream = fmemopen((void *)text, strlen(text), "r");
	struct config_input input = {
		.path = "t.conf", .stream = stream, .settings = settings, .setting_count = 2};
	struct messages messages;

	(void)state;
	assert_int_equal(refuse(&input, &messages), -EINVAL);
	assert_string_equal(
		messages.text,
		"t.conf:2: [probe] size: \"1\" is out of range: 8B to 64KiB is allowed\n"
		"t.conf:3: unknown section \"prob\", did you mean \"probe\"?\n"
		"t.conf:4: the section needs a name: [device NAME]\n"
		"t.conf:7: unknown key \"nme\" in [node], did you mean \"name\"?\n"
		"--set \"probe.size=2\": [probe] size: \"2\" is out of range: 8B to 64KiB is allowed\n"
		"--set \"nonsense\": not of the form section.key=value or section.name.key=value\n"
	);
}

static void bad_setting_is_quoted(void **state) {
	static const struct error_case cases[] = {
		{"", "--set \"\": not of the form section.key=value or section.name.key=value\n"},
		{"size=8",
		 "--set \"size=8\": not of the form section.key=value or section.name.key=value\n"},
		{"probe.sise=8",
		 "--set \"probe.sise=8\": unknown key \"sise\" in [probe], did you mean \"size\"?\n"},
		{"prob.size=8",
		 "--set \"prob.size=8\": unknown section \"prob\", did you mean \"probe\"?\n"},
		{"device.gid_index=1",
		 "--set \"device.gid_index=1\": the section needs a name: [device NAME]\n"},
		{"device x.gid_index=1",
		 "--set \"device x.gid_index=1\": unknown section \"device x\", did you mean "
		 "\"device\"?\n"},
		{"node.x.name=1",
		 "--set \"node.x.name=1\": [node] takes no name, but \"x\" is given\n"},
		{"node.name=a\nb",
		 "--set \"node.name=a\\nb\": byte 2 is \\n; allowed is UTF-8 without control "
		 "characters\n"},
		{"node.name=\xff",
		 "--set \"node.name=\\xff\": byte 1 is \\xff; allowed is UTF-8 without control "
		 "characters\n"},
		{"node.name=a #b",
		 "--set \"node.name=a #b\": # after a blank begins a comment and cannot be in a "
		 "value\n"},
		{"node.name= ;b",
		 "--set \"node.name= ;b\": [node] name: a value cannot begin with ;, which begins a "
		 "comment\n"},
	};
	struct messages messages;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config_input input = {.settings = &cases[i].text, .setting_count = 1};

		assert_int_equal(refuse(&input, &messages), -EINVAL);
		assert_string_equal(messages.text, cases[i].message);
	}
}

static void setting_longer_than_a_line_is_an_error(void **state) {
	char setting[CONFIG_LINE_BYTES_MAX + 2];
	const char *settings = setting;
	struct config_input input = {.settings = &settings, .setting_count = 1};
	struct messages messages;

	(void)state;
	memset(setting, 'x', sizeof(setting) - 1);
	setting[sizeof(setting) - 1] = '\0';
	assert_int_equal(refuse(&input, &messages), -EINVAL);
	assert_non_null(strstr(messages.text, "xxx\"...: longer than 4096 bytes\n"));
}

static void key_set_twice_is_an_error(void **state) {
	static const char *const settings[] = {"probe.size=8", "probe.size=8"};
	struct config_input input = {.settings = settings, .setting_count = 2};
	struct messages messages;

	(void)state;
	assert_int_equal(refuse(&input, &messages), -EINVAL);
	assert_string_equal(messages.text, "--set \"probe.size=8\": [probe] size is set twice\n");
}

static void byte_that_is_not_text_is_named_with_its_line(void **state) {
	static const struct {
		const char *bytes;
		size_t size;
		const char *message;
	} cases[] = {
		{"[node]\nname = a\0b\n", 18, "byte 9 is \\x00"},
		{"\n\0[node]\n", 9, "byte 1 is \\x00"},
		{"[node]\n# \xff\n", 11, "byte 3 is \\xff"},
		{"[node]\nname = \xc0\xaf\n", 17, "byte 8 is \\xc0"},
		{"[node]\nname = \x1b[2J\n", 19, "byte 8 is \\x1b"},
		{"[node]\nname = \xe2\x82", 16, "byte 8 is \\xe2"},
		{"[node]\nname = a\rb\n", 18, "byte 9 is \\r"},
	};
	struct messages messages;
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(refuse_bytes(cases[i].bytes, cases[i].size, &messages), -EINVAL);
		snprintf(
			expected, sizeof(expected),
			"t.conf:2: %s; allowed is UTF-8 without control characters\n",
			cases[i].message
		);
		assert_string_equal(messages.text, expected);
	}
}

static void line_too_long_is_named_and_never_split(void **state) {
	char text[2 * CONFIG_LINE_BYTES_MAX];
	struct messages messages;

	(void)state;
	snprintf(text, sizeof(text), "[node]\nname = %*s\n", CONFIG_LINE_BYTES_MAX - 6, "x");
	assert_int_equal(refuse_bytes(text, strlen(text), &messages), -EINVAL);
	assert_string_equal(messages.text, "t.conf:2: the line has 4097 bytes; allowed are 4096\n");
	snprintf(text, sizeof(text), "[node]\nname = %0*d\n", CONFIG_VALUE_BYTES_MAX + 1, 0);
	assert_int_equal(refuse_bytes(text, strlen(text), &messages), -EINVAL);
	assert_string_equal(
		messages.text, "t.conf:2: [node] name: the value has 4001 bytes; allowed are 4000\n"
	);
}

static void header_too_long_takes_its_keys_with_it(void **state) {
	char text[2 * CONFIG_LINE_BYTES_MAX];
	struct messages messages;

	(void)state;
	snprintf(
		text, sizeof(text), "[node]\n [device %0*d]\ngid_index = 1\n",
		CONFIG_LINE_BYTES_MAX, 0
	);
	assert_int_equal(refuse_bytes(text, strlen(text), &messages), -EINVAL);
	assert_int_equal(messages.count, 1);
}

static void file_too_large_is_refused_whole(void **state) {
	scoped_mem char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
	struct messages messages;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', CONFIG_FILE_BYTES_MAX + 1);
	assert_int_equal(refuse_bytes(text, CONFIG_FILE_BYTES_MAX + 1, &messages), -EFBIG);
	assert_string_equal(messages.text, "t.conf: larger than 1048576 bytes\n");
}

static void too_many_sections_are_refused(void **state) {
	scoped_mem char *text = NULL;
	struct messages messages;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	for (int i = 0; i < CONFIG_SECTIONS_MAX - 1; i++) // two sections exist already
		fprintf(stream, "[device d%d]\n", i);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(refuse_bytes(text, size, &messages), -EINVAL);
	assert_string_equal(messages.text, "t.conf:255: more than 256 sections\n");
}

static void file_that_cannot_be_read_says_why(void **state) {
	struct config_input missing = {.path = "/nonexistent/t.conf"};
	struct config_input directory = {.path = "/"};
	struct messages messages;

	(void)state;
	assert_int_equal(refuse(&missing, &messages), -ENOENT);
	assert_string_equal(
		messages.text, "/nonexistent/t.conf: cannot be read: No such file or directory\n"
	);
	assert_int_equal(refuse(&directory, &messages), -EISDIR);
	assert_string_equal(messages.text, "/: cannot be read: Is a directory\n");
}

UNIT_GROUP(config_error) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_value_is_quoted_with_what_is_allowed),
		cmocka_unit_test(unknown_name_comes_with_the_nearest_one_or_all),
		cmocka_unit_test(line_that_is_no_line_is_named),
		cmocka_unit_test(duplicate_names_both_lines),
		cmocka_unit_test(keys_that_contradict_each_other_are_named_with_their_origin),
		cmocka_unit_test(contradictions_are_found_among_what_is_right_beside_wrong_values),
		cmocka_unit_test(every_error_of_a_file_and_of_the_settings_is_reported),
		cmocka_unit_test(bad_setting_is_quoted),
		cmocka_unit_test(setting_longer_than_a_line_is_an_error),
		cmocka_unit_test(key_set_twice_is_an_error),
		cmocka_unit_test(byte_that_is_not_text_is_named_with_its_line),
		cmocka_unit_test(line_too_long_is_named_and_never_split),
		cmocka_unit_test(header_too_long_takes_its_keys_with_it),
		cmocka_unit_test(file_too_large_is_refused_whole),
		cmocka_unit_test(too_many_sections_are_refused),
		cmocka_unit_test(file_that_cannot_be_read_says_why),
	};

	return cmocka_run_group_tests_name("config_error", tests, NULL, NULL);
}
