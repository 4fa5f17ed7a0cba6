// SPDX-License-Identifier: BSD-3-Clause
// Between the files of the responder: what each kind of request does, and how one is refused.
#pragma once

#include "transport/qp.h"

// Each executes one request packet that is in order, and returns how many PSNs it takes; 0: it was
// refused, and nothing is changed.
uint32_t responder_send(struct soft_qp *qp, const struct packet *packet, uint8_t flags);
uint32_t responder_write(struct soft_qp *qp, const struct packet *packet, uint8_t flags);
uint32_t responder_read(struct soft_qp *qp, const struct packet *packet);
uint32_t responder_atomic(struct soft_qp *qp, const struct packet *packet);

// A read or atomic that comes again: what of it is kept is put on its way once more.
void responder_read_again(struct soft_qp *qp, const struct packet *packet);
void responder_atomic_again(struct soft_qp *qp, const struct packet *packet);

// 0, so that a check can end in it. The NAK leaves in its turn and ends the queue pair.
uint32_t responder_refuse(struct soft_qp *qp, uint8_t syndrome);
// The same, where a completion with this status tells the program of it.
uint32_t responder_fail_receive(struct soft_qp *qp, uint8_t syndrome, enum ibv_wc_status status);

// Is there a receive, if this packet needs one? False: refused as not ready.
bool responder_has_receive(struct soft_qp *qp);
// It is taken: into qp->responder.receive. One was there.
void responder_take_receive(struct soft_qp *qp);
// The receive under way is over; bytes and immediate count if it succeeded.
void responder_complete_receive(
	struct soft_qp *qp, const struct packet *packet, enum ibv_wc_opcode opcode, uint32_t bytes
);

// One more read or atomic may be under way, or it is refused.
bool responder_has_room(struct soft_qp *qp);
// Its place; the oldest is forgotten. There is room.
struct response_work *responder_add_work(struct soft_qp *qp, const struct packet *packet);
// The one that this PSN is of; NULL.
struct response_work *responder_find_work(struct responder *responder, uint32_t psn, bool atomic);
// So much of it, from answer_next on, is to be sent.
void responder_answer(struct soft_qp *qp, const struct response_work *work);

// What is owed was sent, or goes with an answer.
static inline void responder_acknowledged(struct responder *responder) {
	responder->ack_due = false;
	ack_rule_sent(&responder->ack_rule);
}

// The pad makes the packet a multiple of four bytes, and there is no other.
static inline bool pad_is_right(const struct packet *packet) {
	return packet->pad == (-packet->payload_bytes & 3);
}
