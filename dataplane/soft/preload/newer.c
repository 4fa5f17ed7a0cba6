// SPDX-License-Identifier: BSD-3-Clause
// Calls added to libibverbs after 1.14. This library defines them even if the real library does
// not. If the real library lacks a call, the call is refused for real devices too.
#include "preload.h"

#include <errno.h>

// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name
#define REAL_HAS_CALL(name) (real_calls()->name != NULL)

// True if the real library must handle the call; false for software devices and older libraries.
#define REAL_HANDLES(context, name) (!preload_owns_context(context) && REAL_HAS_CALL(name))

static void *call_refuse(const char *asked, const char *instead) {
	preload_report_unsupported(asked, instead);
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr) {
	if (REAL_HANDLES(pd->context, ibv_reg_mr_ex))
		return REAL(ibv_reg_mr_ex)(pd, attr);
	return call_refuse(
		"ibv_reg_mr_ex()", "ibv_reg_mr(), ibv_reg_mr_iova2(), ibv_reg_dmabuf_mr()"
	);
}

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr) {
	if (REAL_HANDLES(context, ibv_alloc_dmah))
		return REAL(ibv_alloc_dmah)(context, attr);
	return call_refuse("a DMA handle", "memory without a DMA handle");
}

// Software devices have no DMA handles; the handles of other devices start with their context.
int ibv_dealloc_dmah(struct ibv_dmah *dmah) {
	return REAL_HAS_CALL(ibv_dealloc_dmah) ? REAL(ibv_dealloc_dmah)(dmah) : EOPNOTSUPP;
}

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm) {
	if (REAL_HAS_CALL(ibv_dm_export_dmabuf_fd))
		return REAL(ibv_dm_export_dmabuf_fd)(dm);
	errno = EOPNOTSUPP;
	return -1;
}

// Speed in units of 100 Mbit/s.
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *ret_speed) {
	if (REAL_HANDLES(context, ibv_query_port_speed))
		return REAL(ibv_query_port_speed)(context, port, ret_speed);
	preload_report_unsupported(
		"ibv_query_port_speed()", "active_speed and active_width of ibv_query_port()"
	);
	return return_positive_errno(-EOPNOTSUPP);
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **ret_buf) {
	if (REAL_HANDLES(pd->context, ibv_alloc_buf))
		return REAL(ibv_alloc_buf)(pd, size, ret_buf);
	return call_refuse("ibv_alloc_buf()", "the program's own memory and ibv_reg_mr()");
}

void ibv_free_buf(struct ibv_buf *buf) {
	if (REAL_HAS_CALL(ibv_free_buf))
		REAL(ibv_free_buf)(buf);
}

struct ibv_mr *
ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *address, size_t length, int access) {
	if (REAL_HANDLES(pd->context, ibv_reg_buf_mr))
		return REAL(ibv_reg_buf_mr)(pd, buf, address, length, access);
	return call_refuse("ibv_reg_buf_mr()", "ibv_reg_mr()");
}

int _ibv_query_comp_cntr_caps(
	struct ibv_context *context, struct ibv_comp_cntr_caps *caps, size_t caps_bytes
) {
	if (REAL_HANDLES(context, _ibv_query_comp_cntr_caps))
		return REAL(_ibv_query_comp_cntr_caps)(context, caps, caps_bytes);
	// Programs call this to find out, so no message is printed
	return return_positive_errno(-EOPNOTSUPP);
}

struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *attr) {
	if (REAL_HANDLES(context, ibv_create_comp_cntr))
		return REAL(ibv_create_comp_cntr)(context, attr);
	return call_refuse("a completion counter", "a completion queue");
}

int ibv_qp_attach_comp_cntr(
	struct ibv_qp *qp, struct ibv_comp_cntr *counter, struct ibv_qp_attach_comp_cntr_attr *attr
) {
	if (REAL_HANDLES(qp->context, ibv_qp_attach_comp_cntr))
		return REAL(ibv_qp_attach_comp_cntr)(qp, counter, attr);
	return return_positive_errno(-EOPNOTSUPP);
}
