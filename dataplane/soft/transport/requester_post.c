// SPDX-License-Identifier: BSD-3-Clause
// Posting of work requests: check, copy, and assign PSNs.
#include "transport/requester_impl.h"

#include <errno.h>
#include <string.h>

#define ATOMIC_BYTES 8
#define FLAGS_KNOWN (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static bool opcode_is_known(enum ibv_wr_opcode opcode) {
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return true;
	default:
		return false;
	}
}

static int
request_check(const struct soft_qp *qp, const struct ibv_send_wr *wr, uint32_t *ret_length) {
	bool inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
	uint64_t length = 0;

	if (!qp_accepts_posts(qp) || !opcode_is_known(wr->opcode))
		return -EINVAL;
	if ((wr->send_flags & ~(unsigned int)FLAGS_KNOWN) != 0)
		return -EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->requester.sge_max)
		return -EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > REQUESTER_MESSAGE_MAX)
		return -EINVAL;
	if (wr->opcode >= IBV_WR_RDMA_READ && (inlined || qp->attr.max_rd_atomic == 0))
		return -EINVAL;
	if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && length != ATOMIC_BYTES)
		return -EINVAL;
	if (inlined && length > qp->requester.inline_max)
		return -EINVAL;
	*ret_length = (uint32_t)length;
	return 0;
}

static void copy_sges_or_inline_data(
	const struct requester *requester, struct send_work *work, const struct ibv_send_wr *wr
) {
	if ((work->flags & IBV_SEND_INLINE) != 0 && work->length > 0) {
		uint8_t *to = work_inline(requester, requester->tail);

		for (int i = 0; i < wr->num_sge; i++) {
			const struct ibv_sge *sge = &wr->sg_list[i];

			if (sge->length == 0)
				continue;
			// NOLINTNEXTLINE(performance-no-int-to-ptr): verbs addresses are numbers
			memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
			to += sge->length;
		}
		return;
	}
	work->sge_count = (uint32_t)wr->num_sge;
	if (work->sge_count > 0)
		memcpy(work_sges(requester, requester->tail), wr->sg_list,
		       work->sge_count * sizeof(struct ibv_sge));
}

int requester_post(struct soft_qp *qp, const struct ibv_send_wr *wr) {
	struct requester *requester = &qp->requester;
	struct send_work *work = work_at(requester, requester->tail);
	uint32_t mtu = qp->mtu; // 0 if never connected, which happens in ERR
	uint32_t length;
	int err = request_check(qp, wr, &length);

	if (err != 0)
		return err;
	if (requester->tail - requester->head >= requester->capacity)
		return -ENOMEM;
	*work = (struct send_work){
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->send_flags | (qp->signal_all ? IBV_SEND_SIGNALED : 0u),
		.immediate = wr->imm_data,
		.length = length,
		.first_psn = requester->post_psn,
		.packets = length <= mtu || mtu == 0 ? 1 : (length + mtu - 1) / mtu,
	};
	if (work_is_atomic(work)) {
		work->remote_address = wr->wr.atomic.remote_addr;
		work->rkey = wr->wr.atomic.rkey;
		work->compare_add = wr->wr.atomic.compare_add;
		work->swap = wr->wr.atomic.swap;
	} else {
		work->remote_address = wr->wr.rdma.remote_addr;
		work->rkey = wr->wr.rdma.rkey;
	}
	if (qp->verbs.state == IBV_QPS_ERR) {
		requester_complete(qp, work, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	copy_sges_or_inline_data(requester, work, wr);
	requester->post_psn = work_end_psn(work);
	requester->tail++;
	qp_mark_ready(qp);
	return 0;
}
