// SPDX-License-Identifier: BSD-3-Clause
// Atomic replacement of a file: a temporary file next to it is written, then renamed.
#pragma once

#include <stdio.h>

typedef void replace_fn(FILE *out, const void *what);

// Replace a file by the output of `write`, with mode 0644. Returns 0, or -errno with the old file
// unchanged; a full disk is reported here. Returns -EEXIST if the path is neither a regular file
// nor a directory; links are not followed.
int replace_file(const char *file, replace_fn *write, const void *what);
// Return the text of an error of replace_file().
const char *replace_error_text(int err);
