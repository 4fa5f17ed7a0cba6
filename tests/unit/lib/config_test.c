// SPDX-License-Identifier: BSD-3-Clause
// Tests of valid configurations; config_error_test.c has the invalid ones.
#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/config_sample.h>

#include <stdlib.h>

static void fail_on_message(void *context, const char *message) {
	(void)context;
	fail_msg("%s", message);
}

static const struct config_reporter no_message_expected = {.report = fail_on_message};

// Load the text of a file and at most four settings, the last of them NULL. Return the
// configuration.
static struct config *load(const char *text, const char *const settings[4]) {
	scoped_file FILE *stream = fmemopen((void *)text, strlen(text), "r");
	struct config_input input = {.path = "t.conf", .stream = stream, .settings = settings};
	struct config *config = NULL;

	while (settings != NULL && input.setting_count < 4 && settings[input.setting_count] != NULL)
		input.setting_count++;
	assert_non_null(stream);
	assert_int_equal(config_load(&sample_schema, &input, &no_message_expected, &config), 0);
	return config;
}

static const struct sample_settings *settings_of(const struct config *config) {
	return config_settings(config);
}

static void every_type_is_read_from_the_file(void **state) {
	struct config *config =
		load("; a comment\n"
		     "[probe]\n"
		     "enabled = no\n"
		     "interval=1.5s\n"
		     "  size :\t1KiB   # a comment\n"
		     "policy = event\r\n"
		     "tags = x ,y z,  w\n"
		     "[node] ; a comment\n"
		     "\n"
		     "name = it's \"q\" \\ Gr\xc3\xbc\xc3\x9f"
		     "e#1\n"
		     "[probe]\n"
		     "deadline = 250us\n"
		     "[ device   mlx5_0 ]\n"
		     "gid_index = 3",
		     NULL);
	const struct config_list *tags;

	(void)state;
	assert_false(settings_of(config)->probe.enabled);
	assert_int_equal(settings_of(config)->probe.interval_ns, 1500000000);
	assert_int_equal(settings_of(config)->probe.deadline_ns, 250000);
	assert_int_equal(settings_of(config)->probe.size_bytes, 1024);
	assert_int_equal(settings_of(config)->probe.policy, 2);
	assert_string_equal(
		settings_of(config)->node.name, "it's \"q\" \\ Gr\xc3\xbc\xc3\x9f"
						"e#1"
	);
	assert_int_equal(settings_of(config)->devices[0]->gid_index, 3);
	tags = &settings_of(config)->probe.tags;
	assert_int_equal(tags->count, 3);
	assert_string_equal(tags->items[0], "x");
	assert_string_equal(tags->items[1], "y z");
	assert_string_equal(tags->items[2], "w");
	config_destroy(config);
}

static void hostlist_and_processors_are_checked_and_kept_as_text(void **state) {
	struct config *config =
		load("[node]\njoin = node[001-128,200],login\ncores = 0-3,8\n", NULL);

	(void)state;
	assert_string_equal(settings_of(config)->node.join, "node[001-128,200],login");
	assert_string_equal(settings_of(config)->node.cores, "0-3,8");
	config_destroy(config);
}

static void key_that_is_not_given_has_its_default(void **state) {
	struct config_input nothing = {.path = NULL};
	struct config *config = NULL;

	(void)state;
	assert_int_equal(config_load(&sample_schema, &nothing, &no_message_expected, &config), 0);
	assert_true(settings_of(config)->probe.enabled);
	assert_int_equal(settings_of(config)->probe.interval_ns, 1000000000);
	assert_int_equal(settings_of(config)->probe.tags.count, 2);
	assert_string_equal(settings_of(config)->node.name, "");
	assert_null(settings_of(config)->devices[0]);
	config_destroy(config);
}

static void partial_schema_passes_over_all_keys_that_it_lacks(void **state) {
	struct config_schema partial = sample_schema;
	scoped_file FILE *stream = fmemopen(
		(void *)"[unknown]\nname = no\n[node]\ncolour = red\nname = x\n"
			"[unknown thing]\nname = no\n",
		75, "r"
	);
	struct config_input input = {.path = "t.conf", .stream = stream};
	struct config *config = NULL;

	(void)state;
	partial.partial = true;
	assert_int_equal(config_load(&partial, &input, &no_message_expected, &config), 0);
	assert_string_equal(settings_of(config)->node.name, "x");
	config_destroy(config);
}

