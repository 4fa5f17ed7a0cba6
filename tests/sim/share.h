// SPDX-License-Identifier: BSD-3-Clause
// Copy-on-write copies of large blocks.
//
// The first copy writes the block into a memory file; each copy is a private mapping of it. All
// copies lie in one range of addresses, by which a freed copy is recognised.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_MODELS_MAX 8

struct share_model {
	const void *block;
	size_t size;
	int fd;
};

struct share {
	uint8_t *stretch; // NULL before the first copy
	size_t used;
	struct share_model models[SHARE_MODELS_MAX];
	uint32_t model_count;
};

void share_fini(struct share *share);
// Share the block copy-on-write. Returns NULL if that is not worth it or the system refuses; the
// caller then makes a plain copy. The block must not change until it is freed.
void *share_copy(struct share *share, const void *block, size_t size);
// Return true if the block was a shared copy, which is now freed. Returns false if the caller
// must free it.
bool share_give(struct share *share, void *block, size_t size);
