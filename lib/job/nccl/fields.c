// SPDX-License-Identifier: BSD-3-Clause
// Table of descriptor fields, and names of event types.
#include "fields.h"

#define AT(member) offsetof(struct nccl_descriptor, member)

const struct nccl_field nccl_fields[] = {
	{NCCL_COLL, 1, 1, NCCL_TEXT, AT(coll_1.comm_name), "name"},
	{NCCL_COLL, 1, 1, NCCL_HEX, AT(coll_1.comm_hash), "hash"},
	{NCCL_COLL, 1, 1, NCCL_U64, AT(coll_1.sequence), "sequence"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.func), "func"},
	{NCCL_COLL, 1, 1, NCCL_U64, AT(coll_1.count), "count"},
	{NCCL_COLL, 1, 1, NCCL_I32, AT(coll_1.root), "root"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.datatype), "datatype"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.channels), "channels"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.warps), "warps"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.algorithm), "algorithm"},
	{NCCL_COLL, 1, 1, NCCL_U8, AT(coll_1.protocol), "protocol"},
	{NCCL_COLL, 2, 2, NCCL_TEXT, AT(coll_2.comm_name), "name"},
	{NCCL_COLL, 2, 2, NCCL_HEX, AT(coll_2.comm_hash), "hash"},
	{NCCL_COLL, 2, 2, NCCL_U64, AT(coll_2.sequence), "sequence"},
	{NCCL_COLL, 2, 2, NCCL_TEXT, AT(coll_2.func), "func"},
	{NCCL_COLL, 2, 2, NCCL_U64, AT(coll_2.count), "count"},
	{NCCL_COLL, 2, 2, NCCL_I32, AT(coll_2.root), "root"},
	{NCCL_COLL, 2, 2, NCCL_TEXT, AT(coll_2.datatype), "datatype"},
	{NCCL_COLL, 2, 2, NCCL_U8, AT(coll_2.channels), "channels"},
	{NCCL_COLL, 2, 2, NCCL_U8, AT(coll_2.warps), "warps"},
	{NCCL_COLL, 2, 2, NCCL_TEXT, AT(coll_2.algorithm), "algorithm"},
	{NCCL_COLL, 2, 2, NCCL_TEXT, AT(coll_2.protocol), "protocol"},
	{NCCL_COLL, 3, 3, NCCL_TEXT, AT(coll_3.comm_name), "name"},
	{NCCL_COLL, 3, 3, NCCL_HEX, AT(coll_3.comm_hash), "hash"},
	{NCCL_COLL, 3, 3, NCCL_U64, AT(coll_3.sequence), "sequence"},
	{NCCL_COLL, 3, 3, NCCL_TEXT, AT(coll_3.func), "func"},
	{NCCL_COLL, 3, 3, NCCL_U64, AT(coll_3.count), "count"},
	{NCCL_COLL, 3, 3, NCCL_I32, AT(coll_3.root), "root"},
	{NCCL_COLL, 3, 3, NCCL_TEXT, AT(coll_3.datatype), "datatype"},
	{NCCL_COLL, 3, 3, NCCL_U8, AT(coll_3.channels), "channels"},
	{NCCL_COLL, 3, 3, NCCL_U8, AT(coll_3.warps), "warps"},
	{NCCL_COLL, 3, 3, NCCL_TEXT, AT(coll_3.algorithm), "algorithm"},
	{NCCL_COLL, 3, 3, NCCL_TEXT, AT(coll_3.protocol), "protocol"},
	{NCCL_COLL, 4, 7, NCCL_U64, AT(coll_4.sequence), "sequence"},
	{NCCL_COLL, 4, 7, NCCL_TEXT, AT(coll_4.func), "func"},
	{NCCL_COLL, 4, 7, NCCL_U64, AT(coll_4.count), "count"},
	{NCCL_COLL, 4, 7, NCCL_I32, AT(coll_4.root), "root"},
	{NCCL_COLL, 4, 7, NCCL_TEXT, AT(coll_4.datatype), "datatype"},
	{NCCL_COLL, 4, 7, NCCL_U8, AT(coll_4.channels), "channels"},
	{NCCL_COLL, 4, 7, NCCL_U8, AT(coll_4.warps), "warps"},
	{NCCL_COLL, 4, 7, NCCL_TEXT, AT(coll_4.algorithm), "algorithm"},
	{NCCL_COLL, 4, 7, NCCL_TEXT, AT(coll_4.protocol), "protocol"},
	{NCCL_COLL, 7, 7, NCCL_TEXT, AT(coll_4.kernel_variant), "variant"},
	{NCCL_COLL, 7, 7, NCCL_BOOL, AT(coll_4.is_symmetric), "symmetric"},
	{NCCL_COLL, 7, 7, NCCL_TEXT, AT(coll_4.user_tag), "tag"},

	{NCCL_P2P, 1, 1, NCCL_TEXT, AT(p2p_1.comm_name), "name"},
	{NCCL_P2P, 1, 1, NCCL_HEX, AT(p2p_1.comm_hash), "hash"},
	{NCCL_P2P, 1, 1, NCCL_U8, AT(p2p_1.func), "func"},
	{NCCL_P2P, 1, 1, NCCL_U8, AT(p2p_1.datatype), "datatype"},
	{NCCL_P2P, 1, 1, NCCL_U64, AT(p2p_1.count), "count"},
	{NCCL_P2P, 1, 1, NCCL_I32, AT(p2p_1.peer), "peer"},
	{NCCL_P2P, 2, 3, NCCL_TEXT, AT(p2p_2.comm_name), "name"},
	{NCCL_P2P, 2, 3, NCCL_HEX, AT(p2p_2.comm_hash), "hash"},
	{NCCL_P2P, 2, 3, NCCL_TEXT, AT(p2p_2.func), "func"},
	{NCCL_P2P, 2, 3, NCCL_TEXT, AT(p2p_2.datatype), "datatype"},
	{NCCL_P2P, 2, 3, NCCL_U64, AT(p2p_2.count), "count"},
	{NCCL_P2P, 2, 3, NCCL_I32, AT(p2p_2.peer), "peer"},
	{NCCL_P2P, 4, 7, NCCL_TEXT, AT(p2p_4.func), "func"},
	{NCCL_P2P, 4, 7, NCCL_TEXT, AT(p2p_4.datatype), "datatype"},
	{NCCL_P2P, 4, 7, NCCL_U64, AT(p2p_4.count), "count"},
	{NCCL_P2P, 4, 7, NCCL_I32, AT(p2p_4.peer), "peer"},
	{NCCL_P2P, 4, 7, NCCL_U8, AT(p2p_4.channels), "channels"},
	{NCCL_P2P, 7, 7, NCCL_TEXT, AT(p2p_4.user_tag), "tag"},

	{NCCL_PROXY_OP, 1, 7, NCCL_I32, AT(proxy_op.pid), "pid"},
	{NCCL_PROXY_OP, 1, 7, NCCL_U8, AT(proxy_op.channel), "channel"},
	{NCCL_PROXY_OP, 1, 7, NCCL_I32, AT(proxy_op.peer), "peer"},
	{NCCL_PROXY_OP, 1, 7, NCCL_I32, AT(proxy_op.steps), "steps"},
	{NCCL_PROXY_OP, 1, 7, NCCL_I32, AT(proxy_op.chunk_bytes), "chunk"},
	{NCCL_PROXY_OP, 1, 7, NCCL_I32, AT(proxy_op.is_send), "send"},
	{NCCL_PROXY_STEP, 1, 7, NCCL_I32, AT(proxy_step.step), "step"},
	{NCCL_KERNEL_CH, 3, 7, NCCL_U8, AT(kernel_ch.channel), "channel"},
	{NCCL_KERNEL_CH, 4, 7, NCCL_U64, AT(kernel_ch.gpu_ns), "gpu"},
	{NCCL_NET_PLUGIN, 3, 7, NCCL_HEX, AT(net_plugin.id), "id"},

	{NCCL_GROUP_API, 5, 7, NCCL_BOOL, AT(group_api.graph_captured), "graph"},
	{NCCL_GROUP_API, 5, 7, NCCL_I32, AT(group_api.depth), "depth"},
	{NCCL_COLL_API, 5, 7, NCCL_TEXT, AT(coll_api.func), "func"},
	{NCCL_COLL_API, 5, 7, NCCL_U64, AT(coll_api.count), "count"},
	{NCCL_COLL_API, 5, 7, NCCL_TEXT, AT(coll_api.datatype), "datatype"},
	{NCCL_COLL_API, 5, 7, NCCL_I32, AT(coll_api.root), "root"},
	{NCCL_COLL_API, 5, 7, NCCL_BOOL, AT(coll_api.graph_captured), "graph"},
	{NCCL_COLL_API, 7, 7, NCCL_TEXT, AT(coll_api.user_tag), "tag"},
	{NCCL_P2P_API, 5, 7, NCCL_TEXT, AT(p2p_api.func), "func"},
	{NCCL_P2P_API, 5, 7, NCCL_U64, AT(p2p_api.count), "count"},
	{NCCL_P2P_API, 5, 7, NCCL_TEXT, AT(p2p_api.datatype), "datatype"},
	{NCCL_P2P_API, 5, 7, NCCL_BOOL, AT(p2p_api.graph_captured), "graph"},
	{NCCL_P2P_API, 7, 7, NCCL_TEXT, AT(p2p_api.user_tag), "tag"},

	{NCCL_CE_COLL, 6, 7, NCCL_U64, AT(ce_coll.sequence), "sequence"},
	{NCCL_CE_COLL, 6, 7, NCCL_TEXT, AT(ce_coll.func), "func"},
	{NCCL_CE_COLL, 6, 7, NCCL_U64, AT(ce_coll.count), "count"},
	{NCCL_CE_COLL, 6, 7, NCCL_I32, AT(ce_coll.root), "root"},
	{NCCL_CE_COLL, 6, 7, NCCL_TEXT, AT(ce_coll.datatype), "datatype"},
	{NCCL_CE_COLL, 6, 7, NCCL_TEXT, AT(ce_coll.sync_strategy), "strategy"},
	{NCCL_CE_COLL, 6, 7, NCCL_BOOL, AT(ce_coll.batch_sync), "batchsync"},
	{NCCL_CE_COLL, 6, 7, NCCL_U32, AT(ce_coll.batch_bytes), "batchbytes"},
	{NCCL_CE_COLL, 6, 7, NCCL_U32, AT(ce_coll.batches), "batches"},
	{NCCL_CE_COLL, 6, 7, NCCL_U32, AT(ce_coll.ce_sequence), "cesequence"},
	{NCCL_CE_COLL, 7, 7, NCCL_TEXT, AT(ce_coll.user_tag), "tag"},
	{NCCL_CE_SYNC, 6, 7, NCCL_BOOL, AT(ce_sync.is_complete), "complete"},
	{NCCL_CE_SYNC, 6, 7, NCCL_I32, AT(ce_sync.ranks), "ranks"},
	{NCCL_CE_BATCH, 6, 7, NCCL_I32, AT(ce_batch.operations), "operations"},
	{NCCL_CE_BATCH, 6, 7, NCCL_U64, AT(ce_batch.total_bytes), "bytes"},
	{NCCL_CE_BATCH, 6, 7, NCCL_BOOL, AT(ce_batch.uses_sync), "batchsync"},
	{NCCL_KERNEL_PHASE, 7, 7, NCCL_U8, AT(kernel_phase.channel), "channel"},
	{NCCL_KERNEL_PHASE, 7, 7, NCCL_U8, AT(kernel_phase.phase), "phase"},
	{NCCL_KERNEL_PHASE, 7, 7, NCCL_TEXT, AT(kernel_phase.phase_name), "phasename"},
	{NCCL_KERNEL_PHASE, 7, 7, NCCL_U64, AT(kernel_phase.gpu_ns), "gpu"},
};
const uint32_t nccl_field_count = sizeof(nccl_fields) / sizeof(nccl_fields[0]);

// indexed by bit number
static const char *const type_names[] = {
	"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
	"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
	"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
};
#define TYPE_COUNT (sizeof(type_names) / sizeof(type_names[0]))

const char *nccl_type_name(uint32_t type) {
	for (uint32_t bit = 0; bit < TYPE_COUNT; bit++)
		if (type == UINT32_C(1) << bit)
			return type_names[bit];
	return NULL;
}

uint32_t nccl_types_in(int version) {
	static const uint16_t types[NCCL_VERSION_LAST + 1] = {
		0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff,
	};

	return version >= NCCL_VERSION_FIRST && version <= NCCL_VERSION_LAST ? types[version] : 0;
}
