// SPDX-License-Identifier: BSD-3-Clause
// Where each field of NCCL's descriptors lies in each version, under the name that recordings give
// it: one table for who writes a recording and who plays it. Addresses are left out: they mean
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
	uint8_t first, last; // versions
	uint8_t form;
	uint8_t offset;
	const char *name;
};

extern const struct nccl_field nccl_fields[];
extern const uint32_t nccl_field_count;

// "Coll"; NULL for what is none.
const char *nccl_type_name(uint32_t type);
// 0 for what is none.
uint32_t nccl_type_of(const char *name);
// The types that exist in a version, as a mask.
uint32_t nccl_types_in(int version);
