// SPDX-License-Identifier: BSD-3-Clause
// Messages that no agent sends, or not to this one: counted, rejected with a reason, never
// accepted.
#include "control/fabric/pairing/pairing_liar.h"

#include <support/cases.h>

#include <string.h>

// Undecodable messages

static void any_message_cut_off_anywhere_is_refused(void **state) {
	(void)state;
	for (uint32_t type = PAIRING_INFO; type < PAIRING_MESSAGE_TYPE_END; type++) {
		uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
		struct pairing_message message = liar_message(type), read;
		size_t size;

		message.your_start = 1;
		message.your_generation = 1;
		size = pairing_message_encode(&message, bytes);
		assert_int_equal(pairing_message_decode(bytes, size, &read), 0);
		for (size_t cut = 0; cut < size; cut++)
			assert_true(pairing_message_decode(bytes, cut, &read) < 0);
		bytes[size] = 0;
		assert_true(pairing_message_decode(bytes, size + 1, &read) < 0);
	}
}

static void a_message_comes_back_from_its_own_bytes(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX], again[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_READY_SENT), read;
	size_t size;

	(void)state;
	message.your_start = 3;
	message.your_generation = 0xffffffff;
	message.flags = PAIRING_FLAG_SEEN;
	message.end.shares_overlay = true;
	message.end.pulse = (struct pairing_pulse){.address = UINT64_MAX, .key = 5, .layout = 1};
	message.end.flow_label = 0xfffff;
	size = pairing_message_encode(&message, bytes);
	assert_int_equal(pairing_message_decode(bytes, size, &read), 0);
	assert_int_equal(read.end.pulse.address, UINT64_MAX);
	assert_true(read.end.shares_overlay && !read.end.wanted);
	assert_int_equal(pairing_message_encode(&read, again), size);
	assert_memory_equal(bytes, again, size);
}

// Message heads with one wrong field. The sender gets no reply, since it is not known.
static void no_start(struct pairing_message *message) {
	message->end.start = 0;
}

static void no_generation(struct pairing_message *message) {
	message->end.generation = 0;
}

static void generation_that_no_lane_tells_apart(struct pairing_message *message) {
	message->end.generation = 0x5000000;
}

static void no_name(struct pairing_message *message) {
	message->device[0] = '\0';
}

static void name_with_a_space(struct pairing_message *message) {
	message->device[2] = ' ';
}

static void name_with_an_escape(struct pairing_message *message) {
	message->your_device[0] = '\033';
}

static void unknown_type(struct pairing_message *message) {
	message->type = PAIRING_MESSAGE_TYPE_END;
}

static void unknown_flag(struct pairing_message *message) {
	message->flags = 0x80;
}

static void ready_for_nothing(struct pairing_message *message) {
	message->type = PAIRING_READY_SENT;
}

static void refusal_of_nothing(struct pairing_message *message) {
	message->type = PAIRING_REFUSE;
	message->end.generation = 0;
}

static void refusal_with_a_pair(struct pairing_message *message) {
	message->type = PAIRING_REFUSE;
	message->your_generation = 1;
}

static void version_that_is_none(struct pairing_message *message) {
	message->version = 0;
	message->version_least = 0;
}

static void version_below_its_least(struct pairing_message *message) {
	message->version_least = PAIRING_VERSION + 1;
}

static void in_anothers_start(struct pairing_message *message) {
	message->end.start = 2;
}

static const struct {
	const char *what;
	void (*spoil)(struct pairing_message *message);
} heads[] = {
	{"no start", no_start},
	{"no generation", no_generation},
	{"a generation that no lane tells apart", generation_that_no_lane_tells_apart},
	{"a device without a name", no_name},
	{"a name with a space", name_with_a_space},
	{"a name with an escape", name_with_an_escape},
	{"an unknown type", unknown_type},
	{"an unknown flag", unknown_flag},
	{"READY for nothing", ready_for_nothing},
	{"REFUSE of nothing", refusal_of_nothing},
	{"REFUSE with a pair", refusal_with_a_pair},
	{"no version", version_that_is_none},
	{"a version below its least", version_below_its_least},
	{"another start than the relay says", in_anothers_start},
};

