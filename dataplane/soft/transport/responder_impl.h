// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the responder's files: execution and refusal of requests.
#pragma once

#include "transport/qp.h"

// Execute one request packet that is in order. Returns the number of PSNs it uses; 0: it was
// refused, and nothing changed.
uint32_t responder_send(struct soft_qp *qp, const struct packet *packet, uint8_t flags);
uint32_t responder_write(struct soft_qp *qp, const struct packet *packet, uint8_t flags);
uint32_t responder_read(struct soft_qp *qp, const struct packet *packet);
uint32_t responder_atomic(struct soft_qp *qp, const struct packet *packet);

// Handle a duplicate read or atomic: send the kept part of its response again.
void responder_duplicate_read(struct soft_qp *qp, const struct packet *packet);
void responder_duplicate_atomic(struct soft_qp *qp, const struct packet *packet);

// Refuse a request: the NAK is sent in its turn and ends the queue pair. Returns 0, for use in
// return statements.
uint32_t responder_refuse(struct soft_qp *qp, uint8_t syndrome);
// The same, where a completion with this status informs the program.
uint32_t responder_fail_receive(struct soft_qp *qp, uint8_t syndrome, enum ibv_wc_status status);

// Return true if a receive is available for this packet; else answer with RNR.
bool responder_has_receive(struct soft_qp *qp);
// Take a receive into qp->responder.receive; one must be available.
void responder_take_receive(struct soft_qp *qp);
// Complete the receive in use; bytes and immediate are valid on success.
void responder_complete_receive(
	struct soft_qp *qp, const struct packet *packet, enum ibv_wc_opcode opcode, uint32_t bytes
);

// Return true if one more read or atomic fits; else refuse it.
bool responder_has_room(struct soft_qp *qp);
// Add a work and forget the oldest one; there must be room.
struct response_work *responder_add_work(struct soft_qp *qp, const struct packet *packet);
// Return the work that contains this PSN, or NULL.
struct response_work *responder_find_work(struct responder *responder, uint32_t psn, bool atomic);
// Schedule the part of the response from answer_next on.
void responder_schedule_response(struct soft_qp *qp, const struct response_work *work);

// The owed acknowledgement was sent, or a response replaces it.
static inline void responder_clear_ack(struct responder *responder) {
	responder->ack_due = false;
	ack_rule_note_ack(&responder->ack_rule);
}

// Return true if the pad fills the packet to a multiple of four bytes, and no more.
static inline bool packet_has_valid_pad(const struct packet *packet) {
	return packet->pad == (-packet->payload_bytes & 3);
}
