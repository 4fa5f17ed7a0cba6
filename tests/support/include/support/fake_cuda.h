// SPDX-License-Identifier: BSD-3-Clause
// A fake libcuda with two devices, to be loaded by path. Their memory is an arena of this process.
// Allocations through the library lie in the upper half of the arena, in blocks of
// FAKE_CUDA_BLOCK_BYTES. The test controls the library through the symbol `fake_cuda`, found with
// dlsym() in the same library.
//
// Its dmabufs are descriptors that the fake verbs can map. So bytes that a device writes to GPU
// memory arrive there.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_ARENA_BYTES (UINT64_C(64) << 20)
#define FAKE_CUDA_BLOCK_BYTES (UINT64_C(2) << 20)

enum fake_cuda_kind {
	FAKE_CUDA_DEVICE,
	FAKE_CUDA_HOST, // host memory, registered with CUDA
	FAKE_CUDA_MANAGED,
	FAKE_CUDA_POOL, // device memory without a context
};

struct fake_cuda {
	// Forget everything and set all errors to 0.
	void (*reset)(void);
	// Allocate at this offset of the arena. Adjacent allocations may be exported as one.
	uint8_t *(*allocate)(enum fake_cuda_kind kind, int ordinal, size_t offset, size_t size);
	void (*release)(const uint8_t *begin);

	// CUresult of the next calls. In an agent, the initial values come from FAKE_CUDA_INIT,
	// FAKE_CUDA_ALLOCATE and FAKE_CUDA_EXPORT in the environment.
	void (*entered)(void); // called by cuInit; may be NULL
	int init_error, range_error, export_error;
	int retain_error, allocate_error, copy_error;
	int contexts_held;	   // primary contexts that are retained and not released
	_Atomic unsigned int ends; // primary contexts that were released
	unsigned int blocks;	   // blocks that the library under test allocated and did not free
	int context_depth;	   // contexts that are pushed and not popped
	unsigned int range_calls, export_calls;
};
