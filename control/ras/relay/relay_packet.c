// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the header of a relayed message.
#include "relay/relay_packet.h"

#include "core/message.h"

// Offsets of the fields that change on the way.
enum {
	OFFSET_DETOURS = 6,
	OFFSET_HOPS = 8,
	OFFSET_HOPS_LEFT = 10,
	OFFSET_LIFE = 12,
};

size_t ras_relay_size_max(enum ras_relay_class class) {
	static const uint32_t sizes[RAS_RELAY_CLASS_COUNT] = {
		[RAS_RELAY_CONTROL] = RAS_RELAY_CONTROL_BYTES_MAX,
		[RAS_RELAY_EVENT] = RAS_RELAY_EVENT_BYTES_MAX,
		[RAS_RELAY_BULK] = RAS_RELAY_BULK_BYTES_MAX,
	};

	must(class < RAS_RELAY_CLASS_COUNT);
	return sizes[class];
}

void relay_header_encode(const struct relay_header *header, uint8_t *frame) {
	struct wire_writer writer;

	wire_writer_init(&writer, frame, RELAY_HEADER_BYTES);
	wire_put_u8(&writer, MESSAGE_RELAY);
	wire_put_u8(&writer, RELAY_HEADER_BYTES);
	wire_put_u8(&writer, header->kind);
	wire_put_u8(&writer, header->class);
	wire_put_u8(&writer, header->flags);
	wire_put_u8(&writer, header->reason);
	must(wire_writer_used(&writer) == OFFSET_DETOURS);
	wire_put_u8(&writer, header->detours);
	wire_put_u8(&writer, header->attempt);
	must(wire_writer_used(&writer) == OFFSET_HOPS);
	wire_put_u16(&writer, header->hops);
	wire_put_u16(&writer, header->hops_left);
	wire_put_u32(&writer, header->life_us);
	wire_put_u64(&writer, header->source);
	wire_put_u64(&writer, header->source_incarnation);
	wire_put_u64(&writer, header->source_run);
	wire_put_u64(&writer, header->destination);
	wire_put_u64(&writer, header->destination_run);
	wire_put_u64(&writer, header->view);
	wire_put_u64(&writer, header->sequence);
	wire_put_u64(&writer, header->about);
	wire_put_u32(&writer, header->flow);
	wire_put_u32(&writer, header->port);
	wire_put_u16(&writer, header->behind);
	wire_put_u16(&writer, header->payload_size);
	must(wire_writer_used(&writer) == RELAY_HEADER_BYTES);
}

// Check the rules of each kind for the fields of the header.
static bool header_kind_valid(const struct relay_header *header) {
	bool ordered = (header->flags & RELAY_FLAG_ORDERED) != 0;

	switch (header->kind) {
	case 0:
		return false;
	case RELAY_DATA:
		// Only messages to ports of the core may be sent once.
		if (header->sequence == 0 && header->port >= RAS_RELAY_PORT_MIN)
			return false;
		if (header->reason != 0 || header->about != 0)
			return false;
		return ordered ? header->behind < header->sequence : header->behind == 0;
	case RELAY_ACK:
		return header->sequence != 0 && header->about != 0 && header->reason == 0;
	case RELAY_NAK:
		return header->sequence != 0 && header->about != 0 && header->reason != 0;
	default:
		return true;
	}
}

int relay_header_decode(const uint8_t *frame, size_t size, struct relay_header *ret_header) {
	struct relay_header header;
	struct wire_reader reader;

	wire_reader_init(&reader, frame, size);
	if (wire_get_u8(&reader) != MESSAGE_RELAY)
		return -EBADMSG;
	header.header_size = wire_get_u8(&reader);
	header.kind = wire_get_u8(&reader);
	header.class = wire_get_u8(&reader);
	header.flags = wire_get_u8(&reader);
	header.reason = wire_get_u8(&reader);
	header.detours = wire_get_u8(&reader);
	header.attempt = wire_get_u8(&reader);
	header.hops = wire_get_u16(&reader);
	header.hops_left = wire_get_u16(&reader);
	header.life_us = wire_get_u32(&reader);
	header.source = wire_get_u64(&reader);
	header.source_incarnation = wire_get_u64(&reader);
	header.source_run = wire_get_u64(&reader);
	header.destination = wire_get_u64(&reader);
	header.destination_run = wire_get_u64(&reader);
	header.view = wire_get_u64(&reader);
	header.sequence = wire_get_u64(&reader);
	header.about = wire_get_u64(&reader);
	header.flow = wire_get_u32(&reader);
	header.port = wire_get_u32(&reader);
	header.behind = wire_get_u16(&reader);
	header.payload_size = wire_get_u16(&reader);
	if (!wire_reader_ok(&reader))
		return wire_reader_error(&reader);
	if (header.header_size < RELAY_HEADER_BYTES || header.header_size > RELAY_HEADER_BYTES_MAX)
		return -EBADMSG;
	if (header.class >= RAS_RELAY_CLASS_COUNT)
		return -EBADMSG;
	if (header.payload_size > ras_relay_size_max(header.class))
		return -EBADMSG;
	if (size != (size_t)header.header_size + header.payload_size)
		return -EBADMSG;
	if (header.source == 0 || header.destination == 0 || header.detours > RELAY_DETOURS_MAX)
		return -EBADMSG;
	// A message to oneself never uses a link, so such a header is forged.
	if (header.source == header.destination || !header_kind_valid(&header))
		return -EBADMSG;

	*ret_header = header;
	return 0;
}

void relay_header_patch(uint8_t *frame, const struct relay_header *header) {
	uint16_t hops = htole16(header->hops);
	uint16_t hops_left = htole16(header->hops_left);
	uint32_t life_us = htole32(header->life_us);

	frame[OFFSET_DETOURS] = header->detours;
	memcpy(frame + OFFSET_HOPS, &hops, sizeof(hops));
	memcpy(frame + OFFSET_HOPS_LEFT, &hops_left, sizeof(hops_left));
	memcpy(frame + OFFSET_LIFE, &life_us, sizeof(life_us));
}
