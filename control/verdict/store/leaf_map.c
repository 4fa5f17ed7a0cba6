// SPDX-License-Identifier: BSD-3-Clause
// Leaf switch of each node, from a file that the operator maintains:
//
//     leaf1: node[001-032]
//     leaf2: node[033-064],login1
//
// The map only attributes blame and never changes a verdict. A wrong file causes wrong texts, not
// wrong drains. It is read once, at start.
#include "verdict/store/leaf_map.h"

#include <lib/error.h>
#include <lib/hostlist.h>
#include <lib/scoped.h>
#include <ras/types.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 8192 // also in the text of the error
#define NODES_PER_LEAF_MAX 4096

struct leaf {
	char name[RAS_NAME_MAX + 1];
	struct hostlist *nodes;
};

struct leaf_map {
	struct leaf *leaves;
	uint32_t count, capacity;
};

struct leaf_map *leaf_map_destroy(struct leaf_map *map) {
	if (map == NULL)
		return NULL;
	for (uint32_t n = 0; n < map->count; n++)
		hostlist_destroy(map->leaves[n].nodes);
	free(map->leaves);
	free(map);
	return NULL;
}

const char *leaf_map_leaf(const struct leaf_map *map, const char *name, size_t length) {
	for (uint32_t n = 0; n < map->count; n++) {
		if (hostlist_contains(map->leaves[n].nodes, name, length))
			return map->leaves[n].name;
	}
	return "";
}

static int leaf_map_grow(struct leaf_map *map) {
	uint32_t capacity = map->capacity == 0 ? 64 : 2 * map->capacity;
	struct leaf *leaves;

	if (map->count < map->capacity)
		return 0;
	leaves = reallocarray(map->leaves, capacity, sizeof(*leaves));
	if (leaves == NULL)
		return -ENOMEM;
	map->leaves = leaves;
	map->capacity = capacity;
	return 0;
}

// Return a node that another leaf already has, or NULL. Blame could not be attributed to two
// leaves.
static const char *
find_node_in_other_leaf(const struct leaf_map *map, const struct hostlist *nodes) {
	for (uint32_t n = 0; n < hostlist_count(nodes); n++) {
		const char *name = hostlist_name(nodes, n);

		if (*leaf_map_leaf(map, name, strlen(name)) != '\0')
			return name;
	}
	return NULL;
}

static int leaf_line_error(char *detail, const char *path, uint32_t line, const char *what) {
	snprintf(detail, 256, "%.120s:%u: %.110s", path, line, what);
	return -EINVAL;
}

static size_t word_trim(const char **text, size_t length) {
	while (length > 0 && strchr(" \t\r\n", (*text)[length - 1]) != NULL)
		length--;
	while (length > 0 && strchr(" \t", **text) != NULL) {
		(*text)++;
		length--;
	}
	return length;
}

static int leaf_map_add_line(
	struct leaf_map *map, const char *path, uint32_t number, char *line, char *detail
) {
	const char *name = line, *nodes;
	struct hostlist *list = NULL;
	struct parse_error error;
	size_t name_length, nodes_length;
	const char *twice;
	char *colon, *comment = strchr(line, '#');
	int err;

	if (comment != NULL)
		*comment = '\0';
	if (word_trim(&name, strlen(line)) == 0)
		return 0;
	colon = strchr(line, ':');
	if (colon == NULL)
		return leaf_line_error(
			detail, path, number, "no ':' (LEAF: NODES, such as leaf1: node[001-032])"
		);
	name = line;
	name_length = word_trim(&name, (size_t)(colon - line));
	nodes = colon + 1;
	nodes_length = word_trim(&nodes, strlen(nodes));
	if (name_length == 0 || name_length > RAS_NAME_MAX)
		return leaf_line_error(
			detail, path, number, "the name of a leaf must have 1 to 63 bytes"
		);
	err = hostlist_expand(nodes, nodes_length, NODES_PER_LEAF_MAX, &error, &list);
	if (err != 0)
		return err == -ENOMEM ? err : leaf_line_error(detail, path, number, error.text);
	twice = find_node_in_other_leaf(map, list);
	if (twice != NULL) {
		snprintf(
			detail, 256, "%.100s:%u: %.64s is listed at another leaf already", path,
			number, twice
		);
		hostlist_destroy(list);
		return -EINVAL;
	}
	err = leaf_map_grow(map);
	if (err != 0) {
		hostlist_destroy(list);
		return err;
	}
	map->leaves[map->count].nodes = list;
	snprintf(map->leaves[map->count].name, RAS_NAME_MAX + 1, "%.*s", (int)name_length, name);
	map->count++;
	return 0;
}

int leaf_map_load(const char *path, char ret_detail[static 256], struct leaf_map **ret_map) {
	scoped_mem char *line = NULL;
	size_t line_bytes = 0;
	uint32_t number = 0;
	struct leaf_map *map;
	FILE *file = fopen(path, "re");
	int err;

	if (file == NULL) {
		err = neg_errno();
		snprintf(ret_detail, 256, "%.200s: %s", path, strerrordesc_np(-err));
		return err;
	}
	map = calloc(1, sizeof(*map));
	err = map != NULL ? 0 : -ENOMEM;
	while (err == 0 && getline(&line, &line_bytes, file) >= 0) {
		if (++number > LINES_MAX)
			err = leaf_line_error(
				ret_detail, path, number, "the file has more than 8192 lines"
			);
		else
			err = leaf_map_add_line(map, path, number, line, ret_detail);
	}
	if (err == 0 && ferror(file)) {
		snprintf(ret_detail, 256, "%.200s cannot be read", path);
		err = -EIO;
	}
	fclose(file);
	if (err != 0) {
		leaf_map_destroy(map);
		return err;
	}
	*ret_map = map;
	return 0;
}
