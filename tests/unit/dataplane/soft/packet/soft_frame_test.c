// SPDX-License-Identifier: BSD-3-Clause
// Tests of frames captured elsewhere, of our own frames, and of every fault that a frame may have.
#include "packet/bytes.h"
#include "packet/frame.h"

#include <support/cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct room {
	uint8_t headroom[FRAME_HEADROOM];
	uint8_t frame[FRAME_BYTES_MAX + 64];
};

static struct room room;
static uint8_t *const frame = room.frame;

static union ibv_gid gid(const char *text) {
	union ibv_gid parsed = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, parsed.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, parsed.raw), 1);
	return parsed;
}

static uint32_t hex(const char *digits, uint8_t *to) {
	uint32_t size = 0;

	for (; *digits != '\0'; digits += 2) {
		const uint32_t high = (uint8_t)digits[0], low = (uint8_t)digits[1];

		to[size++] = (uint8_t)((high % 32 + 9) % 25 << 4 | (low % 32 + 9) % 25);
	}
	return size;
}

// Frames with IP ids, captured from other senders: a congestion notification of a ConnectX-4 Lx
// without DF, and an acknowledgement and a fetch-and-add of the kernel's Soft-RoCE.
#define NOTIFICATION                                                                       \
	"45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000" \
	"0000000000000000000000000000000082fd002a"
#define ACKNOWLEDGEMENT                                                                    \
	"45000030d23b40004011547d0a0100010a010002c13212b7001c00001100ffff00000012002f99b9" \
	"1f000001b605d158"
#define FETCH_AND_ADD                                                                      \
	"450000482b2940004011fb770a0100020a010001c1ce12b7003400001400ffff0000001580c1e4a4" \
	"00005626ebbb5000000006280000000000000001000000000000000032791a73"

static const char *const captured[] = {NOTIFICATION, ACKNOWLEDGEMENT, FETCH_AND_ADD};

static struct frame_route route_of(const char *from, const char *to) {
	return (struct frame_route){
		.from = gid(from),
		.to = gid(to),
		.source_port = 0xc123,
		.traffic_class = 0x68,
		.hop_limit = 64,
		.flow_label = 0x54321,
	};
}

// Build and seal a write with that many bytes of payload. Returns the size of the frame.
static uint32_t build(const char *from, const char *to, uint32_t payload) {
	const struct frame_route route = route_of(from, to);
	const struct packet packet = {
		.opcode = PACKET_WRITE_ONLY,
		.ack_request = true,
		.migration = true,
		.pad = (uint8_t)(-payload & 3),
		.pkey = PACKET_PKEY_DEFAULT,
		.queue_pair = 0x123456,
		.psn = 0xfffffe,
		.address = 0x7f0011223344,
		.key = 0xdeadbeef,
		.length = payload,
	};
	uint8_t headers[PACKET_HEADERS_MAX];
	const uint32_t header_bytes = (uint32_t)packet_encode(&packet, headers);
	const uint32_t bytes = header_bytes + payload + packet.pad + PACKET_ICRC_BYTES;
	const uint32_t front = frame_headers_bytes(frame_is_ip4(&route.to));

	memset(&room, 0x5a, sizeof(room));
	frame_write_headers(&route, bytes, frame);
	memcpy(frame + front, headers, header_bytes);
	for (uint32_t n = 0; n < payload + packet.pad; n++)
		frame[front + header_bytes + n] = n < payload ? (uint8_t)(n * 31 + 7) : 0;
	frame_seal(frame, front + bytes);
	return front + bytes;
}

static void a_captured_frame_is_right_as_its_sender_sealed_it(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(captured); n++) {
		const uint32_t size = hex(captured[n], frame);
		struct frame_view view;
		uint8_t icrc[4];

		assert_int_equal(frame_parse(frame, size, &view), 0);
		assert_int_equal(view.frame_bytes, size);
		assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_RIGHT);
		memcpy(icrc, frame + size - 4, 4);
		memset(frame + size - 4, 0, 4);
		frame_seal(frame, size);
		assert_memory_equal(frame + size - 4, icrc, 4);
	}
}

static void a_captured_frame_is_right_by_its_id_where_a_socket_does_not_tell_it(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(captured); n++) {
		const uint32_t size = hex(captured[n], frame);

		store_be16(frame + 4, 0);
		assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_WRONG);
		assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_BY_ID);
	}
}

