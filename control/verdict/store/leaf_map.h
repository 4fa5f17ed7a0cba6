// SPDX-License-Identifier: BSD-3-Clause
// Leaf switch of each node, from a file with lines `LEAF: HOSTLIST`; '#' starts a comment.
#pragma once

#include <stddef.h>

struct leaf_map;

// Load a map. Returns 0, -errno if the file cannot be opened, -EINVAL with the error in ret_detail,
// or -ENOMEM.
int leaf_map_load(const char *path, char ret_detail[static 256], struct leaf_map **ret_map);
struct leaf_map *leaf_map_destroy(struct leaf_map *map);
// Return the leaf of a node, "" if no line lists it.
const char *leaf_map_leaf(const struct leaf_map *map, const char *name, size_t length);
