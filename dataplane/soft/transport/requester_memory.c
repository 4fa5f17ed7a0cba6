// SPDX-License-Identifier: BSD-3-Clause
// Access to the program's memory of a work request. Keys are looked up for each packet, because a
// region may be gone when a packet is sent again.
#include "transport/requester_impl.h"

static uint32_t min_u32(uint32_t a, uint32_t b) {
	return a < b ? a : b;
}

static uint8_t *sge_resolve(const struct soft_qp *qp, const struct ibv_sge *sge, int access) {
	return region_resolve(qp->nic, qp->verbs.pd, sge->lkey, sge->addr, sge->length, access);
}

bool work_gather(
	const struct soft_qp *qp, uint32_t index, uint32_t offset, uint8_t *to, uint32_t size
) {
	const struct requester *requester = &qp->requester;
	const struct ibv_sge *sge = work_sges(requester, index);

	if ((work_at(requester, index)->flags & IBV_SEND_INLINE) != 0) {
		memcpy(to, work_inline(requester, index) + offset, size);
		return true;
	}
	for (; size > 0; sge++) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		uint32_t taken = min_u32(size, sge->length - offset);
		const uint8_t *from = sge_resolve(qp, sge, 0);

		if (from == NULL)
			return false;
		memcpy(to, from + offset, taken);
		to += taken;
		size -= taken;
		offset = 0;
	}
	return true;
}

bool work_scatter(
	const struct soft_qp *qp,
	uint32_t index,
	uint32_t offset,
	const uint8_t *from,
	uint32_t size
) {
	const struct ibv_sge *sge = work_sges(&qp->requester, index);

	for (; size > 0; sge++) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		uint32_t taken = min_u32(size, sge->length - offset);
		uint8_t *to = sge_resolve(qp, sge, IBV_ACCESS_LOCAL_WRITE);

		if (to == NULL)
			return false;
		copy_last_byte_last(to + offset, from, taken);
		from += taken;
		size -= taken;
		offset = 0;
	}
	return true;
}