static void empty_list_has_no_items(void **state) {
	struct config *config = load("[probe]\ntags =\n", NULL);

	(void)state;
	assert_int_equal(settings_of(config)->probe.tags.count, 0);
	config_destroy(config);
}

static void byte_order_mark_is_passed_over(void **state) {
	struct config *config = load("\xef\xbb\xbf[node]\nname = x\n", NULL);

	(void)state;
	assert_string_equal(settings_of(config)->node.name, "x");
	config_destroy(config);
}

static void setting_wins_over_file_and_default(void **state) {
	const char *const settings[4] = {
		"probe.size=8", "device.a.b.gid_index = 7 ",
		"node.name==a=", "check.disk.command=df"};
	struct config *config = load("[probe]\nsize = 16\ninterval = 2s\n", settings);

	(void)state;
	assert_int_equal(settings_of(config)->probe.size_bytes, 8);
	assert_int_equal(settings_of(config)->devices[0]->gid_index, 7);
	assert_string_equal(settings_of(config)->node.name, "=a=");
	assert_string_equal(settings_of(config)->checks[0]->command, "df");
	config_destroy(config);
}

static void named_sections_are_listed_in_the_order_they_came(void **state) {
	struct config *config =
		load("[device b]\n[check x]\ncommand = c\n[device a]\ngid_index = 1\n[device b]\n",
		     NULL);
	const struct sample_settings *settings = settings_of(config);

	(void)state;
	assert_string_equal(settings->devices[0]->section, "device b");
	assert_string_equal(config_section_name(settings->devices[0]->section), "b");
	assert_int_equal(settings->devices[0]->gid_index, -1);
	assert_string_equal(settings->devices[1]->section, "device a");
	assert_int_equal(settings->devices[1]->gid_index, 1);
	assert_null(settings->devices[2]);
	assert_string_equal(settings->checks[0]->section, "check x");
	assert_null(settings->checks[1]);
	config_destroy(config);
}

static void longest_line_value_and_name_are_taken_whole(void **state) {
	char name[CONFIG_NAME_BYTES_MAX + 1];
	char text[2 * CONFIG_LINE_BYTES_MAX];
	char section[128];
	struct config *config;

	(void)state;
	memset(name, 'n', CONFIG_NAME_BYTES_MAX);
	name[CONFIG_NAME_BYTES_MAX] = '\0';
	snprintf(
		text, sizeof(text), "[device %s]\ngid_index = %0*d%*s\r\n[node]\nname = %0*d\n",
		name, 60, 5, CONFIG_LINE_BYTES_MAX - 60 - 12, "", 64, 1
	);
	config = load(text, NULL);
	snprintf(section, sizeof(section), "device %s", name);
	assert_string_equal(settings_of(config)->devices[0]->section, section);
	assert_int_equal(settings_of(config)->devices[0]->gid_index, 5);
	assert_int_equal(strlen(settings_of(config)->node.name), 64);
	config_destroy(config);
}

static char *print(const struct config *config) {
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_non_null(stream);
	assert_int_equal(config_print(config, stream), 0);
	assert_int_equal(fclose(stream), 0);
	return text;
}

static void count_change(void *context, const struct config_change *change) {
	(void)change;
	++*(int *)context;
}

static void printed_configuration_says_where_values_came_from_and_reads_back_the_same(void **state
) {
	const char *const settings[4] = {"probe.policy=spin"};
	struct config *config =
		load("[device x]\ngid_index = 2\n[node]\n"
		     "name = a name that needs more than half of a line to write\n",
		     settings);
	scoped_mem char *text = print(config);
	struct config *again = load(text, NULL);
	int changes = 0;

	(void)state;
	assert_string_equal(
		text, "[node]\n"
		      "# t.conf:4\n"
		      "name = a name that needs more than half of a line to write\n"
		      "join =                                  # default\n"
		      "cores =                                 # default\n"
		      "\n"
		      "[probe]\n"
		      "enabled = yes                           # default\n"
		      "interval = 1s                           # default\n"
		      "deadline = 500ms                        # default\n"
		      "size = 4KiB                             # default\n"
		      "policy = spin                           # --set\n"
		      "tags = a, b                             # default\n"
		      "\n"
		      "[device x]\n"
		      "gid_index = 2                           # t.conf:2\n"
		      "rate =                                  # default\n"
	);
	assert_int_equal(config_compare(config, again, count_change, &changes), 0);
	assert_int_equal(changes, 0);
	config_destroy(config);
	config_destroy(again);
}

