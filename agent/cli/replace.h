// SPDX-License-Identifier: BSD-3-Clause
// A file that is replaced as a whole: written beside it, then renamed.
#pragma once

#include <stdio.h>

typedef void replace_fn(FILE *out, const void *what);

// Mode 0644. 0 or -errno, and the file is as it was; a full disk shows here.
int replace_file(const char *file, replace_fn *write, const void *what);