static void a_head_that_is_wrong_is_counted_and_nothing_comes_of_it(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(heads); n++) {
		struct pairing_message message = liar_message(PAIRING_INFO);
		uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
		size_t size;

		heads[n].spoil(&message);
		size = pairing_message_encode(&message, bytes);
		assert_int_equal(
			pairing_receive(
				net.nodes[NODE].pairing, net.now_ns, net_id(LIAR), 1, bytes, size
			),
			-EBADMSG
		);
		assert_int_equal(net_counters(NODE)->malformed + net_counters(NODE)->forged, n + 1);
	}
	assert_int_equal(net_counters(NODE)->forged, 1);
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
	assert_int_equal(liar_heard.count, 0);
}

// Invalid endpoints: the sender is told which field is impossible.
static void mtu_7(struct pairing_end *end) {
	end->endpoint.mtu = 7;
}

static void psn_of_25_bits(struct pairing_end *end) {
	end->endpoint.psn = 1 << 24;
}

static void queue_of_25_bits(struct pairing_end *end) {
	end->endpoint.queue_number = 1 << 24;
}

static void queue_1(struct pairing_end *end) {
	end->endpoint.queue_number = 1;
}

static void gid_of_zero(struct pairing_end *end) {
	memset(&end->endpoint.gid, 0, sizeof(end->endpoint.gid));
	end->endpoint.lid = 5; // a LID does not exist on Ethernet
}

static void neither_gid_nor_lid(struct pairing_end *end) {
	memset(&end->endpoint.gid, 0, sizeof(end->endpoint.gid));
	end->endpoint.link = DEVICE_LINK_INFINIBAND;
}

static void gid_of_a_group(struct pairing_end *end) {
	end->endpoint.gid.raw[0] = 0xff;
}

static void link_of_its_own(struct pairing_end *end) {
	end->endpoint.link = 2;
}

static void flow_label_of_21_bits(struct pairing_end *end) {
	end->flow_label = 1 << 20;
}

static void responder_of_its_own(struct pairing_end *end) {
	end->responder = 3;
}

static void page_without_a_layout(struct pairing_end *end) {
	end->pulse.key = 9;
}

static void memory_of_no_length(struct pairing_end *end) {
	end->write_sink.key = 9;
}

static void memory_past_the_end_of_all(struct pairing_end *end) {
	end->write_sink = (struct pairing_write_sink){UINT64_MAX - 7, 1, 9};
}

static void member_of_no_partition(struct pairing_end *end) {
	end->endpoint.pkey = 0x8000;
}

static void gpu_of_no_length(struct pairing_end *end) {
	end->gpu.word = 9;
}

static void gpu_past_the_end_of_all(struct pairing_end *end) {
	end->gpu = (struct pairing_gpu){.address = UINT64_MAX - 7, .key = 1, .length = 9};
}

static const struct {
	void (*spoil)(struct pairing_end *end);
	const char *text;
} ends[] = {
	{memory_of_no_length, "invalid length of the write sink: 0"},
	{gpu_of_no_length, "invalid length of GPU memory: 0"},
	{gpu_past_the_end_of_all, "invalid length of GPU memory: 9"},
	{member_of_no_partition, "invalid P_Key: 32768"},
	{memory_past_the_end_of_all, "invalid length of the write sink: 9"},
	{mtu_7, "invalid MTU: 7"},
	{psn_of_25_bits, "invalid packet sequence number: 16777216"},
	{queue_of_25_bits, "invalid queue number: 16777216"},
	{queue_1, "invalid queue number: 1"},
	{gid_of_zero, "invalid address (neither GID nor LID): 0"},
	{neither_gid_nor_lid, "invalid address (neither GID nor LID): 0"},
	{gid_of_a_group, "invalid GID (of a multicast group): 255"},
	{link_of_its_own, "invalid link layer: 2"},
	{flow_label_of_21_bits, "invalid flow label: 1048576"},
	{responder_of_its_own, "invalid responder: 3"},
	{page_without_a_layout, "invalid key of a pulse without a layout: 9"},
};

