// SPDX-License-Identifier: BSD-3-Clause
// Protection domains, memory, completion queues, shared receive queues, queue pairs.
//
// Objects destroyed in a forked child are dropped silently: programs do that while they exit.
#include "preload.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
	struct ibv_pd *pd = NULL;
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_alloc_pd)(context);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.alloc_pd(context, &pd));
	return return_null_on_error(err, pd);
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_dealloc_pd)(pd);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(0, verbs_calls_soft.dealloc_pd(pd)));
}

// Remove the access flags that a device may ignore.
static int access_without_optional(unsigned int access) {
	return (int)(access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE);
}

static struct ibv_mr *
register_memory(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access) {
	struct ibv_mr *mr = NULL;
	int err;

	err = PRELOAD_UNLESS_FORKED(-EIO, soft_reg_mr_iova(pd, address, length, iova, access, &mr));
	return return_null_on_error(err, mr);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_reg_mr)(pd, address, length, access);
	return register_memory(
		pd, address, length, (uintptr_t)address,
		access_without_optional((unsigned int)access)
	);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_reg_mr_iova)(pd, address, length, iova, access);
	return register_memory(
		pd, address, length, iova, access_without_optional((unsigned int)access)
	);
}

struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned int access
) {
	if (!preload_owns_context(pd->context))
		return REAL(ibv_reg_mr_iova2)(pd, address, length, iova, access);
	return register_memory(pd, address, length, iova, access_without_optional(access));
}

struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access
) {
	struct verbs_dmabuf dmabuf = {.fd = fd, .offset = offset, .length = length, .iova = iova};
	struct ibv_mr *mr = NULL;
	int err;

	if (!preload_owns_context(pd->context))
		return REAL(ibv_reg_dmabuf_mr)(pd, offset, length, iova, fd, access);
	err = PRELOAD_UNLESS_FORKED(
		-EIO, verbs_calls_soft.reg_dmabuf_mr(
			      pd, &dmabuf, access_without_optional((unsigned int)access), &mr
		      )
	);
	return return_null_on_error(err, mr);
}

int ibv_rereg_mr(
	struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access
) {
	if (!preload_owns_context(mr->context))
		return REAL(ibv_rereg_mr)(mr, flags, pd, address, length, access);
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT; // the region is unchanged
}

int ibv_dereg_mr(struct ibv_mr *mr) {
	if (!preload_owns_context(mr->context))
		return REAL(ibv_dereg_mr)(mr);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(0, verbs_calls_soft.dereg_mr(mr)));
}

struct ibv_cq *ibv_create_cq(
	struct ibv_context *context,
	int entries,
	void *cq_context,
	struct ibv_comp_channel *channel,
	int vector
) {
	struct ibv_cq *cq = NULL;
	int err = 0;

	if (!preload_owns_context(context))
		return REAL(ibv_create_cq)(context, entries, cq_context, channel, vector);
	if (entries <= 0 || vector < 0 || vector >= context->num_comp_vectors)
		err = -EINVAL;
	if (err == 0)
		err = PRELOAD_UNLESS_FORKED(
			-EIO, verbs_calls_soft.create_cq(context, (uint32_t)entries, channel, &cq)
		);
	if (err == 0)
		cq->cq_context = cq_context;
	return return_null_on_error(err, cq);
}

int ibv_resize_cq(struct ibv_cq *cq, int entries) {
	if (!preload_owns_context(cq->context))
		return REAL(ibv_resize_cq)(cq, entries);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(-EIO, soft_resize_cq(cq, entries)));
}

int ibv_destroy_cq(struct ibv_cq *cq) {
	if (!preload_owns_context(cq->context))
		return REAL(ibv_destroy_cq)(cq);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(0, verbs_calls_soft.destroy_cq(cq)));
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
	struct ibv_srq *srq = NULL;
	int err;

	if (!preload_owns_context(pd->context))
		return REAL(ibv_create_srq)(pd, attr);
	err = PRELOAD_UNLESS_FORKED(-EIO, soft_create_srq(pd, attr, &srq));
	if (err == 0)
		srq->srq_context = attr->srq_context;
	return return_null_on_error(err, srq);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask) {
	if (!preload_owns_context(srq->context))
		return REAL(ibv_modify_srq)(srq, attr, mask);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(-EIO, soft_modify_srq(srq, attr, mask)));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr) {
	if (!preload_owns_context(srq->context))
		return REAL(ibv_query_srq)(srq, attr);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(-EIO, soft_query_srq(srq, attr)));
}

