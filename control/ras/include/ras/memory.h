// SPDX-License-Identifier: BSD-3-Clause
// Where the core's memory comes from. The core allocates nowhere else.
#pragma once

#include <stddef.h>

struct ras_memory {
	// Zero-filled, aligned for any object; NULL if there is none.
	void *(*allocate)(void *ctx, size_t size);
	// `size` is what was asked for; memory may be NULL.
	void (*release)(void *ctx, void *memory, size_t size);
	void *ctx;
};