static void a_captured_frame_says_who_sent_it(void **state) {
	const uint32_t size = hex(captured[0], frame);
	struct frame_view view;

	(void)state;
	assert_int_equal(frame_parse(frame, size, &view), 0);
	assert_memory_equal(view.route.from.raw, gid("10.0.17.1").raw, 16);
	assert_memory_equal(view.route.to.raw, gid("10.0.18.1").raw, 16);
	assert_int_equal(view.route.traffic_class, 0xc2);
	assert_int_equal(view.packet[0], 0x81);
}

static void headers_are_written_byte_for_byte(void **state) {
	static const char *const ip4 = "4568003c0000400040114e12c0000201c6336402c12312b700280000";
	static const char *const ip6 =
		"66854321002811402001"
		"0db8000000000000000000000001fd000000000000000000000000000099"
		"c12312b700280000";
	uint8_t expected[FRAME_IP6_BYTES + FRAME_UDP_BYTES], written[sizeof(expected)];
	struct frame_route route = route_of("192.0.2.1", "198.51.100.2");
	uint32_t size = hex(ip4, expected);

	(void)state;
	assert_int_equal(size, frame_headers_bytes(true));
	frame_write_headers(&route, 32, written);
	assert_memory_equal(written, expected, size);
	route = route_of("2001:db8::1", "fd00::99");
	size = hex(ip6, expected);
	assert_int_equal(size, frame_headers_bytes(false));
	frame_write_headers(&route, 32, written);
	assert_memory_equal(written, expected, size);
}

static void the_checksum_of_every_ip4_header_adds_up(void **state) {
	uint8_t written[FRAME_IP4_BYTES + FRAME_UDP_BYTES];
	struct frame_route route = route_of("0.0.0.0", "255.255.255.255");

	(void)state;
	for (uint32_t n = 0; n < 4096; n++) {
		uint32_t sum = 0;

		route.from.raw[12 + n % 4] = (uint8_t)(route.from.raw[12 + n % 4] + 73);
		route.to.raw[15 - n % 3] = (uint8_t)(route.to.raw[15 - n % 3] - 41);
		frame_write_headers(&route, 16 + n, written);
		for (uint32_t at = 0; at < FRAME_IP4_BYTES; at += 2)
			sum += load_be16(written + at);
		assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	}
}

static void what_the_headers_say_is_read_again(void **state) {
	static const struct {
		const char *from, *to;
	} cases[] = {{"10.1.2.3", "127.64.0.9"}, {"2001:db8::1", "fe80::5"}, {"::1", "::2"}};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct frame_route route = route_of(cases[n].from, cases[n].to);
		const uint32_t size = build(cases[n].from, cases[n].to, 5);
		const uint32_t front = frame_headers_bytes(frame_is_ip4(&route.to));
		struct frame_view view;

		if (frame_is_ip4(&route.to))
			route.flow_label = 0;
		assert_int_equal(frame_parse(frame, size, &view), 0);
		assert_memory_equal(view.route.from.raw, route.from.raw, 16);
		assert_memory_equal(view.route.to.raw, route.to.raw, 16);
		assert_int_equal(view.route.source_port, route.source_port);
		assert_int_equal(view.route.traffic_class, route.traffic_class);
		assert_int_equal(view.route.hop_limit, route.hop_limit);
		assert_int_equal(view.route.flow_label, route.flow_label);
		assert_ptr_equal(view.packet, frame + front);
		assert_int_equal(view.packet_bytes, size - front);
		assert_int_equal(view.frame_bytes, size);
	}
}

static uint32_t slow_crc(const uint8_t *bytes, size_t size) {
	uint32_t value = UINT32_MAX;

	for (size_t n = 0; n < size; n++) {
		value ^= bytes[n];
		for (uint32_t bit = 0; bit < 8; bit++)
			value = value >> 1 ^ ((value & 1) != 0 ? UINT32_C(0xedb88320) : 0);
	}
	return ~value;
}

