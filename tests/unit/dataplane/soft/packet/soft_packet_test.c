// SPDX-License-Identifier: BSD-3-Clause
// Tests of every opcode in both directions, the exact bytes on the wire, and all packet lengths.
#include "packet/packet.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Header lengths from the specification, independent of our table.
static const struct {
	uint8_t opcode;
	const char *name;
	enum packet_kind kind;
	uint32_t header_bytes;
	bool first, last, reth, immediate, aeth, atomic, original;
} all[] = {
	{0x00, "SEND_FIRST", PACKET_KIND_SEND, 12, .first = true},
	{0x01, "SEND_MIDDLE", PACKET_KIND_SEND, 12, .first = false},
	{0x02, "SEND_LAST", PACKET_KIND_SEND, 12, .last = true},
	{0x03, "SEND_LAST_IMM", PACKET_KIND_SEND, 16, .last = true, .immediate = true},
	{0x04, "SEND_ONLY", PACKET_KIND_SEND, 12, .first = true, .last = true},
	{0x05, "SEND_ONLY_IMM", PACKET_KIND_SEND, 16, true, true, .immediate = true},
	{0x06, "WRITE_FIRST", PACKET_KIND_WRITE, 28, .first = true, .reth = true},
	{0x07, "WRITE_MIDDLE", PACKET_KIND_WRITE, 12, .first = false},
	{0x08, "WRITE_LAST", PACKET_KIND_WRITE, 12, .last = true},
	{0x09, "WRITE_LAST_IMM", PACKET_KIND_WRITE, 16, .last = true, .immediate = true},
	{0x0a, "WRITE_ONLY", PACKET_KIND_WRITE, 28, true, true, .reth = true},
	{0x0b, "WRITE_ONLY_IMM", PACKET_KIND_WRITE, 32, true, true, true, .immediate = true},
	{0x0c, "READ_REQUEST", PACKET_KIND_READ, 28, true, true, .reth = true},
	{0x0d, "READ_FIRST", PACKET_KIND_READ_RESPONSE, 16, .first = true, .aeth = true},
	{0x0e, "READ_MIDDLE", PACKET_KIND_READ_RESPONSE, 12, .first = false},
	{0x0f, "READ_LAST", PACKET_KIND_READ_RESPONSE, 16, .last = true, .aeth = true},
	{0x10, "READ_ONLY", PACKET_KIND_READ_RESPONSE, 16, true, true, .aeth = true},
	{0x11, "ACK", PACKET_KIND_ACK, 16, true, true, .aeth = true},
	{0x12, "ATOMIC_ACK", PACKET_KIND_ATOMIC_ACK, 24, true, true, .aeth = true,
	 .original = true},
	{0x13, "COMPARE_SWAP", PACKET_KIND_ATOMIC, 40, true, true, .atomic = true},
	{0x14, "FETCH_ADD", PACKET_KIND_ATOMIC, 40, true, true, .atomic = true},
};

static bool is_response(enum packet_kind kind) {
	return kind == PACKET_KIND_READ_RESPONSE || kind == PACKET_KIND_ACK ||
	       kind == PACKET_KIND_ATOMIC_ACK;
}

static void the_facts_of_every_opcode_are_those_of_the_specification(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(all); n++) {
		const struct packet_opcode_info *facts = packet_opcode_info(all[n].opcode);
		const uint32_t flags =
			(all[n].first ? PACKET_FIRST : 0U) | (all[n].last ? PACKET_LAST : 0U) |
			(is_response(all[n].kind) ? PACKET_RESPONSE : 0U) |
			(all[n].reth ? PACKET_RETH : 0U) | (all[n].immediate ? PACKET_IMM : 0U) |
			(all[n].aeth ? PACKET_AETH : 0U) |
			(all[n].atomic ? PACKET_ATOMIC_ETH : 0U) |
			(all[n].original ? PACKET_ATOMIC_ACK_ETH : 0U);

		assert_int_equal(facts->kind, all[n].kind);
		assert_int_equal(facts->header_bytes, all[n].header_bytes);
		assert_int_equal(facts->flags, flags);
		assert_string_equal(packet_opcode_name(all[n].opcode), all[n].name);
	}
}

static void the_other_opcodes_are_none_of_ours(void **state) {
	uint8_t bytes[64] = {0};
	struct packet packet = {.psn = 4711};

	(void)state;
	for (uint32_t opcode = 0x15; opcode <= 0xff; opcode++) {
		bytes[0] = (uint8_t)opcode;
		assert_int_equal(packet_opcode_info((uint8_t)opcode)->kind, PACKET_KIND_NONE);
		assert_string_equal(packet_opcode_name((uint8_t)opcode), "unknown");
		assert_int_equal(packet_decode(bytes, sizeof(bytes), &packet), -EPROTO);
	}
	assert_int_equal(packet.psn, 4711);
}

