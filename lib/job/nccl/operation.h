// SPDX-License-Identifier: BSD-3-Clause
// Converts NCCL's descriptors into operations with the values of <tocsin/job.h>.
//
// Inline with a constant version, so that choosing the layout costs nothing at run time.
#pragma once

#include "abi.h"

#include <tocsin/job.h>

#include <string.h>

#define NCCL_DATATYPE_UNKNOWN 255

struct nccl_operation {
	uint64_t count;
	int32_t root; // or the peer; -1: none
	uint8_t kind; // enum tocsin_kind
	uint8_t datatype;
	uint8_t channels; // number of kernel events to expect; 0: none or unknown
};

// Cache of a communicator's last texts and their meaning. NCCL's texts are literals, so an equal
// address means an equal text. Without the cache the comparisons are a quarter of an operation's
// cost.
struct operation_memo {
	const char *func, *datatype;
	uint8_t kind, number;
};

static inline bool operation_is_collective(const struct nccl_operation *operation) {
	return operation->kind != TOCSIN_SEND && operation->kind != TOCSIN_RECEIVE;
}

// Parse for example "AllReduce"; unknown names become TOCSIN_OTHER.
static inline uint8_t operation_kind_parse(const char *func) {
	static const struct {
		const char *name;
		uint8_t kind;
	} kinds[] = {
		{"AllReduce", TOCSIN_ALL_REDUCE},
		{"ReduceScatter", TOCSIN_REDUCE_SCATTER},
		{"AllGather", TOCSIN_ALL_GATHER},
		{"Broadcast", TOCSIN_BROADCAST},
		{"Send", TOCSIN_SEND},
		{"Recv", TOCSIN_RECEIVE},
		{"Reduce", TOCSIN_REDUCE},
		{"AlltoAll", TOCSIN_ALL_TO_ALL},
		{"Gather", TOCSIN_GATHER},
		{"Scatter", TOCSIN_SCATTER},
	};

	if (func == NULL)
		return TOCSIN_OTHER;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++)
		if (strcmp(func, kinds[n].name) == 0)
			return kinds[n].kind;
	return TOCSIN_OTHER;
}

// Version 1 passes NCCL's own numbers.
static inline uint8_t operation_kind_from_number(uint8_t func) {
	static const uint8_t kinds[] = {TOCSIN_BROADCAST,      TOCSIN_REDUCE,	  TOCSIN_ALL_GATHER,
					TOCSIN_REDUCE_SCATTER, TOCSIN_ALL_REDUCE, TOCSIN_OTHER,
					TOCSIN_SEND,	       TOCSIN_RECEIVE};

	return func < sizeof(kinds) ? kinds[func] : TOCSIN_OTHER;
}

// Parse the name of an ncclDataType_t. NCCL up to 2.30 passes "Unknown" for ncclUint8.
static inline uint8_t operation_datatype_parse(const char *name) {
	static const struct {
		const char *name;
		uint8_t datatype;
	} types[] = {
		{"ncclFloat32", 7}, {"ncclBfloat16", 9},    {"ncclFloat16", 6},
		{"ncclInt8", 0},    {"ncclInt32", 2},	    {"ncclInt64", 4},
		{"ncclFloat64", 8}, {"ncclUint8", 1},	    {"ncclUint32", 3},
		{"ncclUint64", 5},  {"ncclFloat8e4m3", 10}, {"ncclFloat8e5m2", 11},
	};

	if (name == NULL)
		return NCCL_DATATYPE_UNKNOWN;
	for (size_t n = 0; n < sizeof(types) / sizeof(types[0]); n++)
		if (strcmp(name, types[n].name) == 0)
			return types[n].datatype;
	return NCCL_DATATYPE_UNKNOWN;
}

// Only four kinds have a root; for the others NCCL passes an arbitrary number.
static inline int32_t operation_root(uint8_t kind, int32_t root) {
	switch (kind) {
	case TOCSIN_BROADCAST:
	case TOCSIN_REDUCE:
	case TOCSIN_GATHER:
	case TOCSIN_SCATTER:
		return root;
	default:
		return -1;
	}
}