// For each address family, the bytes that routers and hosts may change, with their variable bits.
struct free_byte {
	uint32_t at;
	uint8_t bits;
};
static const struct free_byte free_ip4[] = {
	{1, 0xff}, {8, 0xff}, {10, 0xff}, {11, 0xff}, {26, 0xff}, {27, 0xff}, {32, 0xff},
};
static const struct free_byte free_ip6[] = {
	{0, 0x0f}, {1, 0xff}, {2, 0xff}, {3, 0xff}, {7, 0xff}, {46, 0xff}, {47, 0xff}, {52, 0xff},
};
static const struct family {
	const char *from, *to;
	const struct free_byte *free;
	size_t count;
} families[] = {
	{"10.0.0.1", "10.0.0.2", free_ip4, COUNT(free_ip4)},
	{"2001:db8::1", "2001:db8::2", free_ip6, COUNT(free_ip6)},
};

static uint8_t bits_free(const struct family *family, uint32_t at) {
	for (size_t n = 0; n < family->count; n++) {
		if (family->free[n].at == at)
			return family->free[n].bits;
	}
	return 0;
}

static void destination_is_read_if_the_ip_header_is_complete(void **state) {
	static const struct {
		const char *from, *to;
		uint32_t header_bytes;
	} rows[] = {
		{"192.0.2.7", "192.0.2.9", FRAME_IP4_BYTES},
		{"fd00::7", "fd00::9", FRAME_IP6_BYTES},
	};
	union ibv_gid to, wanted;

	(void)state;
	for (size_t n = 0; n < COUNT(rows); n++) {
		build(rows[n].from, rows[n].to, 0);
		wanted = gid(rows[n].to);
		assert_false(frame_read_destination(frame, rows[n].header_bytes - 1, &to));
		assert_true(frame_read_destination(frame, rows[n].header_bytes, &to));
		assert_memory_equal(to.raw, wanted.raw, sizeof(to.raw));
	}
	frame[0] = 0x50;
	assert_false(frame_read_destination(frame, FRAME_IP6_BYTES, &to));
}

static void the_icrc_is_the_crc_of_the_masked_frame_least_byte_first(void **state) {
	static const uint32_t payloads[] = {0, 1, 2, 3, 4, 8, 255, 1024, 4095, 4096};

	(void)state;
	for (size_t n = 0; n < 2 * COUNT(payloads); n++) {
		const struct family *family = &families[n % 2];
		const uint32_t size = build(family->from, family->to, payloads[n / 2]);
		uint8_t masked[8 + FRAME_BYTES_MAX];
		uint32_t crc;

		memset(masked, 0xff, 8);
		for (uint32_t at = 0; at < size; at++)
			masked[8 + at] = frame[at] | bits_free(family, at);
		crc = slow_crc(masked, 8 + size - 4);
		assert_int_equal(frame[size - 4], crc & 0xff);
		assert_int_equal(frame[size - 3], crc >> 8 & 0xff);
		assert_int_equal(frame[size - 2], crc >> 16 & 0xff);
		assert_int_equal(frame[size - 1], crc >> 24);
	}
}

static void a_check_leaves_frame_and_headroom_as_they_were(void **state) {
	(void)state;
	for (size_t n = 0; n < 2; n++) {
		const uint32_t size = build(families[n].from, families[n].to, 100);
		struct room before;

		memset(room.headroom, 0x33, sizeof(room.headroom));
		memcpy(&before, &room, sizeof(room));
		assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_RIGHT);
		assert_memory_equal(&room, &before, sizeof(room));
		// Bytes after the frame are not read.
		memset(frame + size, 0xa5, sizeof(room.frame) - size);
		assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_RIGHT);
		frame[40] ^= 1;
		memcpy(&before, &room, sizeof(room));
		assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_WRONG);
		assert_memory_equal(&room, &before, sizeof(room));
	}
}

static void every_bit_counts_but_those_that_may_change_on_the_way(void **state) {
	(void)state;
	for (size_t n = 0; n < 2; n++) {
		const uint32_t size = build(families[n].from, families[n].to, 9);

		for (uint32_t at = 0; at < size; at++) {
			for (uint32_t bit = 1; bit <= 0x80; bit <<= 1) {
				const bool version = at == 0 && bit >= 0x10;
				const bool may = (bits_free(&families[n], at) & bit) != 0;

				frame[at] ^= (uint8_t)bit;
				// A different version makes it another kind of frame, with other
				// masked bits, so skip it.
				if (!version)
					assert_int_equal(
						frame_check_icrc(frame, size, true),
						may ? FRAME_ICRC_RIGHT : FRAME_ICRC_WRONG
					);
				frame[at] ^= (uint8_t)bit;
			}
		}
		assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_RIGHT);
	}
}

