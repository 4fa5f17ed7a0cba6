// SPDX-License-Identifier: BSD-3-Clause
// Which leaf switch a node is at. Lines of the file are `LEAF: HOSTLIST`; '#' begins a comment.
#pragma once

#include <stddef.h>

struct leaf_map;

// -errno of the file, -EINVAL with what is wrong in words, -ENOMEM.
int leaf_map_load(const char *path, char ret_detail[static 256], struct leaf_map **ret_map);
struct leaf_map *leaf_map_destroy(struct leaf_map *map);
// "": it is in no line.
const char *leaf_map_leaf(const struct leaf_map *map, const char *name, size_t length);
