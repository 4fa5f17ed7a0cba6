// SPDX-License-Identifier: BSD-3-Clause
// Columns that PAIRS and PATHS have in common.
#pragma once

#include <lib/record.h>

// Returns the mark of a row by its member port_congestion: "^" if the port counts congestion now,
// "!" if it sends pauses most of the time, else "".
const char *congestion_mark(const json_t *row);
// Writes the devices of both ends: mlx5_0>mlx5_0.
void show_both_devices(const json_t *row, char text[static SHOW_BYTES]);