static void another_ip_id_explains_an_icrc_where_it_is_not_known(void **state) {
	static const uint32_t payloads[] = {0, 4, 1023, 4096};

	(void)state;
	for (size_t n = 0; n < COUNT(payloads); n++) {
		const uint32_t size = build("10.0.0.1", "10.0.0.2", payloads[n]);

		for (uint32_t id = 1; id <= UINT16_MAX; id += 257) {
			store_be16(frame + 4, (uint16_t)id);
			assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_BY_ID);
			assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_WRONG);
		}
		// A sealed id is right whatever its value. If the id was then replaced by 0, it
		// still explains the ICRC.
		store_be16(frame + 4, 0xbeef);
		frame_seal(frame, size);
		assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_RIGHT);
		store_be16(frame + 4, 0);
		assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_BY_ID);
		frame[size - 5] ^= 0x40;
		assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_WRONG);
	}
}

static void ip6_has_no_id_that_would_explain(void **state) {
	const uint32_t size = build("2001:db8::1", "2001:db8::2", 64);

	(void)state;
	frame[4] ^= 1;
	assert_int_equal(frame_check_icrc(frame, size, false), FRAME_ICRC_WRONG);
}

static void a_size_that_no_frame_has_is_wrong(void **state) {
	(void)state;
	for (size_t n = 0; n < 2; n++) {
		const uint32_t least = frame_headers_bytes(n == 0) + 16;

		build(families[n].from, families[n].to, 0);
		for (uint32_t size = 0; size < least; size++)
			assert_int_equal(frame_check_icrc(frame, size, true), FRAME_ICRC_WRONG);
		assert_int_equal(
			frame_check_icrc(frame, FRAME_BYTES_MAX + 1, true), FRAME_ICRC_WRONG
		);
		assert_int_equal(frame_check_icrc(frame, UINT32_MAX, false), FRAME_ICRC_WRONG);
		frame_seal(frame, least);
		assert_int_equal(frame_check_icrc(frame, least, true), FRAME_ICRC_RIGHT);
		frame_seal(frame, FRAME_BYTES_MAX);
		assert_int_equal(frame_check_icrc(frame, FRAME_BYTES_MAX, true), FRAME_ICRC_RIGHT);
	}
}

static void a_frame_that_was_cut_anywhere_is_too_short(void **state) {
	struct frame_view view = {.packet_bytes = 4711};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		const uint32_t whole = build(families[n].from, families[n].to, 12);

		for (uint32_t size = 0; size < whole; size++)
			assert_int_equal(frame_parse(frame, size, &view), -EMSGSIZE);
		assert_int_equal(view.packet_bytes, 4711);
		assert_int_equal(frame_parse(frame, whole, &view), 0);
		view.packet_bytes = 4711;
	}
}

static void what_ethernet_appends_is_left_out(void **state) {
	struct frame_view view;
	const uint32_t size = build("10.0.0.1", "10.0.0.2", 0);

	(void)state;
	assert_int_equal(frame_parse(frame, size + 18, &view), 0);
	assert_int_equal(view.frame_bytes, size);
	assert_int_equal(frame_check_icrc(frame, view.frame_bytes, true), FRAME_ICRC_RIGHT);
}

static void a_header_that_is_not_ours_is_refused(void **state) {
	static const struct {
		bool ip4;
		uint32_t at;
		uint16_t value; // written to the two bytes at `at`
		int error;
	} cases[] = {
		{true, 0, 0x4600, -EBADMSG}, // IP options
		{true, 0, 0x4400, -EBADMSG}, // shorter than the minimum header
		{true, 0, 0x0500, -EBADMSG}, // wrong versions
		{true, 0, 0x5500, -EBADMSG},
		{true, 0, 0xff00, -EBADMSG},
		{true, 2, 0, -EMSGSIZE}, // wrong lengths
		{true, 2, 20, -EMSGSIZE},
		{true, 2, 43, -EMSGSIZE},
		{true, 2, 44, -EBADMSG}, // shorter than UDP's length
		{true, 2, 0xffff, -EMSGSIZE},
		{true, 6, 0x2000, -EBADMSG}, // fragments: the first, a later one, an invalid one
		{true, 6, 0x0001, -EBADMSG},
		{true, 6, 0x6000, -EBADMSG},
		{true, 6, 0x8000, -EBADMSG}, // the reserved bit
		{true, 8, 0x4006, -EBADMSG}, // TCP
		{true, 22, 4790, -EBADMSG},  // wrong ports
		{true, 22, 0, -EBADMSG},
		{true, 24, 0, -EBADMSG}, // wrong UDP lengths
		{true, 24, 7, -EBADMSG},
		{true, 24, 0xffff, -EBADMSG},
		{false, 0, 0x7000, -EBADMSG},
		{false, 4, 0, -EMSGSIZE},
		{false, 4, 23, -EMSGSIZE},
		{false, 4, 24, -EBADMSG},
		{false, 4, 0xffff, -EMSGSIZE},
		{false, 6, 0x0040, -EBADMSG}, // an extension header
		{false, 6, 0x2c40, -EBADMSG}, // a fragment
		{false, 42, 4790, -EBADMSG},
		{false, 44, 8, -EBADMSG},
	};
	struct frame_view view = {.packet_bytes = 4711};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		const struct family *family = &families[cases[n].ip4 ? 0 : 1];
		const uint32_t size = build(family->from, family->to, 40);

		store_be16(frame + cases[n].at, cases[n].value);
		assert_int_equal(frame_parse(frame, size, &view), cases[n].error);
	}
	assert_int_equal(view.packet_bytes, 4711);
}

