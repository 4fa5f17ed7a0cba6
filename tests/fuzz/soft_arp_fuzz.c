// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes ARP and Neighbour Discovery. The input is an ARP message after the Ethernet header. The
// same bytes are also parsed as Neighbour Discovery from the IPv6 header on: as they are, and with
// a correct checksum.
//
// An accepted message must name a possible address, and our reply to it must be parsable.
#include "packet/frame.h"
#include "wire/link.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int parse_fn(const uint8_t *bytes, size_t size, struct link_message *ret_talk);

static void
judge(parse_fn *parse, const uint8_t *data, size_t size, const struct link_host *self, bool ip4) {
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk, again;
	const int err = parse(data, size, &talk);
	size_t bytes;

	if (err != 0) {
		must(err == -EMSGSIZE || err == -EBADMSG);
		return;
	}
	must(!talk.mac_known || (talk.mac[0] & 1) == 0);
	if (!talk.asks)
		return;
	bytes = ip4 ? arp_build_reply(self, &talk, frame)
		    : nd_build_advertisement(self, &talk, frame);
	must(bytes <= sizeof(frame));
	must(parse(frame + LINK_HEADER_BYTES, bytes - LINK_HEADER_BYTES, &again) == 0);
	must(!again.asks && again.mac_known);
	must(link_gid_equal(&again.about, &self->gid));
}

// Set the correct checksum, which few inputs have by chance.
static void set_checksum(uint8_t *bytes, size_t size) {
	uint8_t *message = bytes + FRAME_IP6_BYTES;
	size_t length;
	uint32_t total;

	if (size < FRAME_IP6_BYTES + 4)
		return;
	length = link_get16(bytes + 4);
	if (length > size - FRAME_IP6_BYTES)
		return;
	total = 58 + (uint32_t)length;
	link_put16(message + 2, 0);
	for (size_t at = 8; at + 1 < FRAME_IP6_BYTES + length; at += 2)
		total += link_get16(bytes + at);
	if (length % 2 != 0)
		total += (uint32_t)message[length - 1] << 8;
	while (total > UINT16_MAX)
		total = (total & UINT16_MAX) + (total >> 16);
	link_put16(message + 2, (uint16_t)~total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct link_host self4 = {
		.gid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}}, .mac = {2}};
	static const struct link_host self6 = {.gid = {.raw = {0xfd, [15] = 1}}, .mac = {2}};
	uint8_t *copy;

	judge(arp_parse, data, size, &self4, true);
	judge(nd_parse, data, size, &self6, false);
	copy = malloc(size > 0 ? size : 1);
	must(copy != NULL);
	memcpy(copy, data, size);
	set_checksum(copy, size);
	judge(nd_parse, copy, size, &self6, false);
	free(copy);
	return 0;
}
