// SPDX-License-Identifier: BSD-3-Clause
// What no agent sends, or not now, or not to us: counted, refused with a reason, never believed.
#include "pairing_net.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <string.h>

#define NODE 0
#define LIAR 1 // speaks by net_inject() alone; what is said to it goes nowhere

static struct pairing_key key; // of the node to the liar

static struct {
	struct pairing_message message;
	uint32_t count;
} said; // to the liar, the last one

static bool listen(struct net *unused, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size) {
	(void)unused;
	if (from != NODE || to != LIAR)
		return false;
	assert_int_equal(pairing_message_decode(bytes, *size, &said.message), 0);
	said.count++;
	return true;
}

static int with_liar(void **state) {
	(void)state;
	net_create(2, 2, 1);
	net.filter = listen;
	said.count = 0;
	key = net_key(0, LIAR, 0);
	return 0;
}

// The node goes on, and has pairs with honest ones.
static int fini(void **state) {
	(void)state;
	net_pass(20 * SECOND);
	net.filter = NULL;
	net_crash(LIAR, true);
	net_start(LIAR, true);
	net_pass(2 * SECOND);
	net_want(NODE, 0, LIAR, 0);
	net_settle();
	net_destroy();
	return 0;
}

static struct pairing_message sound(enum pairing_message_type type) {
	struct pairing_message message = {
		.version = PAIRING_VERSION,
		.version_least = PAIRING_VERSION_LEAST,
		.type = type,
		.device = "rdma0",
		.your_device = "rdma0",
		.end =
			{
				.start = net.nodes[LIAR].start,
				.generation = 100,
				.endpoint =
					{
						.link = DEVICE_LINK_ETHERNET,
						.mtu = 1024,
						.queue_number = 77,
						.psn = 1,
					},
				.responder = DEVICE_RESPONDER_KERNEL,
			},
	};

	message.end.endpoint.gid.raw[0] = 0xfe;
	message.end.endpoint.gid.raw[14] = LIAR;
	if (type == PAIRING_REFUSE)
		message.end.generation = 0;
	if (type == PAIRING_REFUSE || type == PAIRING_CLOSE)
		message.failure.reason = PAIRING_DRIVER;
	return message;
}

static int say(const struct pairing_message *message) {
	return net_inject(LIAR, NODE, message);
}

static uint32_t ours(void) {
	return net_view(NODE, key).generation;
}

// A pair that is ready, of the liar's generation 100.
static void be_ready(void) {
	struct pairing_message message = sound(PAIRING_INFO);

	net_request(NODE, key, SECOND);
	net_pass(2 * MS);
	message.your_start = 1;
	message.your_generation = ours();
	assert_int_equal(say(&message), 0);
	net_pass(2 * MS);
	message.type = PAIRING_READY_SENT;
	assert_int_equal(say(&message), 0);
	assert_int_equal(net_view(NODE, key).state, PAIRING_READY);
	net_pass(2 * SECOND);
}

// Messages that cannot be read

static void any_message_cut_off_anywhere_is_refused(void **state) {
	(void)state;
	for (uint32_t type = PAIRING_INFO; type < PAIRING_MESSAGE_TYPE_END; type++) {
		uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
		struct pairing_message message = sound(type), read;
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
	struct pairing_message message = sound(PAIRING_READY_SENT), read;
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

// Heads: one field is wrong, and nobody is told, for nobody can be.
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
		struct pairing_message message = sound(PAIRING_INFO);
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
	assert_int_equal(said.count, 0);
}

// Ends: the sender is told what is impossible.
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
	end->endpoint.lid = 5; // which is none on Ethernet
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
	end->landing.key = 9;
}

static void memory_past_the_end_of_all(struct pairing_end *end) {
	end->landing = (struct pairing_landing){UINT64_MAX - 7, 1, 9};
}

static const struct {
	void (*spoil)(struct pairing_end *end);
	const char *text;
} ends[] = {
	{memory_of_no_length, "impossible memory to write to: 0"},
	{memory_past_the_end_of_all, "impossible memory to write to: 9"},
	{mtu_7, "impossible MTU: 7"},
	{psn_of_25_bits, "impossible packet sequence number: 16777216"},
	{queue_of_25_bits, "impossible queue number: 16777216"},
	{queue_1, "impossible queue number: 1"},
	{gid_of_zero, "impossible address, neither GID nor LID: 0"},
	{neither_gid_nor_lid, "impossible address, neither GID nor LID: 0"},
	{gid_of_a_group, "impossible GID, a group's: 255"},
	{link_of_its_own, "impossible link layer: 2"},
	{flow_label_of_21_bits, "impossible flow label: 1048576"},
	{responder_of_its_own, "impossible responder: 3"},
	{page_without_a_layout, "impossible page without a layout: 9"},
};