static void an_ip4_frame_may_go_without_df(void **state) {
	struct frame_view view;
	const uint32_t size = build("10.0.0.1", "10.0.0.2", 40);

	(void)state;
	store_be16(frame + 6, 0);
	assert_int_equal(frame_parse(frame, size, &view), 0);
}

static void mapped_addresses_in_an_ip6_header_are_nobodys(void **state) {
	static const uint32_t ats[] = {8, 24};

	(void)state;
	for (size_t n = 0; n < COUNT(ats); n++) {
		const uint32_t size = build("2001:db8::1", "2001:db8::2", 40);
		const union ibv_gid mapped = gid("10.0.0.1");
		struct frame_view view;

		memcpy(frame + ats[n], mapped.raw, 16);
		assert_int_equal(frame_parse(frame, size, &view), -EBADMSG);
	}
}

static void a_frame_over_the_largest_is_refused(void **state) {
	struct frame_view view;
	static uint8_t large[FRAME_HEADROOM + 2 * FRAME_BYTES_MAX];
	const struct frame_route route = route_of("10.0.0.1", "10.0.0.2");

	(void)state;
	for (uint32_t size = FRAME_BYTES_MAX; size <= FRAME_BYTES_MAX + 1; size++) {
		frame_write_headers(
			&route, size - frame_headers_bytes(true), large + FRAME_HEADROOM
		);
		assert_int_equal(
			frame_parse(large + FRAME_HEADROOM, sizeof(large) - FRAME_HEADROOM, &view),
			size == FRAME_BYTES_MAX ? 0 : -EMSGSIZE
		);
	}
}

UNIT_GROUP(soft_frame) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_captured_frame_is_right_as_its_sender_sealed_it),
		cmocka_unit_test(a_captured_frame_is_right_by_its_id_where_a_socket_does_not_tell_it
		),
		cmocka_unit_test(a_captured_frame_says_who_sent_it),
		cmocka_unit_test(headers_are_written_byte_for_byte),
		cmocka_unit_test(the_checksum_of_every_ip4_header_adds_up),
		cmocka_unit_test(what_the_headers_say_is_read_again),
		cmocka_unit_test(destination_is_read_if_the_ip_header_is_complete),
		cmocka_unit_test(the_icrc_is_the_crc_of_the_masked_frame_least_byte_first),
		cmocka_unit_test(a_check_leaves_frame_and_headroom_as_they_were),
		cmocka_unit_test(every_bit_counts_but_those_that_may_change_on_the_way),
		cmocka_unit_test(another_ip_id_explains_an_icrc_where_it_is_not_known),
		cmocka_unit_test(ip6_has_no_id_that_would_explain),
		cmocka_unit_test(a_size_that_no_frame_has_is_wrong),
		cmocka_unit_test(a_frame_that_was_cut_anywhere_is_too_short),
		cmocka_unit_test(what_ethernet_appends_is_left_out),
		cmocka_unit_test(a_header_that_is_not_ours_is_refused),
		cmocka_unit_test(an_ip4_frame_may_go_without_df),
		cmocka_unit_test(mapped_addresses_in_an_ip6_header_are_nobodys),
		cmocka_unit_test(a_frame_over_the_largest_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
