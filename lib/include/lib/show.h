// SPDX-License-Identifier: BSD-3-Clause
// Values as people read them. Any thread; allocates nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHOW_BYTES 64

// Two figures that matter: 850 us, 3.2 s, 5 min 12 s, 2 d 3 h.
void show_duration(uint64_t duration_ns, char text[static SHOW_BYTES]);
// 812 B, 1.3 MiB.
void show_bytes(uint64_t bytes, char text[static SHOW_BYTES]);
// 2026-11-20T10:43:26.125Z
void show_time(int64_t realtime_ns, char text[static SHOW_BYTES]);
// 2026-11-20 10:43:26, local time, as NCCL writes it.
void show_local_time(int64_t realtime_ns, char text[static SHOW_BYTES]);
// 3, or 1-2 if they differ.
void show_range(uint64_t first, uint64_t last, char text[static SHOW_BYTES]);
// Cut to `width` bytes, the last a "~" if something is missing. `width` is
// below SHOW_BYTES.
void show_cell(const char *value, size_t width, char text[static SHOW_BYTES]);
