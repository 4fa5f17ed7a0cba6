// SPDX-License-Identifier: BSD-3-Clause
// Copies of large blocks that have their pages in common until somebody writes to them.
//
// A block that is copied goes into a file in memory once; a copy is a private mapping of it.
// All copies lie in one stretch of addresses, by which they are known when they come back.
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
// NULL if it is not worth it, or the system does not want to: a plain copy will do. The block
// stays as it is until it is given back.
void *share_copy(struct share *share, const void *block, size_t size);
// True if the block was a copy, and is gone now; false if it is the caller's to release.
bool share_give(struct share *share, void *block, size_t size);