// Fields that the opcode lacks must not be written, and must be read as 0.
static struct packet full(uint8_t opcode) {
	return (struct packet){
		.opcode = opcode,
		.solicited = opcode % 2 == 0,
		.ack_request = opcode % 3 == 0,
		.migration = opcode % 5 != 0,
		.pad = opcode & 3,
		.pkey = 0x8001,
		.queue_pair = 0xabcdef,
		.psn = 0x800001,
		.address = UINT64_C(0x8122334455667788),
		.key = 0x99aabbcc,
		.length = 0xddeeff01,
		.immediate = 0x02030405,
		.syndrome = 0x63,
		.msn = 0xfedcba,
		.swap_add = UINT64_C(0x1111222233334444),
		.compare = UINT64_C(0x5555666677778888),
		.original = UINT64_C(0x9999aaaabbbbcccc),
	};
}

static void every_opcode_is_read_as_it_was_written(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(all); n++) {
		const struct packet written = full(all[n].opcode);
		uint8_t bytes[PACKET_HEADERS_MAX + 64];
		const size_t headers = packet_encode(&written, bytes);
		struct packet read;

		assert_int_equal(headers, all[n].header_bytes);
		assert_int_equal(packet_decode(bytes, headers + 20 + written.pad, &read), 0);
		assert_int_equal(read.opcode, written.opcode);
		assert_int_equal(read.solicited, written.solicited);
		assert_int_equal(read.ack_request, written.ack_request);
		assert_int_equal(read.migration, written.migration);
		assert_int_equal(read.pad, written.pad);
		assert_int_equal(read.pkey, written.pkey);
		assert_int_equal(read.queue_pair, written.queue_pair);
		assert_int_equal(read.psn, written.psn);
		assert_int_equal(read.address, all[n].reth || all[n].atomic ? written.address : 0);
		assert_int_equal(read.key, all[n].reth || all[n].atomic ? written.key : 0);
		assert_int_equal(read.length, all[n].reth ? written.length : 0);
		assert_int_equal(read.immediate, all[n].immediate ? written.immediate : 0);
		assert_int_equal(read.syndrome, all[n].aeth ? written.syndrome : 0);
		assert_int_equal(read.msn, all[n].aeth ? written.msn : 0);
		assert_int_equal(read.swap_add, all[n].atomic ? written.swap_add : 0);
		assert_int_equal(read.compare, all[n].atomic ? written.compare : 0);
		assert_int_equal(read.original, all[n].original ? written.original : 0);
		assert_ptr_equal(read.payload, bytes + headers);
		assert_int_equal(read.payload_bytes, 20);
	}
}

static void headers_stand_on_the_wire_byte_for_byte(void **state) {
	static const struct {
		uint8_t opcode;
		const char *bytes;
		size_t size;
	} cases[] = {
		{PACKET_WRITE_ONLY_IMM,
		 "\x0b\x70\x80\x01\x00\xab\xcd\xef\x00\x80\x00\x01"
		 "\x81\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x01"
		 "\x02\x03\x04\x05",
		 32},
		{PACKET_ATOMIC_ACK,
		 "\x12\xe0\x80\x01\x00\xab\xcd\xef\x80\x80\x00\x01"
		 "\x63\xfe\xdc\xba\x99\x99\xaa\xaa\xbb\xbb\xcc\xcc",
		 24},
		{PACKET_COMPARE_SWAP,
		 "\x13\x70\x80\x01\x00\xab\xcd\xef\x00\x80\x00\x01"
		 "\x81\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc"
		 "\x11\x11\x22\x22\x33\x33\x44\x44\x55\x55\x66\x66\x77\x77\x88\x88",
		 40},
		{PACKET_ACK, "\x11\x50\x80\x01\x00\xab\xcd\xef\x00\x80\x00\x01\x63\xfe\xdc\xba",
		 16},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		const struct packet packet = full(cases[n].opcode);
		uint8_t bytes[PACKET_HEADERS_MAX];

		assert_int_equal(packet_encode(&packet, bytes), cases[n].size);
		assert_memory_equal(bytes, cases[n].bytes, cases[n].size);
	}
}

static void numbers_of_24_bits_do_not_spill_into_their_neighbours(void **state) {
	const struct packet packet = {
		.opcode = PACKET_ACK,
		.pad = 0xff,
		.queue_pair = UINT32_MAX,
		.psn = UINT32_MAX,
		.msn = UINT32_MAX,
	};
	static const char expected[] =
		"\x11\x30\x00\x00\x00\xff\xff\xff\x00\xff\xff\xff\x00\xff\xff\xff";
	uint8_t bytes[PACKET_HEADERS_MAX];

	(void)state;
	assert_int_equal(packet_encode(&packet, bytes), 16);
	assert_memory_equal(bytes, expected, 16);
}

