// SPDX-License-Identifier: BSD-3-Clause
// Memory for the messages of an end: of the host, of one NUMA node, or of a GPU.
#pragma once

#include "run/why.h"

#include <dataplane/cuda.h>
#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum messages_kind {
	MESSAGES_HOST,
	MESSAGES_NUMA, // on NUMA node `number`
	MESSAGES_GPU,  // on CUDA device `number`; the RDMA device accesses it as a dmabuf
};

struct messages_place {
	enum messages_kind kind;
	uint32_t number;
};

#define MESSAGES_PLACE_BYTES 32
// Format a place: "host", "NUMA node 1", "GPU 0".
void messages_place_format(struct messages_place place, char text[static MESSAGES_PLACE_BYTES]);
// Parse "host", "numa:1", "gpu" or "gpu:0". Returns 0, or -EINVAL with the reason in `error`.
int messages_place_parse(
	const char *value, struct parse_error *error, struct messages_place *ret_place
);

struct messages {
	struct messages_place place;
	uint64_t address; // page-aligned and zeroed; 0: not allocated
	size_t size;
	struct cuda *cuda; // GPU only; needed by the memory registry
	struct cuda_block block;
};

// Allocate the memory. Returns 0, or -errno with the reason in `why`: no such node or GPU, no
// libcuda, no memory, or no memory on that node.
int messages_create(
	struct messages_place place, size_t size, struct lab_why *why, struct messages *ret_messages
);
// Free the memory, which no device may access any more. A zeroed struct is allowed.
void messages_destroy(struct messages *messages);
