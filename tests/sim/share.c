// SPDX-License-Identifier: BSD-3-Clause
#include "share.h"

#include <lib/must.h>
#include <lib/scoped.h>

#include <sys/mman.h>
#include <unistd.h>

#define SHARE_PAGE_BYTES 4096
// Address space, not memory: freed copies leave their addresses unused.
#define SHARE_STRETCH_BYTES (UINT64_C(1) << 36)
#define SHARE_BYTES_MIN (16u << 10)

static size_t share_pages(size_t size) {
	return (size + SHARE_PAGE_BYTES - 1) / SHARE_PAGE_BYTES * SHARE_PAGE_BYTES;
}

static void *share_reserve(void *at, size_t size, int flags) {
	return mmap(
		at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0
	);
}

void share_fini(struct share *share) {
	for (uint32_t n = 0; n < share->model_count; n++)
		close(share->models[n].fd);
	if (share->stretch != NULL)
		munmap(share->stretch, SHARE_STRETCH_BYTES);
	*share = (struct share){0};
}

static bool share_open(struct share *share) {
	void *stretch;

	if (share->stretch != NULL)
		return true;
	stretch = share_reserve(NULL, SHARE_STRETCH_BYTES, 0);
	if (stretch == MAP_FAILED)
		return false;
	share->stretch = stretch;
	return true;
}

static int share_file(const void *block, size_t size) {
	scoped_fd int fd = memfd_create("tocsin-sim", MFD_CLOEXEC);
	size_t written = 0;

	while (fd >= 0 && written < size) {
		ssize_t part = write(fd, (const uint8_t *)block + written, size - written);

		if (part <= 0)
			return -1;
		written += (size_t)part;
	}
	return scoped_release_fd(&fd);
}

// Return the file of the block, created for its first copy; negative on failure.
static int share_model(struct share *share, const void *block, size_t size) {
	int fd;

	for (uint32_t n = 0; n < share->model_count; n++) {
		if (share->models[n].block == block && share->models[n].size == size)
			return share->models[n].fd;
	}
	if (share->model_count == SHARE_MODELS_MAX)
		return -1;
	fd = share_file(block, size);
	if (fd >= 0)
		share->models[share->model_count++] = (struct share_model){block, size, fd};
	return fd;
}

void *share_copy(struct share *share, const void *block, size_t size) {
	uint8_t *at;
	void *copy;
	int fd;

	if (size < SHARE_BYTES_MIN || !share_open(share) ||
	    SHARE_STRETCH_BYTES - share->used < share_pages(size))
		return NULL;
	fd = share_model(share, block, size);
	if (fd < 0)
		return NULL;
	at = share->stretch + share->used;
	copy =
		mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
		     0);
	if (copy == MAP_FAILED)
		return NULL;
	share->used += share_pages(size);
	return copy;
}

bool share_give(struct share *share, void *block, size_t size) {
	for (uint32_t n = 0; n < share->model_count; n++) {
		if (share->models[n].block == block) {
			close(share->models[n].fd);
			share->models[n] = share->models[--share->model_count];
			return false;
		}
	}
	if (share->stretch == NULL || (uint8_t *)block < share->stretch ||
	    (uint8_t *)block >= share->stretch + share->used)
		return false;
	// The address range stays reserved, so that no other block is mistaken for a copy.
	must(share_reserve(block, share_pages(size), MAP_FIXED) == block);
	return true;
}
