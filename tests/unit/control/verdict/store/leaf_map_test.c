// SPDX-License-Identifier: BSD-3-Clause
#include "verdict/store/leaf_map.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/map-XXXXXX";
static char detail[256];

static int make_file(void **state) {
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int remove_file(void **state) {
	(void)state;
	return unlink(path);
}

static int load(const char *text, struct leaf_map **ret_map) {
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	detail[0] = '\0';
	return leaf_map_load(path, detail, ret_map);
}

static const char *leaf(const struct leaf_map *map, const char *node) {
	return leaf_map_leaf(map, node, strlen(node));
}

static void each_node_is_at_the_leaf_of_its_line(void **state) {
	struct leaf_map *map;

	(void)state;
	assert_int_equal(
		load("# racks 1 and 2\n\n leaf1 : node[001-032]\r\nleaf2:login1, node033 # new\n",
		     &map),
		0
	);
	assert_string_equal(leaf(map, "node001"), "leaf1");
	assert_string_equal(leaf(map, "node032"), "leaf1");
	assert_string_equal(leaf(map, "node033"), "leaf2");
	assert_string_equal(leaf(map, "login1"), "leaf2");
	assert_string_equal(leaf(map, "node1"), "");
	leaf_map_destroy(map);
}

static void empty_file_names_no_leaf(void **state) {
	struct leaf_map *map;

	(void)state;
	assert_int_equal(load("", &map), 0);
	assert_string_equal(leaf(map, "node001"), "");
	leaf_map_destroy(map);
}

static void mistake_is_named_with_its_line_and_nothing_is_loaded(void **state) {
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"leaf1 node1\n", ":1: no ':'"},
		{"leaf1: node1\n: node2\n", ":2: the name of a leaf"},
		{"leaf1: node[1-\n", ":1: "},
		{"leaf1:\n", ":1: "},
		{"leaf1: node[1-4]\nleaf2: node4\n", ":2: node4 is listed at another leaf already"},
		{"leaf1: node[1-999999]\n", ":1: "},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct leaf_map *map = NULL;

		assert_int_equal(load(cases[n].text, &map), -EINVAL);
		assert_null(map);
		assert_non_null(strstr(detail, cases[n].says));
		assert_non_null(strstr(detail, path));
	}
}

static void file_that_cannot_be_read_is_an_error_that_names_it(void **state) {
	struct leaf_map *map = NULL;

	(void)state;
	assert_int_equal(leaf_map_load("/nonexistent/leaves", detail, &map), -ENOENT);
	assert_non_null(strstr(detail, "/nonexistent/leaves"));
	assert_int_equal(leaf_map_load("/tmp", detail, &map), -EIO);
	assert_null(map);
}

UNIT_GROUP(leaf_map) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_node_is_at_the_leaf_of_its_line),
		cmocka_unit_test(empty_file_names_no_leaf),
		cmocka_unit_test(mistake_is_named_with_its_line_and_nothing_is_loaded),
		cmocka_unit_test(file_that_cannot_be_read_is_an_error_that_names_it),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
