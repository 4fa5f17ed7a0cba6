// SPDX-License-Identifier: BSD-3-Clause
// Where an end's messages lie: memory of the host, of one of its NUMA nodes, or of a GPU.
#pragma once

#include "why.h"

#include <dataplane/cuda.h>
#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum messages_kind {
	MESSAGES_HOST,
	MESSAGES_NUMA, // of node `number`
	MESSAGES_GPU,  // of CUDA device `number`, which the RDMA device reaches as a dmabuf
};

struct messages_place {
	enum messages_kind kind;
	uint32_t number;
};

#define MESSAGES_PLACE_BYTES 32
// "host", "NUMA node 1", "GPU 0".
void messages_place_say(struct messages_place place, char text[static MESSAGES_PLACE_BYTES]);
// "host", "numa:1", "gpu", "gpu:0". -EINVAL with what is wrong.
int messages_place_parse(
	const char *value, struct parse_error *error, struct messages_place *ret_place
);

struct messages {
	struct messages_place place;
	uint64_t address; // of whole pages, all zero; 0: there are none
	size_t size;
	struct cuda *cuda; // of a GPU: a registry needs it
	struct cuda_block block;
};

// -errno with the reason: no such node or GPU, no libcuda, no memory, or none of that node.
int messages_create(
	struct messages_place place, size_t size, struct lab_why *why, struct messages *ret_messages
);
// No device reaches them any more. Those that are all zero are fine.
void messages_destroy(struct messages *messages);
