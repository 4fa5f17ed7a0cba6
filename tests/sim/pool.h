// SPDX-License-Identifier: BSD-3-Clause
// Memory by size class, for one simulation: events, frames and everything the cores hold.
//
// Blocks carry no header: who gives one back names its size. What is given back is reused; of
// large blocks the system has the pages until then. Under AddressSanitizer every block is the
// heap's own, so that a use after release is seen.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Every block is the heap's own.
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
// All blocks go with it.
struct pool *pool_destroy(struct pool *pool);

// Not cleared. Ends the program when the system has no memory left: a simulation that cannot
// go on has no result to report.
void *pool_take(struct pool *pool, size_t size);
// Zero-filled.
void *pool_take_zeroed(struct pool *pool, size_t size);
// A copy of a block of the pool that nobody changes until it is given back.
void *pool_copy(struct pool *pool, const void *model, size_t size);
// `size` is what was asked for; NULL is nothing to do.
void pool_give(struct pool *pool, void *block, size_t size);
