// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the messages by which two nodes connect queue pairs.
#include "fabric/pairing/pairing_message.h"

#include "fabric/pairing/pairing_inside.h"

#include <lib/wire.h>

#include <inttypes.h>

#define END_SHARES_OVERLAY 0x01
#define END_WANTED 0x02
#define END_FLAGS (END_SHARES_OVERLAY | END_WANTED)

#define VERSION_WRITE_SINK 2 // first version with a write sink
#define VERSION_PKEY 3
#define VERSION_GPU 4

#define PKEY_INVALID 0x8000

#define BITS_24 UINT32_C(0xffffff)
#define FLOW_LABEL_MAX UINT32_C(0xfffff)
#define QUEUE_NUMBER_MIN 2 // 0 and 1 belong to the port itself

// Writing

static void put_text(struct wire_writer *writer, const char *text) {
	size_t length = strlen(text);

	// A reason from a driver may be cut in the middle of a character.
	while (length > 0 && !wire_utf8_valid(text, length))
		length--;
	wire_put_string(writer, text, length);
}

static void put_end(struct wire_writer *writer, const struct pairing_end *end) {
	const struct device_endpoint *endpoint = &end->endpoint;

	wire_put_u8(writer, (uint8_t)endpoint->link);
	wire_put_u16(writer, endpoint->lid);
	wire_put_bytes(writer, endpoint->gid.raw, sizeof(endpoint->gid.raw));
	wire_put_u16(writer, endpoint->mtu);
	wire_put_u8(writer, endpoint->reads_in_max);
	wire_put_u8(writer, endpoint->reads_out_max);
	wire_put_u32(writer, endpoint->queue_number);
	wire_put_u32(writer, endpoint->psn);
	wire_put_u32(writer, end->flow_label);
	wire_put_u8(writer, end->traffic_class);
	wire_put_u8(writer, (uint8_t)end->responder);
	wire_put_u8(
		writer,
		(uint8_t
		)((end->shares_overlay ? END_SHARES_OVERLAY : 0) | (end->wanted ? END_WANTED : 0))
	);
	wire_put_u64(writer, end->pulse.address);
	wire_put_u32(writer, end->pulse.key);
	wire_put_u16(writer, end->pulse.layout);
}

size_t pairing_message_encode(
	const struct pairing_message *message, uint8_t bytes[static PAIRING_MESSAGE_BYTES_MAX]
) {
	const struct pairing_write_sink *write_sink = &message->end.write_sink;
	const struct pairing_gpu *gpu = &message->end.gpu;
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, PAIRING_MESSAGE_BYTES_MAX);
	wire_put_u8(&writer, message->version);
	wire_put_u8(&writer, message->version_least);
	wire_put_u8(&writer, (uint8_t)message->type);
	wire_put_u8(&writer, message->flags);
	wire_put_u64(&writer, message->end.start);
	wire_put_u32(&writer, message->end.generation);
	wire_put_u64(&writer, message->your_start);
	wire_put_u32(&writer, message->your_generation);
	put_text(&writer, message->device);
	put_text(&writer, message->your_device);
	if (message->type == PAIRING_INFO || message->type == PAIRING_READY_SENT) {
		put_end(&writer, &message->end);
		if (message->version >= VERSION_WRITE_SINK) {
			wire_put_u64(&writer, write_sink->address);
			wire_put_u32(&writer, write_sink->key);
			wire_put_u32(&writer, write_sink->length);
		}
		if (message->version >= VERSION_PKEY)
			wire_put_u16(&writer, message->end.endpoint.pkey);
		if (message->version >= VERSION_GPU) {
			wire_put_u64(&writer, gpu->address);
			wire_put_u64(&writer, gpu->word);
			wire_put_u32(&writer, gpu->key);
			wire_put_u32(&writer, gpu->length);
			wire_put_u16(&writer, gpu->ordinal);
		}
	} else {
		wire_put_u8(&writer, (uint8_t)message->failure.reason);
		put_text(&writer, message->failure.text);
	}
	must(!writer.overflowed);
	return wire_writer_used(&writer);
}

// Reading

