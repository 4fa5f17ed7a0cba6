// SPDX-License-Identifier: BSD-3-Clause
// Memory layout of NCCL's profiler interface, versions 1 to 7, on 64-bit machines.
//
// Written from the published field lists; each offset is asserted below. One struct serves all
// versions with the same layout. A later version only appends fields, and the comment of a field
// names its first version. NCCL defines everything here; this plugin only reads it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_VERSION_FIRST 1
#define NCCL_VERSION_LAST 7

// Types of events, also used as bits of a plugin's mask. If a child type is in the mask, NCCL also
// sends the events of its ancestors. So a plugin gets events that it did not request.
enum nccl_event_type {
	NCCL_GROUP = 0x1,
	NCCL_COLL = 0x2,
	NCCL_P2P = 0x4,
	NCCL_PROXY_OP = 0x8,
	NCCL_PROXY_STEP = 0x10,
	NCCL_PROXY_CTRL = 0x20,
	NCCL_KERNEL_CH = 0x40,	    // from version 3
	NCCL_NET_PLUGIN = 0x80,	    // from version 3
	NCCL_GROUP_API = 0x100,	    // from version 5
	NCCL_COLL_API = 0x200,	    // from version 5
	NCCL_P2P_API = 0x400,	    // from version 5
	NCCL_KERNEL_LAUNCH = 0x800, // from version 5
	NCCL_CE_COLL = 0x1000,	    // from version 6: collectives by copy engines
	NCCL_CE_SYNC = 0x2000,	    // from version 6
	NCCL_CE_BATCH = 0x4000,	    // from version 6
	NCCL_KERNEL_PHASE = 0x8000, // from version 7
};

#define NCCL_STATE_KERNEL_CH_STOP 22
#define NCCL_STATE_LAST 31

struct nccl_coll_1 {
	const char *comm_name;
	uint64_t comm_hash;
	uint64_t sequence;
	uint8_t func;
	const void *send_buffer;
	void *receive_buffer;
	size_t count;
	int32_t root;
	uint8_t datatype;
	uint32_t reduction;
	size_t traffic_bytes;
	uint8_t channels, warps, algorithm, protocol;
	int32_t is_collnet, is_nvls;
};

