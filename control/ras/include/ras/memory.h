// SPDX-License-Identifier: BSD-3-Clause
// Where the core's memory comes from. The core allocates nowhere else.
#pragma once

#include <stddef.h>

struct ras_memory {
	// Zero-filled, aligned for any object; NULL if there is none.
	void *(*allocate)(void *ctx, size_t size);
	// `size` is what was asked for; memory may be NULL.
	void (*release)(void *ctx, void *memory, size_t size);
	// May be NULL. A block that begins as a copy of `model`, which was allocated here, and
	// which nobody changes until it is released: the two may share pages until then. NULL if
	// there is no memory.
	void *(*copy)(void *ctx, const void *model, size_t size);
	void *ctx;
};