static void an_impossible_end_is_refused_in_words(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(ends); n++) {
		struct pairing_message message = sound(PAIRING_INFO);

		ends[n].spoil(&message.end);
		assert_int_equal(say(&message), 0);
		assert_int_equal(said.count, n + 1);
		assert_int_equal(said.message.type, PAIRING_REFUSE);
		assert_int_equal(said.message.your_generation, 100);
		assert_int_equal(said.message.failure.reason, PAIRING_MALFORMED);
		assert_string_equal(said.message.failure.text, ends[n].text);
	}
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
}

static void an_impossible_answer_fails_the_handshake_and_who_waits_hears_why(void **state) {
	uint32_t waiter = net_request(NODE, key, PAIRING_NEVER);
	struct pairing_message message = sound(PAIRING_INFO);

	(void)state;
	net_pass(2 * MS);
	message.your_start = 1;
	message.your_generation = ours();
	message.end.endpoint.mtu = 7;
	say(&message);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_MALFORMED);
	assert_string_equal(net_answer(waiter)->failure.text, "impossible MTU: 7");
}

static void an_infiniband_end_by_lid_alone_is_possible(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = sound(PAIRING_INFO), read;

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
	struct pairing_message message = sound(PAIRING_INFO);

	(void)state;
	message.version = 9;
	message.version_least = 5;
	assert_int_equal(say(&message), 0);
	assert_int_equal(said.message.type, PAIRING_REFUSE);
	assert_int_equal(said.message.failure.reason, PAIRING_NO_COMMON_VERSION);
	assert_string_equal(
		said.message.failure.text,
		"versions 5 to 9 of the handshake are offered, 1 to 2 are spoken"
	);
}

static void a_newer_version_that_speaks_ours_may_say_more(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = sound(PAIRING_INFO);
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
	assert_int_equal(said.message.type, PAIRING_READY_SENT);
	assert_int_equal(said.message.your_generation, 100);
}

static void an_older_version_says_less_and_gives_nothing_up_to_writes(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX], older[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = sound(PAIRING_INFO), read;
	size_t size, older_size;

	(void)state;
	message.end.landing = (struct pairing_landing){0x7000, 5, 65536};
	size = pairing_message_encode(&message, bytes);
	assert_int_equal(pairing_message_decode(bytes, size, &read), 0);
	assert_int_equal(read.end.landing.address, 0x7000);
	assert_int_equal(read.end.landing.key, 5);
	assert_int_equal(read.end.landing.length, 65536);
	message.version = 1;
	older_size = pairing_message_encode(&message, older);
	assert_int_equal(older_size, size - 16);
	assert_int_equal(pairing_message_decode(older, older_size, &read), 0);
	assert_int_equal(read.end.landing.length, 0);
	// The older one is answered, and takes what we say as that of a newer version.
	assert_int_equal(say(&message), 0);
	net_pass(2 * MS);
	assert_int_equal(said.message.type, PAIRING_READY_SENT);
	assert_int_equal(said.message.version, 2);
	assert_int_equal(said.message.version_least, 1);
	// But it does not say more than its version knows.
	older[0] = bytes[0];
	assert_int_equal(pairing_message_decode(older, older_size, &read), -EINVAL);
	bytes[0] = 1;
	assert_int_equal(pairing_message_decode(bytes, size, &read), -EINVAL);
}

static void a_refusal_for_a_reason_yet_to_come_ends_the_handshake(void **state) {
	struct pairing_message message = sound(PAIRING_REFUSE);
	uint32_t waiter = net_request(NODE, key, PAIRING_NEVER);

	(void)state;
	net_pass(2 * MS);
	message.version = 3;
	message.version_least = 3;
	message.your_start = 1;
	message.your_generation = ours();
	message.failure.reason = PAIRING_REASON_COUNT + 3;
	memcpy(message.failure.text, "moonlight", 10);
	assert_int_equal(say(&message), 0);
	assert_int_equal(net_answer(waiter)->failure.reason, PAIRING_CLOSED);
	assert_string_equal(net_answer(waiter)->failure.text, "moonlight");
}

