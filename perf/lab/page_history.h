// SPDX-License-Identifier: BSD-3-Clause
// The page of a directory of results.
#pragma once

#include "history.h"

// "-" is standard output.
int page_history(const struct history *history, const char *path, struct lab_why *why);
