// SPDX-License-Identifier: BSD-3-Clause
// Calls that software devices do not support, or that need the kernel. Errors are those of a real
// device without the feature. Address handles and multicast belong to datagrams; ECE and imports
// belong to the kernel.
#include "preload.h"

#include <dlfcn.h>

static void report_datagrams(void) {
	preload_report_unsupported(
		"an address handle", "RC queue pairs, which get the address by ibv_modify_qp()"
	);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_create_ah)(pd, attr);
	report_datagrams();
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_create_ah_from_wc)(pd, wc, grh, port);
	report_datagrams();
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_init_ah_from_wc(
	struct ibv_context *context,
	uint8_t port,
	struct ibv_wc *wc,
	struct ibv_grh *grh,
	struct ibv_ah_attr *attr
) {
	if (!preload_owns_context(context))
		return REAL(ibv_init_ah_from_wc)(context, port, wc, grh, attr);
	return return_minus_one(-EOPNOTSUPP);
}

int ibv_resolve_eth_l2_from_gid(
	struct ibv_context *context,
	struct ibv_ah_attr *attr,
	uint8_t eth_mac[ETHERNET_LL_SIZE],
	uint16_t *vid
) {
	if (!preload_owns_context(context))
		return REAL(ibv_resolve_eth_l2_from_gid)(context, attr, eth_mac, vid);
	return return_minus_one(-EOPNOTSUPP);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_attach_mcast)(qp, gid, lid);
	preload_report_unsupported("multicast", "one RC queue pair per receiver");
	return return_positive_errno(-EOPNOTSUPP);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_detach_mcast)(qp, gid, lid);
	return return_positive_errno(-EOPNOTSUPP);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_query_ece)(qp, ece);
	return return_positive_errno(-EOPNOTSUPP);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_set_ece)(qp, ece);
	return return_positive_errno(-EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle) {
	if (!preload_owns_context(context))
		return REAL(ibv_import_pd)(context, handle);
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_import_mr)(pd, handle);
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle) {
	if (!preload_owns_context(context))
		return REAL(ibv_import_dm)(context, handle);
	errno = EOPNOTSUPP;
	return NULL;
}

// Part of librdmacm, which asks the kernel. Without RDMA in the kernel its error would only be
// ENOENT.
struct rdma_event_channel;
struct rdma_event_channel *rdma_create_event_channel(void);

struct rdma_event_channel *rdma_create_event_channel(void) {
	struct rdma_event_channel *(*real)(void) = NULL;
	void *found = dlsym(RTLD_NEXT, "rdma_create_event_channel");
	struct rdma_event_channel *channel = NULL;
	int err = ENOSYS;

	if (found != NULL) {
		__builtin_memcpy(&real, &found, sizeof(found));
		channel = real();
		err = errno;
	}
	if (channel == NULL)
		preload_report_unsupported(
			"the connection manager (librdmacm, -R of perftest)",
			"an exchange of addresses by the program, for example over TCP"
		);
	errno = err;
	return channel;
}