// Sound, but not now

static void ready_from_who_has_another_pair_of_ours_in_mind_is_stale(void **state) {
	struct pairing_message message = sound(PAIRING_READY_SENT);

	(void)state;
	message.your_start = 1;
	message.your_generation = 4711;
	assert_int_equal(say(&message), 0);
	assert_int_equal(said.message.type, PAIRING_REFUSE);
	assert_int_equal(said.message.failure.reason, PAIRING_STALE);
	message.your_start = 7;
	message.end.generation = 101;
	said.count = 0;
	assert_int_equal(say(&message), 0); // for another start of ours
	assert_int_equal(said.count, 0);
	assert_int_equal(net_counters(NODE)->stale, 2);
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
}

static void a_ready_pair_is_not_ended_by_refusals_or_by_who_is_not_its_peer(void **state) {
	struct pairing_message refusal = sound(PAIRING_REFUSE), close = sound(PAIRING_CLOSE);
	struct pairing_message spoilt = sound(PAIRING_INFO);

	(void)state;
	be_ready();
	refusal.your_start = 1;
	refusal.your_generation = ours();
	say(&refusal);
	close.end.generation = 99;
	say(&close);
	spoilt.end.generation = 101;
	spoilt.end.endpoint.mtu = 7;
	say(&spoilt);
	memcpy(refusal.device, "rdma1", 6);
	refusal.failure.reason = PAIRING_STALE;
	say(&refusal);
	assert_int_equal(net_view(NODE, key).state, PAIRING_READY);
	assert_int_equal(net_counters(NODE)->stale, 3);
}

static const struct {
	const char *what;
	bool to_ours; // else to one that is long gone
} answers[] = {
	{"to one that is long gone", false},
	{"to ours, which has another", true},
};

static void a_newer_pair_that_is_bound_elsewhere_ends_ours_and_is_told_to_end(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(answers); n++) {
		struct pairing_message message = sound(PAIRING_INFO);

		print_message("# %s\n", answers[n].what);
		fini(NULL);
		with_liar(NULL);
		be_ready();
		message.your_start = 1;
		message.your_generation = answers[n].to_ours ? ours() : 4711;
		message.end.generation = 101;
		assert_int_equal(say(&message), 0);
		assert_int_equal(said.message.type, PAIRING_REFUSE);
		assert_int_equal(said.message.failure.reason, PAIRING_STALE);
		assert_int_equal(said.message.your_generation, 101);
		assert_int_equal(net_view(NODE, key).state, PAIRING_DRAINING);
		assert_int_equal(net_view(NODE, key).failure.reason, PAIRING_REPLACED);
		net_pass(5 * SECOND);
		assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 1);
	}
}

static void what_the_peer_says_is_gone_is_gone(void **state) {
	struct pairing_message close = sound(PAIRING_CLOSE);

	(void)state;
	be_ready();
	say(&close);
	assert_int_not_equal(net_view(NODE, key).state, PAIRING_READY);
	assert_int_equal(net_view(NODE, key).failure.reason, PAIRING_DRIVER);
	close.type = PAIRING_INFO; // and does not come back
	close.failure.reason = PAIRING_REASON_NONE;
	close.end = sound(PAIRING_INFO).end;
	net_pass(5 * SECOND);
	said.count = 0;
	say(&close);
	net_pass(5 * SECOND);
	assert_int_equal(said.count, 0);
	assert_int_equal(net_view(NODE, key).generation, 1);
}

static void a_flood_of_new_generations_costs_one_handshake_a_second(void **state) {
	struct pairing_message message = sound(PAIRING_INFO);

	(void)state;
	for (uint32_t n = 0; n < 10000; n++) {
		message.end.generation++;
		assert_int_equal(say(&message), 0);
		net_pass(MS);
	}
	assert_in_range(net.nodes[NODE].asked[NET_CREATE], 9, 11);
	assert_true(net.nodes[NODE].gap_ns[LIAR] >= SECOND);
	assert_true(net.nodes[NODE].pair_count <= 3);
}

