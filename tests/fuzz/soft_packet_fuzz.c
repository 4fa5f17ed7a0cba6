// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes packets. The input is a frame from the IP header on. The same bytes are also a packet from
// the BTH on.
//
// A decoded packet must survive encoding and decoding. An accepted frame must stay within its
// bytes, must not be changed by checks, and is valid after sealing.
#include "packet/frame.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void packet_judge(const uint8_t *data, size_t size) {
	struct packet packet, again;
	uint8_t bytes[PACKET_HEADERS_MAX + PACKET_PAYLOAD_MAX + 3] = {0};
	uint8_t headers[PACKET_HEADERS_MAX];
	const int err = packet_decode(data, size, &packet);
	size_t header_bytes;

	if (err != 0) {
		must(err == -EMSGSIZE || err == -EBADMSG || err == -EPROTO);
		return;
	}
	header_bytes = packet_encode(&packet, bytes);
	must(header_bytes == packet_opcode_info(packet.opcode)->header_bytes);
	must(packet.payload == data + header_bytes);
	must(header_bytes + packet.payload_bytes + packet.pad == size);
	must(packet_decode(bytes, size, &again) == 0);
	must(again.payload_bytes == packet.payload_bytes);
	must(packet_encode(&again, headers) == header_bytes);
	must(memcmp(headers, bytes, header_bytes) == 0);
}

static void frame_judge(uint8_t *room, const uint8_t *data, size_t size) {
	uint8_t *frame = room + FRAME_HEADROOM;
	struct frame_view view;
	enum frame_icrc known;

	memset(room, 0x5a, FRAME_HEADROOM);
	memcpy(frame, data, size);
	if (frame_parse(frame, (uint32_t)size, &view) != 0) {
		frame_check_icrc(frame, (uint32_t)size, false);
		must(memcmp(frame, data, size) == 0);
		return;
	}
	must(view.frame_bytes <= size && view.frame_bytes <= FRAME_BYTES_MAX);
	must(view.packet + view.packet_bytes == frame + view.frame_bytes);
	known = frame_check_icrc(frame, view.frame_bytes, true);
	must(known != FRAME_ICRC_BY_ID);
	must(known != FRAME_ICRC_RIGHT ||
	     frame_check_icrc(frame, view.frame_bytes, false) == FRAME_ICRC_RIGHT);
	must(memcmp(frame, data, size) == 0);
	frame_seal(frame, view.frame_bytes);
	must(frame_check_icrc(frame, view.frame_bytes, true) == FRAME_ICRC_RIGHT);
	must(frame[-1] == 0x5a);
	packet_judge(view.packet, view.packet_bytes - PACKET_ICRC_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	// An exact size, so that a sanitizer detects any access past the end.
	uint8_t *room = malloc(FRAME_HEADROOM + size);

	must(room != NULL);
	packet_judge(data, size);
	frame_judge(room, data, size);
	free(room);
	return 0;
}