int ibv_destroy_srq(struct ibv_srq *srq) {
	if (!preload_owns_context(srq->context))
		return REAL(ibv_destroy_srq)(srq);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(0, soft_destroy_srq(srq)));
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
	struct ibv_qp *qp = NULL;
	int err;

	if (!preload_owns_context(pd->context))
		return REAL(ibv_create_qp)(pd, attr);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.create_qp(pd, attr, &qp));
	if (err == -EOPNOTSUPP)
		preload_report_unsupported(
			attr->qp_type == IBV_QPT_UD   ? "a UD queue pair"
			: attr->qp_type == IBV_QPT_UC ? "a UC queue pair"
						      : "a queue pair of another type than RC, "
							"UC or UD",
			"IBV_QPT_RC"
		);
	if (err == 0)
		qp->qp_context = attr->qp_context;
	return return_null_on_error(err, qp);
}

// libibverbs' inline calls jump here with attributes beyond the plain call. The struct begins like
// the plain one.
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr) {
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	uint32_t mask = attr->comp_mask;

	if ((mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == NULL || attr->pd->context != context)
		return return_null_on_error(-EINVAL, (struct ibv_qp *)NULL);
	if ((mask & ~known) == 0 &&
	    ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) == 0 || attr->create_flags == 0))
		return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)(void *)attr);
	if ((mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0)
		preload_report_unsupported("posting by ibv_wr_...()", "ibv_post_send()");
	else
		preload_report_unsupported(
			"a queue pair with extended attributes", "ibv_create_qp()"
		);
	return return_null_on_error(-EOPNOTSUPP, (struct ibv_qp *)NULL);
}

static struct ibv_cq_ex *
create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr) {
	struct ibv_cq_ex *cq = NULL;
	int err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.create_cq_ex(context, attr, &cq));

	if (err == -EOPNOTSUPP)
		preload_report_unsupported(
			"an extended completion queue with more than time stamps and the fields of "
			"a plain completion",
			"IBV_WC_STANDARD_FLAGS"
		);
	return return_null_on_error(err, cq);
}

void preload_set_extended_calls(struct ibv_context *context) {
	struct verbs_context *extended = verbs_get_ctx(context);

	extended->create_qp_ex = create_qp_ex;
	extended->create_cq_ex = create_cq_ex;
}

// ibv_qp_ex (ibv_wr_...) is an alternative way to post; software devices only have ibv_post_send().
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
	return preload_owns_context(qp->context) ? NULL : REAL(ibv_qp_to_qp_ex)(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
	union ibv_gid gid;
	int err;

	if (!preload_owns_context(qp->context))
		return REAL(ibv_modify_qp)(qp, attr, mask);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.modify_qp(qp, attr, mask));
	if (err != -EINVAL || (mask & IBV_QP_AV) == 0)
		return return_positive_errno(err);
	if (attr->ah_attr.is_global == 0)
		preload_report_unsupported(
			"an address without a GID (LID alone)", "GID index 0 (-g 0, -x 0)"
		);
	else if (ibv_query_gid(qp->context, 1, attr->ah_attr.grh.sgid_index, &gid) != 0)
		preload_report_unsupported(
			"another GID index", "0, which is the device's address (-g 0, -x 0)"
		);
	return return_positive_errno(err);
}

int ibv_query_qp(
	struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init
) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_query_qp)(qp, attr, mask, init);
	return return_positive_errno(
		PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.query_qp(qp, mask, attr, init))
	);
}

// Only the last byte of a packet is ordered, after all bytes before it.
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags) {
	return preload_owns_context(qp->context) ? 0
						 : REAL(ibv_query_qp_data_in_order)(qp, op, flags);
}

int ibv_destroy_qp(struct ibv_qp *qp) {
	if (!preload_owns_context(qp->context))
		return REAL(ibv_destroy_qp)(qp);
	return return_positive_errno(PRELOAD_UNLESS_FORKED(0, verbs_calls_soft.destroy_qp(qp)));
}
