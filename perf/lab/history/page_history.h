// SPDX-License-Identifier: BSD-3-Clause
// HTML page of a history.
#pragma once

#include "history/history.h"

// Write the page; "-" is standard output.
int page_history(const struct history *history, const char *path, struct lab_why *why);
