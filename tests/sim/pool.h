// SPDX-License-Identifier: BSD-3-Clause
// Allocator with size classes for one simulation: events, frames and all memory of the cores.
//
// Blocks have no header: the caller names the size when it frees one. Freed blocks are reused;
// the pages of large free blocks return to the system. With AddressSanitizer every block comes
// from malloc(), so that use after free is detected.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// With a sanitizer, every block comes from malloc().
#if defined(__SANITIZE_ADDRESS__)
#define POOL_PLAIN true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_PLAIN true
#endif
#endif
#ifndef POOL_PLAIN
#define POOL_PLAIN false
#endif

struct pool;

int pool_create(struct pool **ret_pool);
// Destroy the pool with all of its blocks.
struct pool *pool_destroy(struct pool *pool);

// Allocate a block that is not cleared. Exits the program if memory runs out, since the
// simulation could not go on.
void *pool_take(struct pool *pool, size_t size);
// Allocate a zero-filled block.
void *pool_take_zeroed(struct pool *pool, size_t size);
// Copy a block of the pool. The original must not change until the copy is freed.
void *pool_copy(struct pool *pool, const void *model, size_t size);
// Free a block; `size` is the requested size. NULL is allowed.
void pool_give(struct pool *pool, void *block, size_t size);
