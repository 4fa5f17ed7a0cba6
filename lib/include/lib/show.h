// SPDX-License-Identifier: BSD-3-Clause
// Formatting of values for people. Any thread; allocates nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHOW_BYTES 64

// Format a duration with two significant figures: 850 us, 3.2 s, 5 min 12 s, 2 d 3 h.
void show_duration(uint64_t duration_ns, char text[static SHOW_BYTES]);
// Format a size: 812 B, 1.3 MiB.
void show_bytes(uint64_t bytes, char text[static SHOW_BYTES]);
// Format a UTC time: 2026-11-20T10:43:26.125Z.
void show_time(int64_t realtime_ns, char text[static SHOW_BYTES]);
// Format a local time as NCCL does: 2026-11-20 10:43:26.
void show_local_time(int64_t realtime_ns, char text[static SHOW_BYTES]);
// Format a range: 3 if both ends are equal, else 1-2.
void show_range(uint64_t first, uint64_t last, char text[static SHOW_BYTES]);
// Truncate a text to `width` bytes, with "~" as the last one if it does not fit. `width` must be
// below SHOW_BYTES.
void show_truncated(const char *value, size_t width, char text[static SHOW_BYTES]);
