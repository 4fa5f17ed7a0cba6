// SPDX-License-Identifier: BSD-3-Clause
// Access to libcuda, which is loaded at run time: the type of memory at an address, whole
// allocations, their export as dmabuf, and allocations of this process.
//
// The process may have no CUDA or use no CUDA memory; then all addresses are host memory. Every
// call enters the driver and may hang, so it runs on a keeper. Errors are -errno; ret_reason
// receives the driver's name of the error.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CUDA_REASON_MAX 95
#define CUDA_PCI_BYTES 16

struct cuda;

// Type of the memory at one address.
struct cuda_memory_info {
	bool device;  // memory of a GPU; else host memory known to CUDA
	bool managed; // managed memory: it is where it was used last
	int ordinal;  // GPU that holds or manages the memory; -1: none
	uint64_t id;  // id of the allocation; never reused, unlike addresses
};

// Load libcuda. path NULL means libcuda.so.1, as the system's loader finds it. Returns -ENOENT (no
// such library), -ENOSYS (a required function is missing), or -ENODEV (no device, or its kernel
// driver is not loaded).
int cuda_open(
	const char *path, char ret_reason[static CUDA_REASON_MAX + 1], struct cuda **ret_cuda
);
// Close the library. NULL is fine.
struct cuda *cuda_close(struct cuda *cuda);

// Return the type of memory at `address`. Returns -ENOENT if it is not CUDA memory.
int cuda_memory_info(
	const struct cuda *cuda, uint64_t address, struct cuda_memory_info *ret_memory
);
// Return the allocation that contains `address`. For memory mapped in pieces, return the piece.
int cuda_allocation_range(
	const struct cuda *cuda,
	uint64_t address,
	char ret_reason[static CUDA_REASON_MAX + 1],
	uint64_t *ret_begin,
	uint64_t *ret_length
);
// Export the pages of a range as dmabuf. `address` is the first byte; address and length are
// multiples of the host's page size. The caller owns the descriptor. Returns -ENOSYS if the driver
// is too old.
int cuda_export_dmabuf(
	const struct cuda *cuda,
	uint64_t address,
	uint64_t length,
	char ret_reason[static CUDA_REASON_MAX + 1],
	int *ret_fd
);
// GPU memory that belongs to this process. It holds the GPU's primary context, which uses GPU
// memory of its own. The driver creates this context with its first user and destroys it with the
// last block.
struct cuda_block {
	uint64_t address;
	uint64_t length;
	int device;    // CUdevice
	void *context; // CUcontext
};

// Allocate a block and fill it with `word`; length is a multiple of 8 bytes. Returns -ENOENT (no
// such device), -ENOMEM (of the GPU or of the host), or the driver's error.
int cuda_block_create(
	const struct cuda *cuda,
	uint32_t ordinal,
	uint64_t length,
	uint64_t word,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct cuda_block *ret_block
);
// Free the block, which no device may reach any more. A block with context NULL is fine.
void cuda_block_destroy(const struct cuda *cuda, struct cuda_block *block);
// Return the PCI address as the kernel writes it, "0000:17:00.0". Returns -ENOENT if there is no
// such device.
int cuda_device_pci_address(
	const struct cuda *cuda, uint32_t ordinal, char ret_pci[static CUDA_PCI_BYTES]
);
