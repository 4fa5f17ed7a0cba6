// SPDX-License-Identifier: BSD-3-Clause
// Directories that a test made for itself.
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

// The directory and all that is below it. 0, or not all of it could be removed.
static inline int tree_remove(const char *path) {
	return nftw(path, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
