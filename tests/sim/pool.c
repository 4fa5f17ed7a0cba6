// SPDX-License-Identifier: BSD-3-Clause
#include "pool.h"

#include "share.h"

#include <lib/error.h>
#include <lib/must.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Size classes are 16 bytes apart up to this size, then there are 8 classes for each doubling.
#define POOL_FINE_BYTES 512
#define POOL_FINE_CLASSES (POOL_FINE_BYTES / 16)
#define POOL_CLASS_BYTES_MAX (4u << 20)
#define POOL_CLASSES (POOL_FINE_CLASSES + 13 * 8)
// Blocks of this size begin on a cache line; types that order their members by use rely on that.
#define POOL_LINED_BYTES 192
#define POOL_LINE_BYTES 64
// A multiple of the huge page size. Ten thousand tables take gigabytes, and page faults would be
// half of the time to fill them.
#define POOL_CHUNK_BYTES (64u << 20)

// The size of a frame buffer, of which usually only the first page is used. With huge pages, the
// system would have to clear memory that ten thousand buffers never use.
#define POOL_SPARSE_BYTES (64u << 10)

// A freed block of this size returns its pages to the system until it is used again. Otherwise
// thousands of tables that grow at once would keep their former blocks, too.
#define POOL_RETURN_BYTES (64u << 10)
#define POOL_PAGE_BYTES 4096

struct pool_block {
	struct pool_block *next;
};

struct pool_chunk {
	struct pool_chunk *next;
};

// Unused rest of the newest chunk; it is still zero.
struct pool_fresh {
	uint8_t *at;
	size_t bytes;
};

struct pool {
	struct pool_block *given[POOL_CLASSES];
	struct pool_fresh dense, sparse;
	struct pool_chunk *chunks;
	struct share share;
};

static uint32_t pool_class(size_t size) {
	uint32_t power;

	if (size <= POOL_FINE_BYTES)
		return size == 0 ? 0 : (uint32_t)((size - 1) / 16);
	power = 63 - (uint32_t)__builtin_clzll(size - 1);
	return POOL_FINE_CLASSES + (power - 9) * 8 + (uint32_t)((size - 1) >> (power - 3) & 7);
}

static size_t pool_class_bytes(uint32_t class) {
	uint32_t coarse = class - POOL_FINE_CLASSES;

	if (class < POOL_FINE_CLASSES)
		return ((size_t) class + 1) * 16;
	return (size_t)(coarse % 8 + 9) << (coarse / 8 + 6);
}

int pool_create(struct pool **ret_pool) {
	struct pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -ENOMEM;
	*ret_pool = pool;
	return 0;
}

struct pool *pool_destroy(struct pool *pool) {
	if (pool == NULL)
		return NULL;
	while (pool->chunks != NULL) {
		struct pool_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		munmap(chunk, POOL_CHUNK_BYTES);
	}
	share_fini(&pool->share);
	free(pool);
	return NULL;
}

static void pool_add_chunk(struct pool *pool, struct pool_fresh *fresh) {
	struct pool_chunk *chunk;

	chunk =
		mmap(NULL, POOL_CHUNK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(chunk != MAP_FAILED);
	// This is only advice: without huge pages the pool is slower.
	if (fresh == &pool->dense)
		madvise(chunk, POOL_CHUNK_BYTES, MADV_HUGEPAGE);
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	fresh->at = (uint8_t *)chunk + POOL_LINE_BYTES;
	fresh->bytes = POOL_CHUNK_BYTES - POOL_LINE_BYTES;
}

// Chunks end on a cache line, so the remaining size gives the position within a line.
static void pool_skip(struct pool_fresh *fresh, size_t bytes) {
	fresh->at += bytes;
	fresh->bytes -= bytes;
}

static void *pool_take_plain(size_t size) {
	void *block = calloc(1, size > 0 ? size : 1);

	must(block != NULL);
	return block;
}

// *ret_zero tells whether the block is known to be zero.
static void *pool_take_any(struct pool *pool, size_t size, bool *ret_zero) {
	struct pool_fresh *fresh = size == POOL_SPARSE_BYTES ? &pool->sparse : &pool->dense;
	struct pool_block *block;
	uint32_t class;
	size_t bytes;

	*ret_zero = true;
	if (POOL_PLAIN || size > POOL_CLASS_BYTES_MAX)
		return pool_take_plain(size);
	class = pool_class(size);
	block = pool->given[class];
	if (block != NULL) {
		pool->given[class] = block->next;
		*ret_zero = false;
		return block;
	}
	bytes = pool_class_bytes(class);
	if (bytes >= POOL_LINED_BYTES)
		pool_skip(fresh, fresh->bytes % POOL_LINE_BYTES);
	if (fresh->bytes < bytes)
		pool_add_chunk(pool, fresh);
	block = (struct pool_block *)(void *)fresh->at;
	pool_skip(fresh, bytes);
	return block;
}

void *pool_take(struct pool *pool, size_t size) {
	bool zero;

	return pool_take_any(pool, size, &zero);
}

void *pool_take_zeroed(struct pool *pool, size_t size) {
	bool zero;
	void *block = pool_take_any(pool, size, &zero);

	if (!zero)
		memset(block, 0, size);
	return block;
}

void *pool_copy(struct pool *pool, const void *model, size_t size) {
	void *block = POOL_PLAIN ? NULL : share_copy(&pool->share, model, size);

	if (block == NULL) {
		block = pool_take(pool, size);
		memcpy(block, model, size);
	}
	return block;
}

static void pool_return_pages(void *block, size_t size) {
	// The first page holds the free list's link and is kept.
	size_t first = (uintptr_t)block % POOL_PAGE_BYTES + sizeof(struct pool_block);
	size_t kept = (first + POOL_PAGE_BYTES - 1) / POOL_PAGE_BYTES * POOL_PAGE_BYTES -
		      (uintptr_t)block % POOL_PAGE_BYTES;
	size_t pages;

	if (kept >= size)
		return;
	pages = (size - kept) / POOL_PAGE_BYTES * POOL_PAGE_BYTES;
	if (pages > 0) // advice: a failure costs only memory
		madvise((char *)block + kept, pages, MADV_DONTNEED);
}

void pool_give(struct pool *pool, void *given, size_t size) {
	struct pool_block *block = given;
	uint32_t class;

	if (block == NULL || share_give(&pool->share, block, size))
		return;
	if (POOL_PLAIN || size > POOL_CLASS_BYTES_MAX) {
		free(block);
		return;
	}
	class = pool_class(size);
	block->next = pool->given[class];
	pool->given[class] = block;
	if (size >= POOL_RETURN_BYTES)
		pool_return_pages(block, size);
}