static void an_impossible_end_is_refused_in_words(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(ends); n++) {
		struct pairing_message message = liar_message(PAIRING_INFO);

		ends[n].spoil(&message.end);
		assert_int_equal(liar_say(&message), 0);
		assert_int_equal(liar_heard.count, n + 1);
		assert_int_equal(liar_heard.message.type, PAIRING_REFUSE);
		assert_int_equal(liar_heard.message.your_generation, 100);
		assert_int_equal(liar_heard.message.failure.reason, PAIRING_MALFORMED);
		assert_string_equal(liar_heard.message.failure.text, ends[n].text);
	}
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
}

static void an_impossible_answer_fails_the_handshake_and_who_waits_hears_why(void **state) {
	uint32_t waiter = net_request(NODE, liar_key, PAIRING_NEVER);
	struct pairing_message message = liar_message(PAIRING_INFO);

	(void)state;
	net_pass(2 * MS);
	message.your_start = 1;
	message.your_generation = node_generation();
	message.end.endpoint.mtu = 7;
	liar_say(&message);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_MALFORMED);
	assert_string_equal(net_answer(waiter)->failure.text, "invalid MTU: 7");
}

static void an_infiniband_end_by_lid_alone_is_possible(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_INFO), read;

	(void)state;
	memset(&message.end.endpoint.gid, 0, sizeof(message.end.endpoint.gid));
	message.end.endpoint.link = DEVICE_LINK_INFINIBAND;
	message.end.endpoint.lid = 7;
	assert_int_equal(
		pairing_message_decode(bytes, pairing_message_encode(&message, bytes), &read), 0
	);
	assert_int_equal(read.end.endpoint.lid, 7);
}

// Versions

static void a_version_that_is_not_spoken_is_refused_with_both_ranges(void **state) {
	struct pairing_message message = liar_message(PAIRING_INFO);

	(void)state;
	message.version = 9;
	message.version_least = 5;
	assert_int_equal(liar_say(&message), 0);
	assert_int_equal(liar_heard.message.type, PAIRING_REFUSE);
	assert_int_equal(liar_heard.message.failure.reason, PAIRING_NO_COMMON_VERSION);
	assert_string_equal(
		liar_heard.message.failure.text,
		"no common handshake version: 5 to 9 are offered, 1 to 4 are supported"
	);
}

static void a_newer_version_that_speaks_ours_may_say_more(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_INFO);
	size_t size;

	(void)state;
	message.version = PAIRING_VERSION + 1;
	message.flags = 0x40;
	size = pairing_message_encode(&message, bytes);
	memset(bytes + size, 0xaa, 8);
	assert_int_equal(
		pairing_receive(
			net.nodes[NODE].pairing, net.now_ns, net_id(LIAR), 1, bytes, size + 8
		),
		0
	);
	net_pass(2 * MS);
	assert_int_equal(liar_heard.message.type, PAIRING_READY_SENT);
	assert_int_equal(liar_heard.message.your_generation, 100);
}

