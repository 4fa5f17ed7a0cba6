// SPDX-License-Identifier: BSD-3-Clause
// Completion queues of ibv_create_cq_ex(): completions are read one by one with their time stamps,
// and the clock of these stamps can be queried. Any thread may poll, one at a time from start_poll
// to end_poll.
#include "transport/qp.h"
#include "transport/verbs_limits.h"
#include "verbs/verbs_soft.h"

#include <errno.h>

// The raw clock counts nanoseconds, and all 64 bits are valid.
#define STAMP_KHZ UINT64_C(1000000)
#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define FIELDS_KNOWN ((uint64_t)IBV_WC_STANDARD_FLAGS | STAMPS)
#define MASK_KNOWN ((uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
#define FLAGS_KNOWN ((uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)

static struct soft_cq *soft_cq_of_extended(struct ibv_cq_ex *cq) {
	return container_of(cq, struct soft_cq, extended);
}

static int cq_read_next(struct soft_cq *cq) {
	if (!soft_poll_one(cq, &cq->current))
		return ENOENT;
	cq->extended.wr_id = cq->current.wc.wr_id;
	cq->extended.status = cq->current.wc.status;
	return 0;
}

static void cq_unlock_polling(struct soft_cq *cq) {
	if (!cq->one_thread)
		pthread_mutex_unlock(&cq->polling);
}

// Start polling. An empty ibv_poll_cq() detects a forked child, where the context's hot calls were
// replaced: the child has no engine and the lock may be held.
static int start_poll(struct ibv_cq_ex *verbs, struct ibv_poll_cq_attr *attr) {
	struct soft_cq *cq = soft_cq_of_extended(verbs);
	int err;

	if (attr->comp_mask != 0)
		return EINVAL;
	if (ibv_poll_cq(&cq->verbs, 0, NULL) != 0)
		return EIO;
	if (!cq->one_thread)
		pthread_mutex_lock(&cq->polling);
	err = cq_read_next(cq);
	if (err != 0)
		cq_unlock_polling(cq);
	return err;
}

static int next_poll(struct ibv_cq_ex *verbs) {
	return cq_read_next(soft_cq_of_extended(verbs));
}

static void end_poll(struct ibv_cq_ex *verbs) {
	cq_unlock_polling(soft_cq_of_extended(verbs));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.stamp.raw_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *verbs) {
	return soft_cq_of_extended(verbs)->current.stamp.wall_ns;
}

// Calls for fields that were not requested at creation stay NULL, as with other drivers.
static void cq_set_calls(struct ibv_cq_ex *cq, uint64_t fields) {
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if ((fields & IBV_WC_EX_WITH_BYTE_LEN) != 0)
		cq->read_byte_len = read_byte_len;
	if ((fields & IBV_WC_EX_WITH_IMM) != 0)
		cq->read_imm_data = read_imm_data;
	if ((fields & IBV_WC_EX_WITH_QP_NUM) != 0)
		cq->read_qp_num = read_qp_num;
	if ((fields & IBV_WC_EX_WITH_SRC_QP) != 0)
		cq->read_src_qp = read_src_qp;
	if ((fields & IBV_WC_EX_WITH_SLID) != 0)
		cq->read_slid = read_slid;
	if ((fields & IBV_WC_EX_WITH_SL) != 0)
		cq->read_sl = read_sl;
	if ((fields & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if ((fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0)
		cq->read_completion_ts = read_completion_ts;
	if ((fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0)
		cq->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

int soft_create_cq_ex(
	struct ibv_context *context,
	const struct ibv_cq_init_attr_ex *attr,
	struct ibv_cq_ex **ret_cq
) {
	bool has_flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
	uint32_t flags = has_flags ? attr->flags : 0;
	struct ibv_cq *plain;
	struct soft_cq *cq;
	int err;

	if ((attr->comp_mask & ~MASK_KNOWN) != 0 || (attr->wc_flags & ~FIELDS_KNOWN) != 0 ||
	    (flags & ~FLAGS_KNOWN) != 0)
		return -EOPNOTSUPP;
	if (attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return -EINVAL;
	err = soft_create_cq(context, attr->cqe, attr->channel, &plain);
	if (err != 0)
		return err;
	cq = soft_cq_of(plain);
	cq->verbs.cq_context = attr->cq_context;
	cq->one_thread = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
	// Safe without the lock, because no queue pair uses the queue yet.
	cq->stamps = attr->wc_flags & STAMPS;
	cq_set_calls(&cq->extended, attr->wc_flags);
	*ret_cq = &cq->extended;
	return 0;
}

int soft_query_stamp_clock(struct ibv_context *context, uint64_t *ret_mask, uint64_t *ret_khz) {
	(void)context;
	*ret_mask = UINT64_MAX;
	*ret_khz = STAMP_KHZ;
	return 0;
}

// Return the raw clock in tv_nsec alone, like other drivers, which return ticks there.
int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values) {
	uint32_t wanted = values->comp_mask;

	values->comp_mask = 0;
	if ((wanted & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		return EINVAL;
	if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) == 0)
		return 0;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)clock_now_ns(nic_of(context)->clock);
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}
