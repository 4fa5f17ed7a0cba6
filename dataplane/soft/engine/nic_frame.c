// SPDX-License-Identifier: BSD-3-Clause
// Receives a frame. Everything but a valid packet from the peer of a receiving queue pair is
// dropped here and counted by reason. No content is trusted before the ICRC was verified.
#include "engine/engine.h"
#include "packet/packet.h"
#include "transport/qp.h"

#include <errno.h>

#define PKEY_BITS 0x7fff // the top bit distinguishes full from limited members

typedef uint64_t *drop_counter; // NULL: not dropped

static drop_counter frame_verify(
	struct soft_nic *nic,
	const struct wire_frame *frame,
	struct frame_view *view,
	struct packet *packet
) {
	struct soft_counters *counters = &nic->counters;
	enum frame_icrc icrc = FRAME_ICRC_RIGHT;
	int err = frame_parse(frame->bytes, frame->size, view);

	if (err != 0)
		return err == -EMSGSIZE ? &counters->drop_short : &counters->drop_header;
	if (view->packet_bytes < PACKET_BTH_BYTES + PACKET_ICRC_BYTES)
		return &counters->drop_short;
	if (!nic->wire->peer_sealed)
		icrc = frame_check_icrc(frame->bytes, view->frame_bytes, frame->id_known);
	if (icrc == FRAME_ICRC_WRONG)
		return &counters->drop_icrc;
	if (icrc == FRAME_ICRC_BY_ID)
		counter_add(&counters->foreign_icrc, 1);
	err = packet_decode(view->packet, view->packet_bytes - PACKET_ICRC_BYTES, packet);
	if (err == -EPROTO)
		return &counters->drop_opcode;
	if (err != 0)
		return err == -EMSGSIZE ? &counters->drop_short : &counters->drop_header;
	if ((packet->pkey & PKEY_BITS) != (PACKET_PKEY_DEFAULT & PKEY_BITS))
		return &counters->drop_header;
	return NULL;
}

static bool gids_equal(const union ibv_gid *a, const union ibv_gid *b) {
	return __builtin_memcmp(a, b, sizeof(*a)) == 0;
}

// A queue pair in RTR has sent nothing, so it cannot receive responses.
static bool state_receives(enum ibv_qp_state state, bool response) {
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || (state == IBV_QPS_RTR && !response);
}

void nic_frame(struct soft_nic *nic, const struct wire_frame *frame) {
	struct soft_counters *counters = &nic->counters;
	struct frame_view view;
	struct packet packet;
	drop_counter drop = frame_verify(nic, frame, &view, &packet);
	struct soft_qp *qp = NULL;
	bool response;

	counter_add(&counters->packets_received, 1);
	counter_add(&counters->bytes_received, frame->size);
	if (drop != NULL) {
		counter_add(drop, 1);
		return;
	}
	response = (packet_opcode_info(packet.opcode)->flags & PACKET_RESPONSE) != 0;
	qp = qp_find(nic, packet.queue_pair);
	if (qp == NULL)
		drop = &counters->drop_queue_pair;
	else if (!state_receives(qp->verbs.state, response))
		drop = &counters->drop_state;
	else if (!gids_equal(&view.route.from, &qp->route.to) ||
		 !gids_equal(&view.route.to, &qp->route.from))
		drop = &counters->drop_address;
	if (drop != NULL) {
		counter_add(drop, 1);
		return;
	}
	if (response)
		requester_response(qp, &packet);
	else
		responder_request(qp, &packet);
	qp_set_timer(qp, requester_next_timer_ns(qp));
}
