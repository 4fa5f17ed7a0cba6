// SPDX-License-Identifier: BSD-3-Clause
// Handles that NCCL keeps for us: numbers, never addresses.
//
// A callback may pass the handle of a finalized communicator, of a stopped event, or (under PXN) of
// another process. The bits of the handle reveal this, and no memory is read.
//
//	63..54 a tag   53..51 class   50..44 communicator   43..36 its generation
//	35..7 operation   6..0 channel, or number of the proxy operation
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum handle_class {
	HANDLE_OPERATION,
	HANDLE_KERNEL,
	HANDLE_PROXY,
	HANDLE_GRAPH,  // API event of an operation that is captured into a graph
	HANDLE_MAPPED, // see mapped.c
};

struct handle {
	enum handle_class class;
	uint32_t comm;	     // 0..127
	uint32_t generation; // 0..255
	uint32_t operation;  // low 29 bits of the operation's number
	uint32_t part;	     // 0..127
};

#define HANDLE_TAG UINT64_C(0x2d3)
#define HANDLE_OPERATION_MASK ((UINT32_C(1) << 29) - 1)
#define HANDLE_PARTS 128u

static inline void *handle_pack(const struct handle *handle) {
	uint64_t bits =
		HANDLE_TAG << 54 | (uint64_t)handle->class << 51 |
		(uint64_t)(handle->comm & 127) << 44 | (uint64_t)(handle->generation & 255) << 36 |
		(uint64_t)(handle->operation & HANDLE_OPERATION_MASK) << 7 | (handle->part & 127);

	return (void *)(uintptr_t)bits; // NOLINT(performance-no-int-to-ptr)
}

static inline bool handle_unpack(const void *raw, struct handle *ret_handle) {
	uint64_t bits = (uint64_t)(uintptr_t)raw;

	if (bits >> 54 != HANDLE_TAG)
		return false;
	*ret_handle = (struct handle){
		.class = (enum handle_class)(bits >> 51 & 7),
		.comm = (uint32_t)(bits >> 44 & 127),
		.generation = (uint32_t)(bits >> 36 & 255),
		.operation = (uint32_t)(bits >> 7) & HANDLE_OPERATION_MASK,
		.part = (uint32_t)(bits & 127),
	};
	return true;
}
