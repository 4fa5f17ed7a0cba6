// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes every decoder of the core's messages. A decoded message is encoded again and must give the
// same bytes. A failed decoder leaves its output unchanged.
#include "core/message.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

// Bytes before the version of maintenance.
#define UPDATE_MAINTENANCE_AT 21 // length, flags, state, hops, id and incarnation
#define BRIEF_MAINTENANCE_AT 35	 // head, id, incarnation and digest of the record

union decoded {
	struct message_init init;
	struct message_init_ack ack;
	struct message_beat beat;
	struct message_news news;
	struct {
		struct message_brief_head head;
		struct message_brief brief;
	} listed;
};

static int decode_listed(struct wire_reader *reader, union decoded *ret) {
	struct message_brief_head head;
	int err = message_brief_head_decode(reader, &head);

	if (err == 0)
		err = message_brief_decode(reader, head.entry_bytes, &ret->listed.brief);
	if (err == 0)
		ret->listed.head = head;
	return err;
}

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
		return decode_listed(reader, ret);
	}
}

// Return true if the decoded form is complete, so that it can be encoded again. It is incomplete in
// three cases. A state of a newer version was replaced by unknown. An item is foreign, or has a
// record, of which the decoder returns only a view. An entry is longer than known.
static bool is_whole(uint8_t type, const union decoded *from) {
	switch (type) {
	case MESSAGE_INIT:
		return from->init.your_state != RAS_UNKNOWN;
	case MESSAGE_INIT_ACK:
		return from->ack.your_state != RAS_UNKNOWN;
	case MESSAGE_UPDATE:
		return from->news.record == NULL && !from->news.foreign;
	case MESSAGE_BRIEF:
		return from->listed.head.entry_bytes == MESSAGE_BRIEF_BYTES;
	default:
		return true;
	}
}

// Encode the message again, without its type byte. Returns 0 if it cannot be encoded.
static size_t encode(uint8_t type, const union decoded *from, uint8_t *bytes, size_t capacity) {
	struct wire_writer writer;
	size_t head = 1;

	if (!is_whole(type, from))
		return 0;
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
		message_news_encode(&from->news.news, &writer);
		must(wire_writer_used(&writer) == message_news_bytes(&from->news.news));
		head = 0;
		break;
	default:
		message_brief_begin(from->listed.head.mask, from->listed.head.flags, &writer);
		message_brief_encode(&from->listed.brief, &writer);
	}
	memmove(bytes, bytes + head, wire_writer_used(&writer) - head);
	return wire_writer_used(&writer) - head;
}

// The decoder replaces a version of maintenance that is out of range by 0. Put it back.
static void
restore_maintenance(uint8_t type, const union decoded *from, const uint8_t *bytes, uint8_t *again) {
	size_t at = type == MESSAGE_UPDATE ? UPDATE_MAINTENANCE_AT : BRIEF_MAINTENANCE_AT;
	uint32_t version =
		type == MESSAGE_UPDATE ? from->news.news.maint : from->listed.brief.maint;
	struct wire_reader reader;

	wire_reader_init(&reader, bytes + at, sizeof(version));
	if (version == 0 && wire_get_u32(&reader) > RAS_MAINT_VERSION_MAX)
		memcpy(again + at, bytes + at, sizeof(version));
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
		// Compare byte by byte, including padding: a failed decoder writes nothing.
		must(memcmp((const char *)&before, (const char *)&decoded, sizeof(decoded)) == 0);
		return 0;
	}
	used = encode(type, &decoded, again, sizeof(again));
	// INIT messages of older versions end before the sought node.
	if (type == MESSAGE_INIT && decoded.init.sought == 0 && used > size - 1)
		used -= sizeof(decoded.init.sought);
	if (used > 0 && (type == MESSAGE_UPDATE || type == MESSAGE_BRIEF))
		restore_maintenance(type, &decoded, data + 1, again);
	if (used > 0)
		must(memcmp(again, data + 1, used) == 0);
	return 0;
}
