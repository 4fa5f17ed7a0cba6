// SPDX-License-Identifier: BSD-3-Clause
// The door to libcuda, which is looked for at run time: what memory an address is of, whole
// allocations, their export as dmabuf, and allocations of our own.
//
// The process may have no CUDA, or use no memory of it; then addresses are the host's. All calls
// enter the driver and may hang: on a keeper. Errors are -errno; ret_reason has the driver's own
// name of the error.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CUDA_REASON_MAX 95
#define CUDA_PCI_BYTES 16

struct cuda;

// What lies at an address.
struct cuda_memory {
	bool device;  // else the host's, known to CUDA
	bool managed; // wherever it was used last
	int ordinal;  // the device it is of, or is managed by; -1: none
	uint64_t id;  // of the allocation; never given twice, so that addresses may be
};

// path NULL: libcuda.so.1, wherever the system's loader finds it. -ENOENT (there is none), -ENOSYS
// (it lacks a function that is needed), -ENODEV (no device, or its kernel driver is not there).
int cuda_open(
	const char *path, char ret_reason[static CUDA_REASON_MAX + 1], struct cuda **ret_cuda
);
// NULL is fine.
struct cuda *cuda_close(struct cuda *cuda);

// -ENOENT: no memory of CUDA.
int cuda_memory(const struct cuda *cuda, uint64_t address, struct cuda_memory *ret_memory);
// The allocation that the address is in. For memory mapped piece by piece it is the piece.
int cuda_allocation(
	const struct cuda *cuda,
	uint64_t address,
	char ret_reason[static CUDA_REASON_MAX + 1],
	uint64_t *ret_begin,
	uint64_t *ret_length
);
// A dmabuf of the pages of a range, whose first byte is address; both are multiples of the host's
// page size. -ENOSYS: the driver is too old for that. The descriptor is the caller's.
int cuda_export(
	const struct cuda *cuda,
	uint64_t address,
	uint64_t length,
	char ret_reason[static CUDA_REASON_MAX + 1],
	int *ret_fd
);
// Memory of a GPU that is this process's own. It holds the GPU's primary context, which the driver
// makes for the first who asks, with memory of its own, and which ends with the last block.
struct cuda_block {
	uint64_t address;
	uint64_t length;
	int device;    // CUdevice
	void *context; // CUcontext
};

// Every eight bytes of it are `word`; length is a multiple of them. -ENOENT (no such device),
// -ENOMEM (of the GPU, or our own), or what the driver said.
int cuda_block_create(
	const struct cuda *cuda,
	uint32_t ordinal,
	uint64_t length,
	uint64_t word,
	char ret_reason[static CUDA_REASON_MAX + 1],
	struct cuda_block *ret_block
);
// No device reaches it any more. One with context NULL is fine.
void cuda_block_destroy(const struct cuda *cuda, struct cuda_block *block);
// "0000:17:00.0", as the kernel writes it. -ENOENT: no such device.
int cuda_pci(const struct cuda *cuda, uint32_t ordinal, char ret_pci[static CUDA_PCI_BYTES]);