static inline uint8_t operation_kind(struct operation_memo *memo, const char *func) {
	if (memo->func != func || func == NULL) {
		memo->func = func;
		memo->kind = operation_kind_parse(func);
	}
	return memo->kind;
}

static inline uint8_t operation_datatype(struct operation_memo *memo, const char *datatype) {
	if (memo->datatype != datatype || datatype == NULL) {
		memo->datatype = datatype;
		memo->number = operation_datatype_parse(datatype);
	}
	return memo->number;
}

#define OPERATION_OF(coll_, kind_, datatype_)             \
	((struct nccl_operation                           \
	){.count = (coll_)->count,                        \
	  .root = operation_root((kind_), (coll_)->root), \
	  .kind = (kind_),                                \
	  .datatype = (datatype_),                        \
	  .channels = (coll_)->channels})

static inline struct nccl_operation operation_of_coll(
	int version, const struct nccl_descriptor *descriptor, struct operation_memo *memo
) {
	uint8_t kind, datatype;

	if (version == 1) {
		kind = operation_kind_from_number(descriptor->coll_1.func);
		return OPERATION_OF(&descriptor->coll_1, kind, descriptor->coll_1.datatype);
	}
	if (version == 2) {
		kind = operation_kind(memo, descriptor->coll_2.func);
		datatype = operation_datatype(memo, descriptor->coll_2.datatype);
		return OPERATION_OF(&descriptor->coll_2, kind, datatype);
	}
	if (version == 3) {
		kind = operation_kind(memo, descriptor->coll_3.func);
		datatype = operation_datatype(memo, descriptor->coll_3.datatype);
		return OPERATION_OF(&descriptor->coll_3, kind, datatype);
	}
	kind = operation_kind(memo, descriptor->coll_4.func);
	datatype = operation_datatype(memo, descriptor->coll_4.datatype);
	return OPERATION_OF(&descriptor->coll_4, kind, datatype);
}

// The channels of send and receive are not used, although version 4 and later report them.
static inline struct nccl_operation operation_of_p2p(
	int version, const struct nccl_descriptor *descriptor, struct operation_memo *memo
) {
	if (version >= 4)
		return (struct nccl_operation){
			.count = descriptor->p2p_4.count,
			.root = descriptor->p2p_4.peer,
			.kind = operation_kind(memo, descriptor->p2p_4.func),
			.datatype = operation_datatype(memo, descriptor->p2p_4.datatype),
		};
	if (version >= 2)
		return (struct nccl_operation){
			.count = descriptor->p2p_2.count,
			.root = descriptor->p2p_2.peer,
			.kind = operation_kind(memo, descriptor->p2p_2.func),
			.datatype = operation_datatype(memo, descriptor->p2p_2.datatype),
		};
	return (struct nccl_operation){
		.count = descriptor->p2p_1.count,
		.root = descriptor->p2p_1.peer,
		.kind = operation_kind_from_number(descriptor->p2p_1.func),
		.datatype = descriptor->p2p_1.datatype,
	};
}

static inline struct nccl_operation
operation_of_ce(const struct nccl_descriptor *descriptor, struct operation_memo *memo) {
	uint8_t kind = operation_kind(memo, descriptor->ce_coll.func);

	return (struct nccl_operation){
		.count = descriptor->ce_coll.count,
		.root = operation_root(kind, descriptor->ce_coll.root),
		.kind = kind,
		.datatype = operation_datatype(memo, descriptor->ce_coll.datatype),
	};
}

// In versions 1 to 4 the bits above the first byte are undefined.
static inline uint32_t descriptor_type(int version, const struct nccl_descriptor *descriptor) {
	return version < 5 ? (uint32_t)(uint8_t)descriptor->type : (uint32_t)descriptor->type;
}
