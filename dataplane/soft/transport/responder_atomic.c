// SPDX-License-Identifier: BSD-3-Clause
// Executes compare-and-swap and fetch-and-add on the program's memory. Values are big-endian in the
// packet and in host order in memory. Threads of the program may use atomics on the same words.
#include "transport/responder_impl.h"

uint32_t responder_atomic(struct soft_qp *qp, const struct packet *packet) {
	struct response_work *work;
	uint8_t *bytes;
	uint64_t *word;

	if (!responder_has_room(qp))
		return 0;
	if (packet->payload_bytes > 0)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	bytes = region_resolve(
		qp->nic, qp->verbs.pd, packet->key, packet->address, sizeof(uint64_t),
		IBV_ACCESS_REMOTE_ATOMIC
	);
	if (bytes == NULL)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_ACCESS);
	// The remote address of a region may be aligned differently from its memory: both must be
	// aligned.
	if (((packet->address | (uintptr_t)bytes) & (sizeof(uint64_t) - 1)) != 0 ||
	    !packet_has_valid_pad(packet))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	work = responder_add_work(qp, packet);
	work->atomic = true;
	word = (uint64_t *)(void *)bytes;
	if (packet->opcode == PACKET_FETCH_ADD) {
		work->original = __atomic_fetch_add(word, packet->swap_add, __ATOMIC_SEQ_CST);
	} else {
		work->original = packet->compare;
		__atomic_compare_exchange_n(
			word, &work->original, packet->swap_add, false, __ATOMIC_SEQ_CST,
			__ATOMIC_SEQ_CST
		);
	}
	return 1;
}

// Answer a duplicate with the original value; an atomic is never executed twice.
void responder_duplicate_atomic(struct soft_qp *qp, const struct packet *packet) {
	struct response_work *work = responder_find_work(&qp->responder, packet->psn, true);

	if (work == NULL) {
		counter_add(&qp->nic->counters.drop_old_read, 1);
		return;
	}
	work->pending = true;
	responder_schedule_response(qp, work);
}