static void get_head(struct wire_reader *reader, struct pairing_message *message) {
	uint8_t type;

	message->version = wire_get_u8(reader);
	message->version_least = wire_get_u8(reader);
	type = wire_get_u8(reader);
	message->flags = wire_get_u8(reader);
	message->end.start = wire_get_u64(reader);
	message->end.generation = wire_get_u32(reader);
	message->your_start = wire_get_u64(reader);
	message->your_generation = wire_get_u32(reader);
	wire_get_name(reader, message->device, sizeof(message->device));
	wire_get_name(reader, message->your_device, sizeof(message->your_device));
	if (type == 0 || type >= PAIRING_MESSAGE_TYPE_END)
		wire_reader_fail(reader, -EBADMSG);
	message->type = type;
	if (message->version == 0 || message->version_least > message->version)
		wire_reader_fail(reader, -EBADMSG);
	if (message->end.start == 0)
		wire_reader_fail(reader, -EBADMSG);
}

// Check the rules of the message type, beyond those of all types.
static bool head_is_valid(const struct pairing_message *message) {
	bool has_pair = pairing_generation_valid(message->end.generation);
	uint8_t flags = message->type == PAIRING_READY_SENT ? PAIRING_FLAG_SEEN : 0;

	if ((message->flags & ~flags) != 0 && message->version <= PAIRING_VERSION)
		return false;
	if (message->your_generation != 0 && !pairing_generation_valid(message->your_generation))
		return false;
	switch (message->type) {
	case PAIRING_INFO:
	case PAIRING_CLOSE:
		return has_pair;
	case PAIRING_READY_SENT:
		return has_pair && message->your_generation != 0;
	case PAIRING_REFUSE:
		return message->end.generation == 0 && message->your_generation != 0;
	default:
		return false;
	}
}

struct raw_end {
	uint8_t link, responder, flags;
};

// Return the name of the first impossible value, or NULL. *ret_value is the received number.
static const char *
end_find_fault(const struct pairing_end *end, const struct raw_end *raw, uint64_t *ret_value) {
	static const union ibv_gid none;
	const struct device_endpoint *endpoint = &end->endpoint;
	const struct pairing_write_sink *sink = &end->write_sink;
	const struct pairing_gpu *gpu = &end->gpu;
	uint16_t mtu = endpoint->mtu;
	bool has_gid = memcmp(&endpoint->gid, &none, sizeof(none)) != 0;
	const struct {
		const char *what;
		uint64_t value;
		bool possible;
	} rules[] = {
		{"link layer", raw->link, raw->link <= DEVICE_LINK_ETHERNET},
		{"address (neither GID nor LID)", 0,
		 has_gid || (raw->link == DEVICE_LINK_INFINIBAND && endpoint->lid != 0)},
		{"GID (of a multicast group)", endpoint->gid.raw[0], endpoint->gid.raw[0] != 0xff},
		{"MTU", mtu, mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096},
		{"queue number", endpoint->queue_number,
		 endpoint->queue_number >= QUEUE_NUMBER_MIN && endpoint->queue_number <= BITS_24},
		{"packet sequence number", endpoint->psn, endpoint->psn <= BITS_24},
		{"flow label", end->flow_label, end->flow_label <= FLOW_LABEL_MAX},
		{"responder", raw->responder, raw->responder <= DEVICE_RESPONDER_IN_PROCESS},
		{"key of a pulse without a layout", end->pulse.key,
		 end->pulse.layout != 0 || (end->pulse.address == 0 && end->pulse.key == 0)},
		{"length of the write sink", sink->length,
		 sink->length == 0 ? sink->address == 0 && sink->key == 0
				   : sink->address <= UINT64_MAX - sink->length},
		{"P_Key", endpoint->pkey, endpoint->pkey != PKEY_INVALID},
		{"length of GPU memory", gpu->length,
		 gpu->length == 0
			 ? gpu->address == 0 && gpu->key == 0 && gpu->word == 0 && gpu->ordinal == 0
			 : gpu->address <= UINT64_MAX - gpu->length},
	};

	for (size_t n = 0; n < sizeof(rules) / sizeof(rules[0]); n++) {
		if (rules[n].possible)
			continue;
		*ret_value = rules[n].value;
		return rules[n].what;
	}
	return NULL;
}

