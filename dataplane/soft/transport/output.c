// SPDX-License-Identifier: BSD-3-Clause
// Builds frames in memory of the wire: headers, payload from the caller, pad, ICRC.
#include "transport/output.h"

uint8_t *output_begin(struct soft_qp *qp, const struct packet *packet, uint32_t payload_bytes) {
	struct soft_nic *nic = qp->nic;
	uint32_t begin = frame_headers_bytes(frame_is_ip4(&qp->route.to));
	struct packet whole = *packet;
	uint8_t *frame = nic->wire->calls->take(nic->wire);
	uint8_t *payload;
	uint32_t pad = -payload_bytes & 3;

	if (frame == NULL) {
		nic->wire_full = true;
		counter_add(&nic->counters.send_full, 1);
		return NULL;
	}
	whole.queue_pair = qp->attr.dest_qp_num;
	whole.pkey = PACKET_PKEY_DEFAULT;
	whole.migration = true;
	whole.pad = (uint8_t)pad;
	payload = frame + begin + packet_encode(&whole, frame + begin);
	for (uint32_t n = 0; n < pad; n++)
		payload[payload_bytes + n] = 0;
	nic->out = frame;
	nic->out_size = (uint32_t)(payload - frame) + payload_bytes + pad + PACKET_ICRC_BYTES;
	frame_write_headers(&qp->route, nic->out_size - begin, frame);
	return payload;
}

void output_end(struct soft_qp *qp) {
	struct soft_nic *nic = qp->nic;

	if (!nic->wire->peer_sealed)
		frame_seal(nic->out, nic->out_size);
	nic->wire->calls->give(nic->wire, nic->out_size);
	counter_add(&nic->counters.packets_sent, 1);
	counter_add(&nic->counters.bytes_sent, nic->out_size);
}
