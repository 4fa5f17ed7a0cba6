// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the messages of transfers.
#include "relay/transfer_message.h"

#include <ras/relay.h>

#include <assert.h>

#define DATA_LAST 0x01

static_assert(TRANSFER_MESSAGE_BYTES_MAX <= RAS_RELAY_BULK_BYTES_MAX, "a segment is a message");
static_assert(RAS_TRANSFER_LIFE_MAX_NS / RAS_NS_PER_MS <= UINT32_MAX, "a life fits its field");

size_t transfer_message_encode(const struct transfer_message *message, uint8_t *payload) {
	struct wire_writer writer;

	wire_writer_init(&writer, payload, TRANSFER_MESSAGE_BYTES_MAX);
	wire_put_u8(&writer, (uint8_t)message->type);
	wire_put_u64(&writer, message->id);
	switch (message->type) {
	case TRANSFER_START:
		wire_put_u32(&writer, message->port);
		wire_put_u64(&writer, message->tag);
		wire_put_u64(&writer, message->size);
		wire_put_u32(&writer, message->life_ms);
		break;
	case TRANSFER_DATA:
		wire_put_u32(&writer, message->offset);
		wire_put_u8(&writer, message->last ? DATA_LAST : 0);
		must(wire_writer_used(&writer) == TRANSFER_DATA_HEADER_BYTES);
		wire_put_bytes(&writer, message->bytes, message->count);
		break;
	case TRANSFER_CREDIT:
		wire_put_u32(&writer, message->received);
		wire_put_u32(&writer, message->limit);
		break;
	case TRANSFER_END:
		wire_put_u32(&writer, message->received);
		wire_put_u8(&writer, (uint8_t)message->outcome);
		wire_put_u8(&writer, (uint8_t)message->reason);
		break;
	case TRANSFER_CANCEL:
		wire_put_u8(&writer, (uint8_t)message->outcome);
		wire_put_u8(&writer, (uint8_t)message->reason);
		break;
	}
	must(!writer.overflowed);
	return wire_writer_used(&writer);
}

// Decode an outcome. END and CANCEL carry only outcomes that the receiver of the message cannot
// find out itself.
static void read_outcome(struct wire_reader *reader, struct transfer_message *message) {
	uint8_t outcome = wire_get_u8(reader);
	uint8_t reason = wire_get_u8(reader);
	bool told = outcome == RAS_TRANSFER_CANCELLED;

	if (message->type == TRANSFER_END)
		told = told || outcome == RAS_TRANSFER_DONE || outcome == RAS_TRANSFER_REFUSED ||
		       outcome == RAS_TRANSFER_BROKEN;
	if (!told || reason >= RAS_TRANSFER_REASON_COUNT)
		wire_reader_fail(reader, -EBADMSG);
	message->outcome = outcome;
	message->reason = reason;
}

static void read_body(struct wire_reader *reader, struct transfer_message *message) {
	uint8_t flags;

	switch (message->type) {
	case TRANSFER_START:
		message->port = wire_get_u32(reader);
		message->tag = wire_get_u64(reader);
		message->size = wire_get_u64(reader);
		message->life_ms = wire_get_u32(reader);
		if (message->size != RAS_TRANSFER_SIZE_UNKNOWN &&
		    message->size > RAS_TRANSFER_BYTES_MAX)
			wire_reader_fail(reader, -EBADMSG);
		if (message->life_ms == 0 ||
		    message->life_ms > RAS_TRANSFER_LIFE_MAX_NS / RAS_NS_PER_MS)
			wire_reader_fail(reader, -EBADMSG);
		break;
	case TRANSFER_DATA:
		message->offset = wire_get_u32(reader);
		flags = wire_get_u8(reader);
		message->last = (flags & DATA_LAST) != 0;
		message->count = (uint32_t)wire_reader_left(reader);
		message->bytes = wire_get_view(reader, message->count);
		if ((flags & ~DATA_LAST) != 0 || message->count > RAS_TRANSFER_SEGMENT_BYTES_MAX ||
		    message->offset > RAS_TRANSFER_BYTES_MAX ||
		    (message->count == 0 && !message->last))
			wire_reader_fail(reader, -EBADMSG);
		break;
	case TRANSFER_CREDIT:
		message->received = wire_get_u32(reader);
		message->limit = wire_get_u32(reader);
		break;
	case TRANSFER_END:
		message->received = wire_get_u32(reader);
		read_outcome(reader, message);
		break;
	case TRANSFER_CANCEL:
		read_outcome(reader, message);
		break;
	default:
		wire_reader_fail(reader, -EBADMSG);
	}
}

int transfer_message_decode(
	const void *payload, size_t size, struct transfer_message *ret_message
) {
	struct transfer_message message = {0};
	struct wire_reader reader;

	wire_reader_init(&reader, payload, size);
	message.type = wire_get_u8(&reader);
	message.id = wire_get_u64(&reader);
	if (message.id == 0)
		wire_reader_fail(&reader, -EBADMSG);
	read_body(&reader, &message);
	if (wire_reader_finish(&reader) < 0)
		return -EBADMSG;
	*ret_message = message;
	return 0;
}