static int read_end(struct wire_reader *reader, struct pairing_message *message) {
	bool newer = message->version > PAIRING_VERSION;
	struct pairing_end *end = &message->end;
	struct device_endpoint *endpoint = &end->endpoint;
	struct raw_end raw;
	uint64_t value = wire_reader_left(reader);
	const char *fault;

	raw.link = wire_get_u8(reader);
	endpoint->lid = wire_get_u16(reader);
	wire_get_bytes(reader, endpoint->gid.raw, sizeof(endpoint->gid.raw));
	endpoint->mtu = wire_get_u16(reader);
	endpoint->reads_in_max = wire_get_u8(reader);
	endpoint->reads_out_max = wire_get_u8(reader);
	endpoint->queue_number = wire_get_u32(reader);
	endpoint->psn = wire_get_u32(reader);
	end->flow_label = wire_get_u32(reader);
	end->traffic_class = wire_get_u8(reader);
	raw.responder = wire_get_u8(reader);
	raw.flags = wire_get_u8(reader);
	end->pulse.address = wire_get_u64(reader);
	end->pulse.key = wire_get_u32(reader);
	end->pulse.layout = wire_get_u16(reader);
	if (message->version >= VERSION_WRITE_SINK) {
		end->write_sink.address = wire_get_u64(reader);
		end->write_sink.key = wire_get_u32(reader);
		end->write_sink.length = wire_get_u32(reader);
	}
	if (message->version >= VERSION_PKEY)
		endpoint->pkey = wire_get_u16(reader);
	if (message->version >= VERSION_GPU) {
		end->gpu.address = wire_get_u64(reader);
		end->gpu.word = wire_get_u64(reader);
		end->gpu.key = wire_get_u32(reader);
		end->gpu.length = wire_get_u32(reader);
		end->gpu.ordinal = wire_get_u16(reader);
	}
	if (!wire_reader_ok(reader) || (!newer && wire_reader_left(reader) > 0)) {
		fault = "message length";
	} else if (!newer && (raw.flags & ~END_FLAGS) != 0) {
		fault = "flags";
		value = raw.flags;
	} else {
		fault = end_find_fault(end, &raw, &value);
	}
	if (fault != NULL) {
		pairing_failure_set(
			&message->failure, PAIRING_MALFORMED, 0, "invalid %s: %" PRIu64, fault,
			value
		);
		return -EINVAL;
	}
	endpoint->link = raw.link;
	end->responder = raw.responder;
	end->shares_overlay = (raw.flags & END_SHARES_OVERLAY) != 0;
	end->wanted = (raw.flags & END_WANTED) != 0;
	return 0;
}

int pairing_message_decode(const void *bytes, size_t size, struct pairing_message *ret_message) {
	struct pairing_message message = {0};
	struct wire_reader reader;
	uint8_t reason;
	bool has_version;
	int err = 0;

	wire_reader_init(&reader, bytes, size);
	get_head(&reader, &message);
	if (!wire_reader_ok(&reader) || !head_is_valid(&message))
		return -EBADMSG;
	has_version = message.version >= PAIRING_VERSION_LEAST &&
		      message.version_least <= PAIRING_VERSION;
	if (message.type == PAIRING_REFUSE || message.type == PAIRING_CLOSE) {
		reason = wire_get_u8(&reader);
		wire_get_string(&reader, message.failure.text, sizeof(message.failure.text));
		// The reason may be unknown here (newer version), or meant only for the sender's
		// own callers.
		if (reason == PAIRING_REASON_NONE || reason >= PAIRING_REASON_COUNT ||
		    reason == PAIRING_DEADLINE || reason == PAIRING_CANCELLED)
			reason = PAIRING_CLOSED;
		message.failure.reason = reason;
		message.failure.err = pairing_reason_err(reason);
		message.failure.by_peer = true;
		if (wire_reader_finish(&reader) < 0)
			return -EBADMSG;
	} else if (!has_version) {
		pairing_failure_set(
			&message.failure, PAIRING_NO_COMMON_VERSION, 0,
			"no common handshake version: %u to %u are offered, %u to %u are supported",
			message.version_least, message.version, PAIRING_VERSION_LEAST,
			PAIRING_VERSION
		);
		err = -EPROTO;
	} else {
		err = read_end(&reader, &message);
	}
	*ret_message = message;
	return err;
}
