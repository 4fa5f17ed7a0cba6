// SPDX-License-Identifier: BSD-3-Clause
// Memory source of the core. The core allocates from nowhere else.
#pragma once

#include <stddef.h>

struct ras_memory {
	// Return zero-filled memory, aligned for any object, or NULL.
	void *(*allocate)(void *ctx, size_t size);
	// Release memory; `size` is what was asked for. `memory` may be NULL.
	void (*release)(void *ctx, void *memory, size_t size);
	// May be NULL. Return a block that begins as a copy of `model`, a block allocated here. The
	// model does not change until it is released, so the copy may share its pages until then.
	// Returns NULL without memory.
	void *(*copy)(void *ctx, const void *model, size_t size);
	void *ctx;
};
