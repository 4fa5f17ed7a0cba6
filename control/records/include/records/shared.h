// SPDX-License-Identifier: BSD-3-Clause
// The mark that PAIRS and PATHS have in common.
#pragma once

#include <lib/record.h>

// Return the mark of a row by its member port_congestion: "^" if the port counts congestion now,
// "!" if it sends pauses most of the time, else "".
const char *congestion_mark(const json_t *row);
