// SPDX-License-Identifier: BSD-3-Clause
// A libcuda of two devices whose memory is an arena of this process, to be loaded by path. What is
// allocated through it lies in the upper half of the arena, in blocks of FAKE_CUDA_BLOCK_BYTES.
// What the test arranges goes through the symbol `fake_cuda`, found with dlsym() in the same
// library.
//
// Its dmabufs are descriptors that the fake verbs can map, so bytes that a device writes to GPU
// memory arrive there.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_ARENA_BYTES (UINT64_C(64) << 20)
#define FAKE_CUDA_BLOCK_BYTES (UINT64_C(2) << 20)

enum fake_cuda_kind {
	FAKE_CUDA_DEVICE,
	FAKE_CUDA_HOST, // of the host, registered with CUDA
	FAKE_CUDA_MANAGED,
	FAKE_CUDA_POOL, // of a device, without a context
};

struct fake_cuda {
	// Forgets everything, all errors are 0 again.
	void (*reset)(void);
	// At this place of the arena; allocations next to each other may be exported as one.
	uint8_t *(*allocate)(enum fake_cuda_kind kind, int ordinal, size_t offset, size_t size);
	void (*release)(const uint8_t *begin);

	// CUresult of the next calls; what an agent loads begins with those of FAKE_CUDA_INIT,
	// FAKE_CUDA_ALLOCATE and FAKE_CUDA_EXPORT in its environment.
	void (*entered)(void); // by cuInit; NULL: nobody is told
	int init_error, range_error, export_error;
	int retain_error, allocate_error, copy_error;
	int contexts_held;	   // primary contexts, retained and not released
	_Atomic unsigned int ends; // primary contexts that were released
	unsigned int blocks;	   // that the library under test allocated and did not free
	int context_depth;	   // pushed and not popped
	unsigned int range_calls, export_calls;
};