static void a_flood_of_copies_is_not_answered_copy_by_copy(void **state) {
	struct pairing_message message = sound(PAIRING_INFO);

	(void)state;
	say(&message);
	net_pass(20 * MS);
	said.count = 0;
	for (uint32_t n = 0; n < 10000; n++) {
		assert_int_equal(say(&message), 0);
		net_pass(MS / 10);
	}
	assert_in_range(said.count, 1, 110);
}

static void a_flood_of_device_names_is_held_to_the_places_of_one_peer(void **state) {
	struct pairing_message message = sound(PAIRING_INFO);
	struct pairing_view view;
	uint32_t count = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		message.device[0] = (char)('a' + n % 26);
		message.device[1] = (char)('a' + n / 26 % 26);
		message.device[2] = (char)('a' + n / 676);
		assert_int_equal(say(&message), 0);
		net_pass(MS);
	}
	for (uint32_t cursor = 0; pairing_next(net.nodes[NODE].pairing, &cursor, &view);)
		count++;
	assert_in_range(count, 1, PAIRING_PEER_ENTRIES_MAX);
	assert_int_equal(said.message.failure.reason, PAIRING_NO_ROOM);
	assert_true(net.nodes[NODE].pair_count <= 64);
}

static void a_generation_from_the_far_end_blocks_no_more_than_its_start(void **state) {
	struct pairing_message message = sound(PAIRING_INFO);

	(void)state;
	message.end.generation = 0x7fffffff;
	say(&message);
	net_pass(SECOND);
	message.end.generation = 100; // half the way round: older
	say(&message);
	assert_int_equal(net_counters(NODE)->stale, 1);
	net_pass(20 * SECOND);
	// fini() shows that another start of the liar is believed.
}

static void words_of_a_dead_or_unknown_peer_are_not_believed(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = sound(PAIRING_INFO);
	size_t size = pairing_message_encode(&message, bytes);

	(void)state;
	assert_int_equal(
		pairing_receive(net.nodes[NODE].pairing, net.now_ns, net_id(6), 1, bytes, size), 0
	);
	net.nodes[NODE].views[LIAR].state = PAIRING_PEER_HAS_DIED;
	assert_int_equal(say(&message), 0);
	assert_int_equal(net_counters(NODE)->stale, 2);
	assert_int_equal(net.nodes[NODE].asked[NET_CREATE], 0);
	net.nodes[NODE].views[LIAR].state = PAIRING_PEER_IS_ALIVE;
}

static void our_own_device_does_not_offer_itself_to_itself(void **state) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message = sound(PAIRING_INFO);
	size_t size = pairing_message_encode(&message, bytes);

	(void)state;
	assert_int_equal(
		pairing_receive(net.nodes[NODE].pairing, net.now_ns, net_id(NODE), 1, bytes, size),
		-EBADMSG
	);
	assert_int_equal(net_counters(NODE)->malformed, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, with_liar, fini)
	const struct CMUnitTest tests[] = {
		TEST(any_message_cut_off_anywhere_is_refused),
		TEST(a_message_comes_back_from_its_own_bytes),
		TEST(a_head_that_is_wrong_is_counted_and_nothing_comes_of_it),
		TEST(an_impossible_end_is_refused_in_words),
		TEST(an_impossible_answer_fails_the_handshake_and_who_waits_hears_why),
		TEST(an_infiniband_end_by_lid_alone_is_possible),
		TEST(a_version_that_is_not_spoken_is_refused_with_both_ranges),
		TEST(a_newer_version_that_speaks_ours_may_say_more),
		TEST(an_older_version_says_less_and_gives_nothing_up_to_writes),
		TEST(a_refusal_for_a_reason_yet_to_come_ends_the_handshake),
		TEST(ready_from_who_has_another_pair_of_ours_in_mind_is_stale),
		TEST(a_ready_pair_is_not_ended_by_refusals_or_by_who_is_not_its_peer),
		TEST(a_newer_pair_that_is_bound_elsewhere_ends_ours_and_is_told_to_end),
		TEST(what_the_peer_says_is_gone_is_gone),
		TEST(a_flood_of_new_generations_costs_one_handshake_a_second),
		TEST(a_flood_of_copies_is_not_answered_copy_by_copy),
		TEST(a_flood_of_device_names_is_held_to_the_places_of_one_peer),
		TEST(a_generation_from_the_far_end_blocks_no_more_than_its_start),
		TEST(words_of_a_dead_or_unknown_peer_are_not_believed),
		TEST(our_own_device_does_not_offer_itself_to_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
