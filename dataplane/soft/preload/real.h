// SPDX-License-Identifier: BSD-3-Clause
// The calls of libibverbs that stand behind ours: what a program would have reached without us.
#pragma once

#include <dataplane/verbs.h>
#include <lib/must.h>

// Some names are macros over functions of the same name.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// Exported by libibverbs for rdma-core's own programs, and in no header: ibv_devinfo calls it.
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

// Everything that takes an object of a device, with the version that programs of today ask for.
// What has none is the system's own affair and may have any.
#define REAL_CALLS(CALL)                                 \
	CALL(ibv_get_device_list, "IBVERBS_1.1")         \
	CALL(ibv_free_device_list, "IBVERBS_1.1")        \
	CALL(ibv_get_device_name, "IBVERBS_1.1")         \
	CALL(ibv_get_device_index, "IBVERBS_1.9")        \
	CALL(ibv_get_device_guid, "IBVERBS_1.1")         \
	CALL(ibv_open_device, "IBVERBS_1.1")             \
	CALL(ibv_close_device, "IBVERBS_1.1")            \
	CALL(ibv_get_async_event, "IBVERBS_1.1")         \
	CALL(ibv_ack_async_event, "IBVERBS_1.1")         \
	CALL(ibv_query_device, "IBVERBS_1.1")            \
	CALL(ibv_query_port, "IBVERBS_1.1")              \
	CALL(ibv_query_gid, "IBVERBS_1.1")               \
	CALL(_ibv_query_gid_ex, "IBVERBS_1.11")          \
	CALL(_ibv_query_gid_table, "IBVERBS_1.11")       \
	CALL(ibv_query_gid_type, NULL)                   \
	CALL(ibv_query_pkey, "IBVERBS_1.1")              \
	CALL(ibv_get_pkey_index, "IBVERBS_1.5")          \
	CALL(ibv_alloc_pd, "IBVERBS_1.1")                \
	CALL(ibv_dealloc_pd, "IBVERBS_1.1")              \
	CALL(ibv_reg_mr, "IBVERBS_1.1")                  \
	CALL(ibv_reg_mr_iova, "IBVERBS_1.7")             \
	CALL(ibv_reg_mr_iova2, "IBVERBS_1.8")            \
	CALL(ibv_reg_dmabuf_mr, "IBVERBS_1.12")          \
	CALL(ibv_rereg_mr, "IBVERBS_1.1")                \
	CALL(ibv_dereg_mr, "IBVERBS_1.1")                \
	CALL(ibv_create_comp_channel, "IBVERBS_1.0")     \
	CALL(ibv_destroy_comp_channel, "IBVERBS_1.0")    \
	CALL(ibv_create_cq, "IBVERBS_1.1")               \
	CALL(ibv_resize_cq, "IBVERBS_1.1")               \
	CALL(ibv_destroy_cq, "IBVERBS_1.1")              \
	CALL(ibv_get_cq_event, "IBVERBS_1.1")            \
	CALL(ibv_ack_cq_events, "IBVERBS_1.1")           \
	CALL(ibv_create_srq, "IBVERBS_1.1")              \
	CALL(ibv_modify_srq, "IBVERBS_1.1")              \
	CALL(ibv_query_srq, "IBVERBS_1.1")               \
	CALL(ibv_destroy_srq, "IBVERBS_1.1")             \
	CALL(ibv_create_qp, "IBVERBS_1.1")               \
	CALL(ibv_qp_to_qp_ex, "IBVERBS_1.6")             \
	CALL(ibv_query_qp, "IBVERBS_1.1")                \
	CALL(ibv_query_qp_data_in_order, "IBVERBS_1.14") \
	CALL(ibv_modify_qp, "IBVERBS_1.1")               \
	CALL(ibv_destroy_qp, "IBVERBS_1.1")              \
	CALL(ibv_query_ece, "IBVERBS_1.10")              \
	CALL(ibv_set_ece, "IBVERBS_1.10")                \
	CALL(ibv_create_ah, "IBVERBS_1.1")               \
	CALL(ibv_create_ah_from_wc, "IBVERBS_1.1")       \
	CALL(ibv_init_ah_from_wc, "IBVERBS_1.1")         \
	CALL(ibv_attach_mcast, "IBVERBS_1.1")            \
	CALL(ibv_detach_mcast, "IBVERBS_1.1")            \
	CALL(ibv_resolve_eth_l2_from_gid, "IBVERBS_1.1") \
	CALL(ibv_import_pd, "IBVERBS_1.10")              \
	CALL(ibv_import_mr, "IBVERBS_1.10")              \
	CALL(ibv_import_dm, "IBVERBS_1.13")

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define REAL_FIELD(name, version) __typeof__(&(name)) name;
struct real_calls {
	REAL_CALLS(REAL_FIELD)
};

// Found at the first call, by whichever thread is first. An older libibverbs lacks the newest ones.
const struct real_calls *real_calls(void);

// A program that calls what its libibverbs lacks would not have started without us.
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define REAL(name) (must(real_calls()->name != NULL), real_calls()->name)
