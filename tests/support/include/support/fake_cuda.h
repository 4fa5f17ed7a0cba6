// SPDX-License-Identifier: BSD-3-Clause
// A libcuda of two devices whose memory is an arena of this process, to be loaded by path. What the
// test arranges goes through the symbol `fake_cuda`, found with dlsym() in the same library.
//
// Its dmabufs are descriptors that the fake verbs can map, so bytes that a device writes to GPU
// memory arrive there.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_ARENA_BYTES (UINT64_C(64) << 20)

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

	int init_error, range_error, export_error; // CUresult of the next calls
	int context_depth;			   // pushed and not popped
	unsigned int range_calls, export_calls;
};