struct nccl_coll_2 { // version 2
	const char *comm_name;
	uint64_t comm_hash;
	uint64_t sequence;
	const char *func;
	const void *send_buffer;
	void *receive_buffer;
	size_t count;
	int32_t root;
	const char *datatype;
	size_t traffic_bytes;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_coll_3 { // version 3
	const char *comm_name;
	uint64_t comm_hash;
	uint64_t sequence;
	const char *func;
	const void *send_buffer;
	void *receive_buffer;
	size_t count;
	int32_t root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_coll_4 { // versions 4 to 7
	uint64_t sequence;
	const char *func;
	const void *send_buffer;
	void *receive_buffer;
	size_t count;
	int32_t root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *parent_group;	    // from version 5
	const char *kernel_variant; // from version 7
	bool is_symmetric;	    // from version 7
	const char *user_tag;	    // from version 7
};

struct nccl_p2p_1 {
	const char *comm_name;
	uint64_t comm_hash;
	uint8_t func;
	void *buffer;
	uint8_t datatype;
	size_t count;
	int32_t peer;
};

struct nccl_p2p_2 { // versions 2 and 3
	const char *comm_name;
	uint64_t comm_hash;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int32_t peer;
};

struct nccl_p2p_4 { // versions 4 to 7
	const char *func;
	void *buffer;
	const char *datatype;
	size_t count;
	int32_t peer;
	uint8_t channels;     // set from version 5; NCCL 2.28 leaves it unset for version 4
	void *parent_group;   // from version 5
	const char *user_tag; // from version 7
};

struct nccl_proxy_op {
	int32_t pid; // process of the parent event
	uint8_t channel;
	int32_t peer;
	int32_t steps;
	int32_t chunk_bytes;
	int32_t is_send;
};

struct nccl_proxy_step {
	int32_t step;
};

struct nccl_kernel_ch {
	uint8_t channel;
	uint64_t gpu_ns; // from version 4: start of the kernel, GPU clock
};

struct nccl_net_plugin {
	int64_t id;
	void *data; // layout known only to the network plugin of that id
};

struct nccl_group_api {
	bool graph_captured;
	int32_t depth;
};

struct nccl_coll_api {
	const char *func;
	size_t count;
	const char *datatype;
	int32_t root;
	void *stream;
	bool graph_captured;
	const char *user_tag; // from version 7
};

struct nccl_p2p_api {
	const char *func;
	size_t count;
	const char *datatype;
	void *stream;
	bool graph_captured;
	const char *user_tag; // from version 7
};

struct nccl_kernel_launch {
	void *stream;
};

struct nccl_ce_coll {
	uint64_t sequence;
	const char *func;
	const void *send_buffer;
	void *receive_buffer;
	size_t count;
	int32_t root;
	const char *datatype;
	const char *sync_strategy;
	bool batch_sync;
	uint32_t batch_bytes, batches, ce_sequence;
	void *stream;
	const char *user_tag; // from version 7
};

struct nccl_ce_sync {
	bool is_complete;
	int32_t ranks;
};

struct nccl_ce_batch {
	int32_t operations;
	size_t total_bytes;
	bool uses_sync;
};

struct nccl_kernel_phase {
	uint8_t channel, phase;
	const char *phase_name;
	uint64_t gpu_ns;
};

// Argument of start(). In versions 1 to 4 the type is only the first byte; the seven bytes behind
// it hold stack garbage.
struct nccl_descriptor {
	uint64_t type;
	void *parent;
	int32_t rank;
	union {
		struct nccl_coll_1 coll_1;
		struct nccl_coll_2 coll_2;
		struct nccl_coll_3 coll_3;
		struct nccl_coll_4 coll_4;
		struct nccl_p2p_1 p2p_1;
		struct nccl_p2p_2 p2p_2;
		struct nccl_p2p_4 p2p_4;
		struct nccl_proxy_op proxy_op;
		struct nccl_proxy_step proxy_step;
		struct nccl_kernel_ch kernel_ch;
		struct nccl_net_plugin net_plugin;
		struct nccl_group_api group_api;
		struct nccl_coll_api coll_api;
		struct nccl_p2p_api p2p_api;
		struct nccl_kernel_launch kernel_launch;
		struct nccl_ce_coll ce_coll;
		struct nccl_ce_sync ce_sync;
		struct nccl_ce_batch ce_batch;
		struct nccl_kernel_phase kernel_phase;
	};
};

// Argument of state(), or NULL. The state determines which member is valid.
union nccl_state_arguments {
	struct {
		size_t bytes;
		int32_t steps; // versions 1 to 3
	} transfer;
	int32_t appended;
	void *data;
	uint64_t gpu_ns;
};

typedef void nccl_logger(
	int level, unsigned long subsystem, const char *file, int line, const char *format, ...
);
#define NCCL_LOG_WARN 2
#define NCCL_LOG_INFO 3
#define NCCL_LOG_PROFILE 16384ul

// The object that a plugin exports as ncclProfiler_vN. It holds no version; only its symbol name
// tells the version.
struct nccl_profiler {
	const char *name;
	union {
		int (*init_1)(void **context, int *mask); // versions 1 to 3
		int (*init_4
		)(void **context,
		  int *mask,
		  const char *comm_name,
		  uint64_t comm_hash,
		  int nodes,
		  int ranks,
		  int rank,
		  nccl_logger *logger);
		int (*init_5)( // versions 5 to 7
			void **context,
			uint64_t comm_hash,
			int *mask,
			const char *comm_name,
			int nodes,
			int ranks,
			int rank,
			nccl_logger *logger
		);
	};
	int (*start)(void *context, void **handle, const struct nccl_descriptor *descriptor);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, const union nccl_state_arguments *arguments);
	int (*finalize)(void *context);
};

// Return the size of NCCL's own struct in each version; bytes beyond it must not be read.
static inline size_t nccl_descriptor_bytes(int version) {
	static const uint8_t bytes[NCCL_VERSION_LAST + 1] = {0, 120, 128, 120, 104, 112, 112, 136};

	return bytes[version];
}

#define NCCL_AT(type, field, offset) \
	_Static_assert(offsetof(type, field) == (offset), #type "." #field)
// NOLINTBEGIN(bugprone-macro-parentheses): members cannot be in parentheses
#define NCCL_IN(member, field, offset) NCCL_AT(struct nccl_descriptor, member.field, offset)
// NOLINTEND(bugprone-macro-parentheses)

_Static_assert(sizeof(struct nccl_profiler) == 48, "six pointers");
_Static_assert(sizeof(union nccl_state_arguments) == 16, "with the steps of versions 1 to 3");
NCCL_AT(struct nccl_profiler, start, 16);
NCCL_AT(struct nccl_profiler, stop, 24);
NCCL_AT(struct nccl_profiler, state, 32);
NCCL_AT(struct nccl_profiler, finalize, 40);
NCCL_AT(union nccl_state_arguments, transfer.steps, 8);

NCCL_AT(struct nccl_descriptor, parent, 8);
NCCL_AT(struct nccl_descriptor, rank, 16);
NCCL_IN(coll_1, comm_name, 24);
NCCL_IN(coll_1, comm_hash, 32);
NCCL_IN(coll_1, sequence, 40);
NCCL_IN(coll_1, func, 48);
NCCL_IN(coll_1, send_buffer, 56);
NCCL_IN(coll_1, receive_buffer, 64);
NCCL_IN(coll_1, count, 72);
NCCL_IN(coll_1, root, 80);
NCCL_IN(coll_1, datatype, 84);
NCCL_IN(coll_1, reduction, 88);
NCCL_IN(coll_1, traffic_bytes, 96);
NCCL_IN(coll_1, channels, 104);
NCCL_IN(coll_1, warps, 105);
NCCL_IN(coll_1, algorithm, 106);
NCCL_IN(coll_1, protocol, 107);
NCCL_IN(coll_1, is_collnet, 108);
NCCL_IN(coll_1, is_nvls, 112);
NCCL_IN(coll_2, func, 48);
NCCL_IN(coll_2, count, 72);
NCCL_IN(coll_2, root, 80);
NCCL_IN(coll_2, datatype, 88);
NCCL_IN(coll_2, traffic_bytes, 96);
NCCL_IN(coll_2, channels, 104);
NCCL_IN(coll_2, warps, 105);
NCCL_IN(coll_2, algorithm, 112);
NCCL_IN(coll_2, protocol, 120);
NCCL_IN(coll_3, comm_hash, 32);
NCCL_IN(coll_3, sequence, 40);
NCCL_IN(coll_3, datatype, 88);
NCCL_IN(coll_3, channels, 96);
NCCL_IN(coll_3, warps, 97);
NCCL_IN(coll_3, algorithm, 104);
NCCL_IN(coll_3, protocol, 112);
NCCL_IN(coll_4, sequence, 24);
NCCL_IN(coll_4, func, 32);
NCCL_IN(coll_4, send_buffer, 40);
NCCL_IN(coll_4, receive_buffer, 48);
NCCL_IN(coll_4, count, 56);
NCCL_IN(coll_4, root, 64);
NCCL_IN(coll_4, datatype, 72);
NCCL_IN(coll_4, channels, 80);
NCCL_IN(coll_4, warps, 81);
NCCL_IN(coll_4, algorithm, 88);
NCCL_IN(coll_4, protocol, 96);
NCCL_IN(coll_4, parent_group, 104);
NCCL_IN(coll_4, kernel_variant, 112);
NCCL_IN(coll_4, is_symmetric, 120);
NCCL_IN(coll_4, user_tag, 128);
NCCL_IN(p2p_1, func, 40);
NCCL_IN(p2p_1, buffer, 48);
NCCL_IN(p2p_1, datatype, 56);
NCCL_IN(p2p_1, count, 64);
NCCL_IN(p2p_1, peer, 72);
NCCL_IN(p2p_2, func, 40);
NCCL_IN(p2p_2, datatype, 56);
NCCL_IN(p2p_2, count, 64);
NCCL_IN(p2p_2, peer, 72);
NCCL_IN(p2p_4, func, 24);
NCCL_IN(p2p_4, buffer, 32);
NCCL_IN(p2p_4, datatype, 40);
NCCL_IN(p2p_4, count, 48);
NCCL_IN(p2p_4, peer, 56);
NCCL_IN(p2p_4, channels, 60);
NCCL_IN(p2p_4, parent_group, 64);
NCCL_IN(p2p_4, user_tag, 72);
NCCL_IN(proxy_op, pid, 24);
NCCL_IN(proxy_op, channel, 28);
NCCL_IN(proxy_op, peer, 32);
NCCL_IN(proxy_op, steps, 36);
NCCL_IN(proxy_op, chunk_bytes, 40);
NCCL_IN(proxy_op, is_send, 44);
NCCL_IN(proxy_step, step, 24);
NCCL_IN(kernel_ch, channel, 24);
NCCL_IN(kernel_ch, gpu_ns, 32);
NCCL_IN(net_plugin, id, 24);
NCCL_IN(net_plugin, data, 32);
NCCL_IN(group_api, graph_captured, 24);
NCCL_IN(group_api, depth, 28);
NCCL_IN(coll_api, func, 24);
NCCL_IN(coll_api, count, 32);
NCCL_IN(coll_api, datatype, 40);
NCCL_IN(coll_api, root, 48);
NCCL_IN(coll_api, stream, 56);
NCCL_IN(coll_api, graph_captured, 64);
NCCL_IN(coll_api, user_tag, 72);
NCCL_IN(p2p_api, func, 24);
NCCL_IN(p2p_api, count, 32);
NCCL_IN(p2p_api, datatype, 40);
NCCL_IN(p2p_api, stream, 48);
NCCL_IN(p2p_api, graph_captured, 56);
NCCL_IN(p2p_api, user_tag, 64);
NCCL_IN(kernel_launch, stream, 24);
NCCL_IN(ce_coll, sequence, 24);
NCCL_IN(ce_coll, func, 32);
NCCL_IN(ce_coll, count, 56);
NCCL_IN(ce_coll, root, 64);
NCCL_IN(ce_coll, datatype, 72);
NCCL_IN(ce_coll, sync_strategy, 80);
NCCL_IN(ce_coll, batch_sync, 88);
NCCL_IN(ce_coll, batch_bytes, 92);
NCCL_IN(ce_coll, batches, 96);
NCCL_IN(ce_coll, ce_sequence, 100);
NCCL_IN(ce_coll, stream, 104);
NCCL_IN(ce_coll, user_tag, 112);
NCCL_IN(ce_sync, is_complete, 24);
NCCL_IN(ce_sync, ranks, 28);
NCCL_IN(ce_batch, operations, 24);
NCCL_IN(ce_batch, total_bytes, 32);
NCCL_IN(ce_batch, uses_sync, 40);
NCCL_IN(kernel_phase, channel, 24);
NCCL_IN(kernel_phase, phase, 25);
NCCL_IN(kernel_phase, phase_name, 32);
NCCL_IN(kernel_phase, gpu_ns, 40);
