// SPDX-License-Identifier: BSD-3-Clause
// A file that is replaced as a whole: written beside it, then renamed.
#pragma once

#include <stdio.h>

typedef void replace_fn(FILE *out, const void *what);

// Mode 0644. 0 or -errno, and the file is as it was; a full disk shows here. -EEXIST: it is neither
// a file nor a directory; a link is not followed either.
int replace_file(const char *file, replace_fn *write, const void *what);
// Why it was not, in words.
const char *replace_words(int err);
