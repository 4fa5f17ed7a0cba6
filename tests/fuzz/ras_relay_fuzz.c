// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the header of relayed messages. A header is rejected, or all its values stay within the
// frame. An accepted one survives a patch and encodes to the same bytes.
#include "relay/relay_packet.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static uint8_t frame[RELAY_PACKET_BYTES_MAX];
	struct relay_header header, again;

	if (relay_header_decode(data, size, &header) < 0)
		return 0;
	must(size == (size_t)header.header_size + header.payload_size);
	must(size <= sizeof(frame));
	must(header.payload_size <= ras_relay_size_max((enum ras_relay_class)header.class));

	memcpy(frame, data, size);
	relay_header_patch(frame, &header);
	must(memcmp(frame, data, size) == 0);
	if (header.header_size == RELAY_HEADER_BYTES) {
		relay_header_encode(&header, frame);
		must(memcmp(frame, data, size) == 0);
	}
	header.hops++;
	relay_header_patch(frame, &header);
	must(relay_header_decode(frame, size, &again) == 0);
	must(again.hops == header.hops);
	return 0;
}