static void congestion_marks_and_reserved_bits_are_not_looked_at(void **state) {
	const struct packet packet = full(PACKET_SEND_ONLY);
	uint8_t bytes[PACKET_HEADERS_MAX];
	struct packet read;

	(void)state;
	packet_encode(&packet, bytes);
	bytes[4] = 0xff;
	bytes[8] |= 0x7f;
	assert_int_equal(packet_decode(bytes, PACKET_BTH_BYTES, &read), 0);
	assert_int_equal(read.queue_pair, packet.queue_pair);
	assert_int_equal(read.psn, packet.psn);
	assert_int_equal(read.ack_request, packet.ack_request);
}

static void a_packet_shorter_than_its_headers_and_pad_is_refused(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(all); n++) {
		for (uint8_t pad = 0; pad <= 3; pad++) {
			struct packet packet = full(all[n].opcode);
			uint8_t bytes[PACKET_HEADERS_MAX + 3] = {0};
			struct packet read = {.psn = 4711};

			packet.pad = pad;
			packet_encode(&packet, bytes);
			for (size_t size = 0; size < all[n].header_bytes + pad; size++)
				assert_int_equal(packet_decode(bytes, size, &read), -EMSGSIZE);
			assert_int_equal(read.psn, 4711);
			assert_int_equal(
				packet_decode(bytes, (size_t)all[n].header_bytes + pad, &read), 0
			);
			assert_int_equal(read.payload_bytes, 0);
		}
	}
}

static void a_payload_over_the_largest_mtu_is_refused(void **state) {
	static uint8_t bytes[2 * PACKET_PAYLOAD_MAX];

	(void)state;
	for (size_t n = 0; n < COUNT(all); n++) {
		struct packet packet = full(all[n].opcode);
		const size_t largest = all[n].header_bytes + PACKET_PAYLOAD_MAX;

		packet.pad = 0;
		packet_encode(&packet, bytes);
		assert_int_equal(packet_decode(bytes, largest, &packet), 0);
		assert_int_equal(packet.payload_bytes, PACKET_PAYLOAD_MAX);
		assert_int_equal(packet_decode(bytes, largest + 1, &packet), -EBADMSG);
		assert_int_equal(packet_decode(bytes, sizeof(bytes), &packet), -EBADMSG);
		assert_int_equal(packet.payload_bytes, PACKET_PAYLOAD_MAX);
	}
}

static void another_version_of_the_transport_is_refused(void **state) {
	const struct packet packet = full(PACKET_ACK);
	uint8_t bytes[PACKET_HEADERS_MAX];
	struct packet read = {.psn = 4711};

	(void)state;
	packet_encode(&packet, bytes);
	for (uint8_t version = 1; version <= 15; version++) {
		bytes[1] = (uint8_t)((bytes[1] & 0xf0) | version);
		assert_int_equal(packet_decode(bytes, 16, &read), -EBADMSG);
	}
	assert_int_equal(read.psn, 4711);
}

static void rnr_timers_are_those_of_the_specification(void **state) {
	// Unit: 0.01 ms; the first entry is code 1.
	static const uint32_t steps[] = {1,    2,    3,	    4,	   6,	  8,	 12,   16,
					 24,   32,   48,    64,	   96,	  128,	 192,  256,
					 384,  512,  768,   1024,  1536,  2048,	 3072, 4096,
					 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	(void)state;
	assert_int_equal(COUNT(steps), 31);
	assert_int_equal(packet_rnr_delay_ns(0), UINT64_C(655360000));
	for (uint8_t code = 1; code <= 31; code++) {
		assert_int_equal(packet_rnr_delay_ns(code), steps[code - 1] * UINT64_C(10000));
		assert_int_equal(packet_rnr_delay_ns(code | 0x20), packet_rnr_delay_ns(code));
		assert_int_equal(packet_rnr_delay_ns(code | 0xe0), packet_rnr_delay_ns(code));
	}
	assert_int_equal(packet_rnr_delay_ns(12), 640000);
}

UNIT_GROUP(soft_packet) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_facts_of_every_opcode_are_those_of_the_specification),
		cmocka_unit_test(the_other_opcodes_are_none_of_ours),
		cmocka_unit_test(every_opcode_is_read_as_it_was_written),
		cmocka_unit_test(headers_stand_on_the_wire_byte_for_byte),
		cmocka_unit_test(numbers_of_24_bits_do_not_spill_into_their_neighbours),
		cmocka_unit_test(congestion_marks_and_reserved_bits_are_not_looked_at),
		cmocka_unit_test(a_packet_shorter_than_its_headers_and_pad_is_refused),
		cmocka_unit_test(a_payload_over_the_largest_mtu_is_refused),
		cmocka_unit_test(another_version_of_the_transport_is_refused),
		cmocka_unit_test(rnr_timers_are_those_of_the_specification),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
