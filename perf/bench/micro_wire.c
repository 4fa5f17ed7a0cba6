// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of the wire reader and writer.
#include "micro.h"

#include <lib/clock.h>
#include <lib/must.h>
#include <lib/wire.h>

#include <string.h>

#define MESSAGE_BYTES 100
#define NAME_LENGTH 26

// Message with the field types of a protocol: 4 + 4 + 6 * 8 + 4 * 4 + 2 + 26 bytes.
struct message {
	uint16_t version, type;
	uint64_t wide[6];
	uint32_t narrow[4];
	char name[NAME_LENGTH + 1];
};

static size_t message_write(const struct message *message, uint8_t buffer[MESSAGE_BYTES]) {
	struct wire_writer writer;
	size_t used = 0, slot;

	wire_writer_init(&writer, buffer, MESSAGE_BYTES);
	wire_put_u16(&writer, message->version);
	wire_put_u16(&writer, message->type);
	slot = wire_reserve_u32(&writer);
	for (int n = 0; n < 6; n++)
		wire_put_u64(&writer, message->wide[n]);
	for (int n = 0; n < 4; n++)
		wire_put_u32(&writer, message->narrow[n]);
	wire_put_string(&writer, message->name, NAME_LENGTH);
	wire_patch_u32(&writer, slot, (uint32_t)wire_writer_used(&writer));
	must(wire_writer_finish(&writer, &used) == 0);
	return used;
}

static void message_read(const uint8_t *buffer, size_t size, struct message *ret_message) {
	struct wire_reader reader;

	wire_reader_init(&reader, buffer, size);
	ret_message->version = wire_get_u16(&reader);
	ret_message->type = wire_get_u16(&reader);
	must(wire_get_u32(&reader) == size);
	for (int n = 0; n < 6; n++)
		ret_message->wide[n] = wire_get_u64(&reader);
	for (int n = 0; n < 4; n++)
		ret_message->narrow[n] = wire_get_u32(&reader);
	wire_get_string(&reader, ret_message->name, sizeof(ret_message->name));
	must(wire_reader_finish(&reader) == 0);
}

uint64_t micro_wire_message(uint64_t rounds) {
	struct message message = {.version = 1, .type = 7, .name = "rack12-node034.example.org"};
	uint8_t buffer[MESSAGE_BYTES];
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		size_t size;

		message.wide[0] = n;
		micro_touch(&message);
		size = message_write(&message, buffer);
		must_debug(size == MESSAGE_BYTES);
		micro_touch(buffer);
		message_read(buffer, size, &message);
		micro_touch(&message);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_wire_memcpy(uint64_t rounds) {
	uint8_t from[MESSAGE_BYTES] = {0}, buffer[MESSAGE_BYTES];
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		micro_touch(from);
		memcpy(buffer, from, sizeof(buffer));
		micro_touch(buffer);
		memcpy(from, buffer, sizeof(from));
		micro_touch(from);
	}
	return clock_monotonic_ns() - start_ns;
}
