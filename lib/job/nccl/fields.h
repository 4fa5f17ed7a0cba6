// SPDX-License-Identifier: BSD-3-Clause
// Offset of each field of NCCL's descriptors in each version, with its name in recordings. The
// writer and the player of recordings share this table. Pointers are left out, because they mean
// nothing in another process.
#pragma once

#include "abi.h"

enum nccl_form {
	NCCL_U8,
	NCCL_BOOL,
	NCCL_I32,
	NCCL_U32,
	NCCL_U64,
	NCCL_HEX, // 64 bits
	NCCL_TEXT,
};

struct nccl_field {
	uint32_t type;	     // enum nccl_event_type
	uint8_t first, last; // first and last interface version
	uint8_t form;
	uint8_t offset;
	const char *name;
};

extern const struct nccl_field nccl_fields[];
extern const uint32_t nccl_field_count;

// Return for example "Coll"; NULL for an invalid type.
const char *nccl_type_name(uint32_t type);
// Return the mask of types that exist in a version.
uint32_t nccl_types_in(int version);
