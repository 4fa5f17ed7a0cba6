// SPDX-License-Identifier: BSD-3-Clause
// Removal of directories that a test created.
#pragma once

#include <ftw.h>
#include <stdio.h>

static inline int
tree_remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
	(void)info;
	(void)kind;
	(void)walk;
	return remove(path);
}

// Remove a directory with its contents. Returns 0, or nonzero if a part could not be removed.
static inline int tree_remove(const char *path) {
	return nftw(path, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