static void an_older_version_says_less_and_gives_nothing_up_to_writes(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX], older[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = liar_message(PAIRING_INFO), read;
	size_t size, older_size;

	(void)state;
	message.end.write_sink = (struct pairing_write_sink){0x7000, 5, 65536};
	message.end.endpoint.pkey = 0x8123;
	message.end.gpu = (struct pairing_gpu){0xa000, 77, 6, 65536, 3};
	size = pairing_message_encode(&message, bytes);
	assert_int_equal(pairing_message_decode(bytes, size, &read), 0);
	assert_int_equal(read.end.endpoint.pkey, 0x8123);
	assert_int_equal(read.end.write_sink.address, 0x7000);
	assert_int_equal(read.end.write_sink.key, 5);
	assert_int_equal(read.end.write_sink.length, 65536);
	assert_memory_equal(
		&read.end.gpu, &message.end.gpu, offsetof(struct pairing_gpu, ordinal) + 2
	);
	message.version = 3;
	older_size = pairing_message_encode(&message, older);
	assert_int_equal(older_size, size - 26);
	assert_int_equal(pairing_message_decode(older, older_size, &read), 0);
	assert_int_equal(read.end.endpoint.pkey, 0x8123);
	assert_int_equal(read.end.gpu.length, 0);
	message.version = 2;
	older_size = pairing_message_encode(&message, older);
	assert_int_equal(older_size, size - 28);
	assert_int_equal(pairing_message_decode(older, older_size, &read), 0);
	assert_int_equal(read.end.write_sink.length, 65536);
	assert_int_equal(read.end.endpoint.pkey, 0);
	message.version = 1;
	older_size = pairing_message_encode(&message, older);
	assert_int_equal(older_size, size - 44);
	assert_int_equal(pairing_message_decode(older, older_size, &read), 0);
	assert_int_equal(read.end.write_sink.length, 0);
	// The peer with the older version is answered, and accepts our messages as those of a
	// newer version.
	assert_int_equal(liar_say(&message), 0);
	net_pass(2 * MS);
	assert_int_equal(liar_heard.message.type, PAIRING_READY_SENT);
	assert_int_equal(liar_heard.message.version, PAIRING_VERSION);
	assert_int_equal(liar_heard.message.version_least, 1);
	// Our message must not claim the old version with more fields than that version has.
	older[0] = bytes[0];
	assert_int_equal(pairing_message_decode(older, older_size, &read), -EINVAL);
	bytes[0] = 1;
	assert_int_equal(pairing_message_decode(bytes, size, &read), -EINVAL);
}

static void a_refusal_for_a_reason_yet_to_come_ends_the_handshake(void **state) {
	struct pairing_message message = liar_message(PAIRING_REFUSE);
	uint32_t waiter = net_request(NODE, liar_key, PAIRING_NEVER);

	(void)state;
	net_pass(2 * MS);
	message.version = PAIRING_VERSION + 1;
	message.version_least = PAIRING_VERSION + 1;
	message.your_start = 1;
	message.your_generation = node_generation();
	message.failure.reason = PAIRING_REASON_COUNT + 3;
	memcpy(message.failure.text, "moonlight", 10);
	assert_int_equal(liar_say(&message), 0);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_CLOSED);
	assert_string_equal(net_answer(waiter)->failure.text, "moonlight");
}

UNIT_GROUP(pairing_hostile) {
	const struct CMUnitTest tests[] = {
		LIAR_TEST(any_message_cut_off_anywhere_is_refused),
		LIAR_TEST(a_message_comes_back_from_its_own_bytes),
		LIAR_TEST(a_head_that_is_wrong_is_counted_and_nothing_comes_of_it),
		LIAR_TEST(an_impossible_end_is_refused_in_words),
		LIAR_TEST(an_impossible_answer_fails_the_handshake_and_who_waits_hears_why),
		LIAR_TEST(an_infiniband_end_by_lid_alone_is_possible),
		LIAR_TEST(a_version_that_is_not_spoken_is_refused_with_both_ranges),
		LIAR_TEST(a_newer_version_that_speaks_ours_may_say_more),
		LIAR_TEST(an_older_version_says_less_and_gives_nothing_up_to_writes),
		LIAR_TEST(a_refusal_for_a_reason_yet_to_come_ends_the_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
