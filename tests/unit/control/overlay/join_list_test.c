// SPDX-License-Identifier: BSD-3-Clause
#include <control/join_list.h>
#include <control/loop.h>
#include <lib/parse.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_PORT 28030

struct bench {
	struct clock clock;
	struct loop *loop;
	struct join_list *list;
	uint32_t passes;
	uint32_t count, failures;
	struct sock_addr seeds[64];
	char error[PARSE_ERROR_BYTES + 64];
};

static void
take(void *ctx, const struct sock_addr *seeds, uint32_t count, uint32_t failures, const char *error
) {
	struct bench *bench = ctx;

	bench->passes++;
	bench->count = count;
	bench->failures = failures;
	snprintf(bench->error, sizeof(bench->error), "%s", error);
	memcpy(bench->seeds, seeds, (count < 64 ? count : 64) * sizeof(*seeds));
}

static void wait_pass(struct bench *bench) {
	uint32_t before = bench->passes;

	while (bench->passes == before)
		assert_int_equal(loop_turn(bench->loop, -1), 0);
}

static void begin(struct bench *bench, const char *text) {
	const struct join_list_ops ops = {.resolved = take, .ctx = bench};

	memset(bench, 0, sizeof(*bench));
	clock_init_monotonic(&bench->clock);
	assert_int_equal(loop_create(&bench->clock, &bench->loop), 0);
	assert_int_equal(
		join_list_create(
			bench->loop, text, DEFAULT_PORT, SOCK_ADDR_NONE, &ops, &bench->list
		),
		0
	);
	wait_pass(bench);
}

static void end(struct bench *bench) {
	bench->list = join_list_destroy(bench->list);
	bench->loop = loop_destroy(bench->loop);
}

// Return all addresses found, separated by blanks.
static const char *found(const struct bench *bench) {
	static char text[64 * SOCK_ADDR_TEXT_BYTES];
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t n = 0; n < bench->count; n++) {
		char one[SOCK_ADDR_TEXT_BYTES];

		sock_addr_format(&bench->seeds[n], one);
		used += (size_t
		)snprintf(text + used, sizeof(text) - used, "%s%s", n > 0 ? " " : "", one);
	}
	return text;
}

static void items_of_every_kind_become_addresses_in_order_once(void **state) {
	static const struct {
		const char *text, *addresses;
	} rows[] = {
		{"127.0.0.1", "127.0.0.1:28030"},
		{"127.0.0.2:5, 127.0.0.1", "127.0.0.1:28030 127.0.0.2:5"},
		{"127.0.0.1,127.0.0.1,127.0.0.1:28030", "127.0.0.1:28030"},
		{"[::1]:7", "[::1]:7"},
		{" 127.0.0.1 ,, 127.0.0.3 ", "127.0.0.1:28030 127.0.0.3:28030"},
		// Names of digits and dots are addresses, so this hostlist needs no resolver.
		{"127.0.0.[1-3,9]", "127.0.0.1:28030 127.0.0.2:28030 127.0.0.3:28030 "
				    "127.0.0.9:28030"},
		{"127.0.[1-2].[1-2]:9", "127.0.1.1:9 127.0.1.2:9 127.0.2.1:9 127.0.2.2:9"},
	};
	struct bench bench;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		begin(&bench, rows[n].text);
		assert_string_equal(found(&bench), rows[n].addresses);
		assert_int_equal(bench.failures, 0);
		end(&bench);
	}
}

static void what_cannot_be_used_is_counted_and_the_first_named(void **state) {
	struct bench bench;

	(void)state;
	begin(&bench, "/nowhere/seeds,127.0.0.1,127.0.0.1:99999");
	assert_string_equal(found(&bench), "127.0.0.1:28030");
	assert_int_equal(bench.failures, 2);
	assert_non_null(strstr(bench.error, "/nowhere/seeds"));
	end(&bench);
}

static void a_file_is_read_anew_in_each_pass(void **state) {
	char path[] = "/tmp/tocsin-seeds-XXXXXX";
	int fd = mkstemp(path);
	static const char before[] = "# seeds\n127.0.0.1 # the first\n\n127.0.0.[4-5]\n";
	static const char after[] = "127.0.0.8";
	struct bench bench;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, before, strlen(before)), strlen(before));
	begin(&bench, path);
	assert_string_equal(found(&bench), "127.0.0.1:28030 127.0.0.4:28030 127.0.0.5:28030");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, after, strlen(after), 0), strlen(after));
	join_list_refresh(bench.list);
	wait_pass(&bench);
	assert_string_equal(found(&bench), "127.0.0.8:28030");
	end(&bench);
	close(fd);
	unlink(path);
}

static void a_long_line_of_a_file_is_one_line(void **state) {
	char path[] = "/tmp/tocsin-seeds-XXXXXX";
	char blanks[1500];
	struct bench bench;
	FILE *file;

	(void)state;
	memset(blanks, ' ', sizeof(blanks));
	file = fdopen(mkstemp(path), "w");
	assert_non_null(file);
	// If the line were read in pieces, the comment's end would become a seed, and an address
	// would be split.
	fprintf(file, "#%.*s127.0.0.1\n", (int)sizeof(blanks), blanks);
	fprintf(file, "127.0.0.2,%.500s127.0.0.3\n", blanks);
	assert_int_equal(fclose(file), 0);
	begin(&bench, path);
	assert_string_equal(found(&bench), "127.0.0.2:28030 127.0.0.3:28030");
	assert_int_equal(bench.failures, 0);
	end(&bench);
	unlink(path);
}

static void a_list_may_be_destroyed_while_a_pass_is_under_way(void **state) {
	struct bench bench;

	(void)state;
	for (int n = 0; n < 20; n++) {
		begin(&bench, "127.0.0.1");
		join_list_refresh(bench.list);
		end(&bench);
	}
}

static void a_text_that_is_no_list_is_refused_by_its_item(void **state) {
	static const struct {
		const char *text;
		int err;
		const char *quoted;
	} rows[] = {
		{"", 0, ""},
		{"node1", 0, ""},
		{"node[001-128]:28030, login1", 0, ""},
		{"/etc/tocsin/seeds", 0, ""},
		{"[::1]", 0, ""},
		{"node1,", -EINVAL, ""},
		{",", -EINVAL, ""},
		{"node[1-", -EINVAL, "node[1-"},
		{"node[9-1]", -EINVAL, "9-1"},
		{"127.0.0.1:70000", -ERANGE, "70000"},
		{"[::1", -EINVAL, "[::1"},
		{"10.0.0.1:28030:1", -EINVAL, "10.0.0.1:28030:1"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct parse_error error = {0};
		int err = join_list_check(rows[n].text, strlen(rows[n].text), &error);

		if (err != rows[n].err)
			fail_msg("%s: %d %s", rows[n].text, err, error.text);
		if (strstr(error.text, rows[n].quoted) == NULL)
			fail_msg("%s: %s", rows[n].text, error.text);
	}
}

UNIT_GROUP(join_list) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_of_every_kind_become_addresses_in_order_once),
		cmocka_unit_test(what_cannot_be_used_is_counted_and_the_first_named),
		cmocka_unit_test(a_file_is_read_anew_in_each_pass),
		cmocka_unit_test(a_long_line_of_a_file_is_one_line),
		cmocka_unit_test(a_list_may_be_destroyed_while_a_pass_is_under_way),
		cmocka_unit_test(a_text_that_is_no_list_is_refused_by_its_item),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
