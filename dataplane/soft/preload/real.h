// SPDX-License-Identifier: BSD-3-Clause
// The calls of libibverbs and the C library that this library interposes: the next definition
// behind it.
#pragma once

#include <dataplane/verbs.h>
#include <lib/must.h>

#include <dlfcn.h>
#include <sys/stat.h>

// Some of these names are macros over functions of the same name.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// Exported by libibverbs for rdma-core's own programs, without a header; ibv_devinfo calls it.
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

// Calls of versions newer than the oldest libibverbs that the build supports, declared without its
// types. This library defines these names even if the real library lacks them.
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *ret_speed);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **ret_buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *
ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *address, size_t length, int access);
// NOLINTNEXTLINE(bugprone-reserved-identifier): libibverbs calls it so
int _ibv_query_comp_cntr_caps(
	struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_bytes
);
struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr);
int ibv_qp_attach_comp_cntr(
	struct ibv_qp *qp, struct ibv_comp_cntr *counter, struct ibv_qp_attach_comp_cntr_attr *attr
);

// Variants of stat() for programs built before glibc 2.33; current headers do not declare them.
struct stat64;
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's name
int __xstat(int version, const char *path, struct stat *status);
// NOLINTNEXTLINE(bugprone-reserved-identifier): as above
int __xstat64(int version, const char *path, struct stat64 *status);

#define NEWER_CALLS(CALL)                               \
	CALL(ibv_reg_mr_ex, "IBVERBS_1.15")             \
	CALL(ibv_alloc_dmah, "IBVERBS_1.15")            \
	CALL(ibv_dealloc_dmah, "IBVERBS_1.15")          \
	CALL(ibv_dm_export_dmabuf_fd, "IBVERBS_1.16")   \
	CALL(ibv_query_port_speed, "IBVERBS_1.16")      \
	CALL(ibv_alloc_buf, "IBVERBS_1.17")             \
	CALL(ibv_free_buf, "IBVERBS_1.17")              \
	CALL(ibv_reg_buf_mr, "IBVERBS_1.17")            \
	CALL(_ibv_query_comp_cntr_caps, "IBVERBS_1.18") \
	CALL(ibv_create_comp_cntr, "IBVERBS_1.18")      \
	CALL(ibv_qp_attach_comp_cntr, "IBVERBS_1.18")

// The functions of libibverbs that take a device or an object of a device, each with the symbol
// version that current programs request. NULL means any version: for functions that only
// libibverbs itself calls, and for interposed functions of the C library.
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
	CALL(ibv_import_dm, "IBVERBS_1.13")              \
	NEWER_CALLS(CALL)                                \
	CALL(dlopen, NULL)                               \
	CALL(__xstat, NULL)                              \
	CALL(__xstat64, NULL)

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define REAL_FIELD(name, version) __typeof__(&(name)) name;
struct real_calls {
	REAL_CALLS(REAL_FIELD)
};

// Return the real calls, resolved by the first caller. An older libibverbs lacks the newest ones.
const struct real_calls *real_calls(void);

// The call must exist: without this library, a program that uses it would not have started.
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define REAL(name) (must(real_calls()->name != NULL), real_calls()->name)
