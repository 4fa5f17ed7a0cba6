// SPDX-License-Identifier: BSD-3-Clause
// Every decoder of the core's messages. What is decoded is encoded again and must decode to the
// same; a failure leaves the output untouched.
#include "message.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

union decoded {
	struct message_init init;
	struct message_init_ack ack;
	struct message_beat beat;
	struct message_news news;
	struct message_brief brief;
};

static int decode(uint8_t type, struct wire_reader *reader, union decoded *ret) {
	switch (type) {
	case MESSAGE_INIT:
		return message_init_decode(reader, &ret->init);
	case MESSAGE_INIT_ACK:
		return message_init_ack_decode(reader, &ret->ack);
	case MESSAGE_BEAT:
		return message_beat_decode(reader, &ret->beat);
	case MESSAGE_UPDATE:
		return message_news_decode(reader, &ret->news);
	default:
		return message_brief_decode(reader, &ret->brief);
	}
}

// The bytes of the message again, without its type byte; 0 if it cannot be made from what was
// decoded alone (news hold a record, the decoder has a view of one).
static size_t
encode(uint8_t type, const union decoded *from, bool told_of_death, uint8_t *bytes, size_t capacity
) {
	struct wire_writer writer;
	size_t head = 1;

	wire_writer_init(&writer, bytes, capacity);
	switch (type) {
	case MESSAGE_INIT:
		must(message_init_encode(&from->init, &writer) == 0);
		break;
	case MESSAGE_INIT_ACK:
		must(message_init_ack_encode(&from->ack, &writer) == 0);
		break;
	case MESSAGE_BEAT:
		message_beat_encode(&from->beat, &writer);
		break;
	case MESSAGE_UPDATE:
		if (from->news.record != NULL || from->news.news.state == RAS_DEAD ||
		    from->news.news.cause != 0 || from->news.news.observer_count != 0 ||
		    told_of_death)
			return 0;
		message_news_encode(&from->news.news, &writer);
		must(wire_writer_used(&writer) == message_news_bytes(&from->news.news));
		head = 0;
		break;
	default:
		message_brief_encode(&from->brief, &writer);
		head = 0;
	}
	memmove(bytes, bytes + head, wire_writer_used(&writer) - head);
	return wire_writer_used(&writer) - head;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const uint8_t types[] = {
		MESSAGE_INIT, MESSAGE_INIT_ACK, MESSAGE_BEAT, MESSAGE_UPDATE, MESSAGE_BRIEF,
	};
	static uint8_t again[RAS_FRAME_MAX];
	struct wire_reader reader;
	union decoded before;
	union decoded decoded;
	size_t used;
	uint8_t type;

	if (size == 0)
		return 0;
	type = types[data[0] % sizeof(types)];
	memset(&before, 0x5a, sizeof(before));
	decoded = before;
	wire_reader_init(&reader, data + 1, size - 1);
	if (decode(type, &reader, &decoded) != 0) {
		// Byte by byte, padding included: a failed decoder writes nowhere.
		must(memcmp((const char *)&before, (const char *)&decoded, sizeof(decoded)) == 0);
		return 0;
	}
	used = encode(type, &decoded, size > 1 && (data[1] & 0x10) != 0, again, sizeof(again));
	if (used > 0)
		must(memcmp(again, data + 1, used) == 0);
	return 0;
}