static void printing_to_a_full_disk_is_an_error(void **state) {
	struct config *config = load(" ", NULL);
	scoped_file FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_int_equal(config_print(config, full), -ENOSPC);
	config_destroy(config);
}

static void write_change(void *context, const struct config_change *change) {
	fprintf(context, "%s|%s|%s|%s|%s\n", change->section, change->key, change->before,
		change->after, change->reloadable ? "reload" : "restart");
}

static void compare_tells_what_a_reload_applies_and_what_needs_a_restart(void **state) {
	struct config *before =
		load("[probe]\ninterval = 1s\nsize = 8\ntags = a\n[check old]\ncommand = x\n"
		     "[device same]\n",
		     NULL);
	struct config *after =
		load("[probe]\ninterval = 1000ms\nsize = 16\ntags = b\n[device same]\n"
		     "[check new]\ncommand = x\n",
		     NULL);
	scoped_mem char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	assert_int_equal(config_compare(before, after, write_change, stream), 1);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(
		text, "probe|size|8|16|restart\n"
		      "probe|tags|a|b|reload\n"
		      "check old||present|absent|reload\n"
		      "check new||absent|present|reload\n"
	);
	config_destroy(before);
	config_destroy(after);
}

static void section_that_is_absent_is_compared_as_one_of_defaults(void **state) {
	struct config *with =
		load("[device a]\ngid_index = 3\nrate = 100\n[device b]\nrate = 200\n"
		     "[device c]\ngid_index = 4\n[device d]\ngid_index = -01\nrate =\n[device e]\n",
		     NULL);
	struct config *without = load("[node]\n", NULL);
	scoped_mem char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	assert_int_equal(config_compare(without, with, write_change, stream), 2);
	assert_int_equal(config_compare(with, without, write_change, stream), 2);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(
		text, "device a|gid_index|-1|3|restart\n"
		      "device a|rate||100|reload\n"
		      "device b|rate||200|reload\n"
		      "device c|gid_index|-1|4|restart\n"
		      "device a|gid_index|3|-1|restart\n"
		      "device a|rate|100||reload\n"
		      "device b|rate|200||reload\n"
		      "device c|gid_index|4|-1|restart\n"
	);
	config_destroy(with);
	config_destroy(without);
}

static void man_page_lists_every_key_with_what_it_takes(void **state) {
	scoped_mem char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	assert_non_null(stream);
	assert_int_equal(config_print_man(&sample_schema, stream), 0);
	assert_int_equal(fclose(stream), 0);
	for (size_t i = 0; i < sample_schema.key_count; i++) {
		char tag[64];

		snprintf(tag, sizeof(tag), ".TP\n\\fB%s\\fR (", sample_keys[i].name);
		assert_non_null(strstr(text, tag));
	}
	assert_non_null(
		strstr(text, ".TP\n\\fBsize\\fR (a size from 8B to 64KiB)\n"
			     "\\&.Bytes \\- of a probe\\emessage.\n"
			     "Default: \\fB4KiB\\fR.\nA change needs a restart.\n")
	);
	assert_non_null(
		strstr(text, ".SS \"[check NAME]\"\n.TP\n\\fBcommand\\fR (1 to 200 bytes of text)\n"
			     "What to run.\nMust be given.\nA reload applies a change.\n")
	);
}

static void destroy_takes_null(void **state) {
	(void)state;
	assert_null(config_destroy(NULL));
}

UNIT_GROUP(config) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_read_from_the_file),
		cmocka_unit_test(hostlist_and_processors_are_checked_and_kept_as_text),
		cmocka_unit_test(key_that_is_not_given_has_its_default),
		cmocka_unit_test(partial_schema_passes_over_all_keys_that_it_lacks),
		cmocka_unit_test(empty_list_has_no_items),
		cmocka_unit_test(byte_order_mark_is_passed_over),
		cmocka_unit_test(setting_wins_over_file_and_default),
		cmocka_unit_test(named_sections_are_listed_in_the_order_they_came),
		cmocka_unit_test(longest_line_value_and_name_are_taken_whole),
		cmocka_unit_test(
			printed_configuration_says_where_values_came_from_and_reads_back_the_same
		),
		cmocka_unit_test(printing_to_a_full_disk_is_an_error),
		cmocka_unit_test(compare_tells_what_a_reload_applies_and_what_needs_a_restart),
		cmocka_unit_test(section_that_is_absent_is_compared_as_one_of_defaults),
		cmocka_unit_test(man_page_lists_every_key_with_what_it_takes),
		cmocka_unit_test(destroy_takes_null),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
