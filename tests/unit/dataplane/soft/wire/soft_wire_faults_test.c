// SPDX-License-Identifier: BSD-3-Clause
// Tests of faults on a wire that records its frames. Random draws depend on a fixed seed, so a
// result never changes.
#include "nic/nic.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <stdlib.h>

#define SENT_MAX 40000
#define FRAME_BYTES 96
#define FRAMES 10000

struct recorder {
	struct soft_wire wire;
	uint32_t numbers[SENT_MAX];
	uint64_t at_ns[SENT_MAX];
	uint32_t damaged; // known frames with a changed bit
	uint32_t count, room;
	uint64_t now_ns;
	bool destroyed;
	uint8_t out[FRAME_BYTES_MAX];
};

// Write a frame as the device sends it. All bytes after the number are known, so that a changed bit
// is detected.
static void write_frame(uint8_t *bytes, uint32_t number) {
	memset(bytes, 0xa5, FRAME_BYTES);
	bytes[0] = 0x45;
	memcpy(bytes + 4, &number, sizeof(number));
}

static uint8_t *recorder_take(struct soft_wire *wire) {
	struct recorder *recorder = (struct recorder *)wire;

	return recorder->count < recorder->room ? recorder->out : NULL;
}

static void recorder_give(struct soft_wire *wire, uint32_t size) {
	struct recorder *recorder = (struct recorder *)wire;
	uint8_t expected[FRAME_BYTES];
	uint32_t bits = 0;
	uint32_t number;

	assert_int_equal(size, FRAME_BYTES);
	memcpy(&number, recorder->out + 4, sizeof(number));
	write_frame(expected, number);
	for (uint32_t i = 0; i < size; i++)
		bits += (uint32_t)__builtin_popcount(expected[i] ^ recorder->out[i]);
	assert_true(bits <= 1);
	assert_memory_equal(expected, recorder->out, FRAME_IP4_BYTES + FRAME_UDP_BYTES);
	assert_int_equal(recorder->out[FRAME_IP4_BYTES + FRAME_UDP_BYTES + 4], 0xa5);
	recorder->damaged += bits;
	recorder->at_ns[recorder->count] = recorder->now_ns;
	recorder->numbers[recorder->count++] = number;
	memset(recorder->out, 0, sizeof(recorder->out));
}

static void recorder_flush(struct soft_wire *wire) {
	(void)wire;
}

static uint32_t recorder_receive(
	struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns
) {
	(void)wire;
	(void)ret_frames;
	(void)max;
	(void)now_ns;
	return 0;
}

static uint64_t recorder_due(const struct soft_wire *wire) {
	(void)wire;
	return NIC_NEVER;
}

static void recorder_destroy(struct soft_wire *wire) {
	((struct recorder *)wire)->destroyed = true;
}

static const struct wire_calls recorder_calls = {
	.name = "recorder",
	.take = recorder_take,
	.give = recorder_give,
	.flush = recorder_flush,
	.receive = recorder_receive,
	.due = recorder_due,
	.destroy = recorder_destroy,
};

struct bed {
	struct recorder inner;
	struct soft_counters counters;
	struct clock clock;
	struct soft_wire *wire;
};

static struct bed *bed_create(const char *text) {
	struct bed *bed = calloc(1, sizeof(*bed));
	struct parse_error error = {""};
	struct soft_faults faults;

	assert_non_null(bed);
	if (soft_faults_parse(text, strlen(text), &error, &faults) != 0)
		fail_msg("%s", error.text);
	bed->inner.wire.calls = &recorder_calls;
	bed->inner.wire.mtu = 1024;
	bed->inner.wire.peer_sealed = true;
	bed->inner.room = SENT_MAX;
	clock_init_fake(&bed->clock, 0);
	assert_int_equal(
		wire_faults_create(
			&bed->inner.wire, &faults, &bed->counters, &bed->clock, &bed->wire
		),
		0
	);
	return bed;
}

static void bed_destroy(struct bed *bed) {
	wire_destroy(bed->wire);
	assert_true(bed->inner.destroyed);
	free(bed);
}

static void bed_turn(struct bed *bed, uint64_t now_ns) {
	struct wire_frame frame;

	clock_advance(&bed->clock, now_ns - clock_now_ns(&bed->clock));
	bed->inner.now_ns = now_ns;
	assert_int_equal(bed->wire->calls->receive(bed->wire, &frame, 1, now_ns), 0);
}

static bool bed_send(struct bed *bed, uint32_t number) {
	uint8_t *bytes = bed->wire->calls->take(bed->wire);

	if (bytes == NULL)
		return false;
	write_frame(bytes, number);
	bed->wire->calls->give(bed->wire, FRAME_BYTES);
	return true;
}

// Send frames 0, 1, ..., then advance until no frame is held back.
static void bed_run(struct bed *bed, uint32_t count, uint64_t step_ns) {
	uint64_t now_ns = 0;

	for (uint32_t i = 0; i < count; i++, now_ns += step_ns) {
		while (bed->wire->calls->due(bed->wire) < now_ns)
			bed_turn(bed, bed->wire->calls->due(bed->wire));
		bed_turn(bed, now_ns);
		assert_true(bed_send(bed, i));
	}
	while (bed->wire->calls->due(bed->wire) != NIC_NEVER)
		bed_turn(bed, bed->wire->calls->due(bed->wire));
}

static void without_faults_there_is_no_wrapper(void **state) {
	struct bed *bed = bed_create("seed=1");

	(void)state;
	assert_ptr_equal(bed->wire, &bed->inner.wire);
	bed_destroy(bed);
}

static void a_wrapper_looks_like_what_it_wraps_but_never_trusts(void **state) {
	struct bed *bed = bed_create("corrupt=1%");

	(void)state;
	assert_int_equal(bed->wire->mtu, 1024);
	assert_false(bed->wire->peer_sealed);
	bed_destroy(bed);
}

// Each fault alone occurs as often as configured, within five standard deviations. No other fault
// occurs.
static void each_fault_comes_as_often_as_was_asked_for(void **state) {
	static const struct {
		const char *text;
		size_t counter;
		uint32_t low, high;
	} rows[] = {
		{"loss=1%", offsetof(struct soft_counters, fault_lost), 50, 150},
		{"loss=20%,seed=5", offsetof(struct soft_counters, fault_lost), 1800, 2200},
		{"loss=100%", offsetof(struct soft_counters, fault_lost), FRAMES, FRAMES},
		{"dup=5%", offsetof(struct soft_counters, fault_duplicated), 391, 609},
		{"dup=100%", offsetof(struct soft_counters, fault_duplicated), FRAMES, FRAMES},
		{"corrupt=5%", offsetof(struct soft_counters, fault_corrupted), 391, 609},
		{"corrupt=100%", offsetof(struct soft_counters, fault_corrupted), FRAMES, FRAMES},
		{"reorder=2%", offsetof(struct soft_counters, fault_reordered), 130, 270},
		{"delay=10us", offsetof(struct soft_counters, fault_delayed), FRAMES, FRAMES},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bed *bed = bed_create(rows[i].text);
		const struct soft_counters *counters = &bed->counters;
		uint64_t all = 0;
		uint64_t count;

		bed_run(bed, FRAMES, 1000);
		memcpy(&count, (const char *)counters + rows[i].counter, sizeof(count));
		if (count < rows[i].low || count > rows[i].high)
			fail_msg("%s: %lu", rows[i].text, (unsigned long)count);
		all += counters->fault_lost + counters->fault_duplicated +
		       counters->fault_corrupted + counters->fault_reordered +
		       counters->fault_delayed;
		assert_int_equal(all, count);
		assert_int_equal(
			bed->inner.count, FRAMES - counters->fault_lost + counters->fault_duplicated
		);
		assert_int_equal(bed->inner.damaged, counters->fault_corrupted);
		bed_destroy(bed);
	}
}

static void all_faults_together_keep_the_sums(void **state) {
	struct bed *bed =
		bed_create("loss=5%,delay=50us±20us,reorder=5%,dup=5%,corrupt=5%,seed=11");
	uint64_t sent;

	(void)state;
	bed_run(bed, FRAMES, 1000);
	sent = FRAMES - bed->counters.fault_lost + bed->counters.fault_duplicated;
	assert_int_equal(bed->inner.count, sent);
	assert_int_equal(bed->counters.fault_delayed, sent);
	assert_true(bed->inner.damaged >= bed->counters.fault_corrupted);
	bed_destroy(bed);
}

static void one_seed_gives_one_history_and_another_seed_another(void **state) {
	static const char *const texts[] = {
		"loss=5%,delay=50us±20us,reorder=5%,dup=5%,corrupt=5%,seed=1",
		"loss=5%,delay=50us±20us,reorder=5%,dup=5%,corrupt=5%,seed=1",
		"loss=5%,delay=50us±20us,reorder=5%,dup=5%,corrupt=5%,seed=2",
	};
	struct bed *beds[COUNT_OF(texts)];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		beds[i] = bed_create(texts[i]);
		bed_run(beds[i], FRAMES, 1000);
	}
	assert_int_equal(beds[0]->inner.count, beds[1]->inner.count);
	assert_memory_equal(
		beds[0]->inner.numbers, beds[1]->inner.numbers, sizeof(beds[0]->inner.numbers)
	);
	assert_memory_equal(
		beds[0]->inner.at_ns, beds[1]->inner.at_ns, sizeof(beds[0]->inner.at_ns)
	);
	assert_memory_not_equal(
		beds[0]->inner.numbers, beds[2]->inner.numbers, sizeof(beds[0]->inner.numbers)
	);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		bed_destroy(beds[i]);
}

static void a_delay_keeps_the_order_and_its_time_is_told(void **state) {
	struct bed *bed = bed_create("delay=50us");

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		bed_turn(bed, 1000 * i);
		assert_true(bed_send(bed, i));
		assert_int_equal(bed->wire->calls->due(bed->wire), 50000);
	}
	bed_turn(bed, 49999);
	assert_int_equal(bed->inner.count, 0);
	bed_turn(bed, 50000);
	assert_int_equal(bed->inner.count, 1);
	assert_int_equal(bed->wire->calls->due(bed->wire), 51000);
	bed_turn(bed, 52000);
	assert_int_equal(bed->inner.count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bed->inner.numbers[i], i);
	assert_true(bed->wire->calls->due(bed->wire) == NIC_NEVER);
	bed_destroy(bed);
}

static void a_delay_begins_with_the_frame_not_with_the_turn_before_it(void **state) {
	struct bed *bed = bed_create("delay=50us");

	(void)state;
	bed_turn(bed, 1000);
	clock_advance(&bed->clock, 999000);
	assert_true(bed_send(bed, 0));
	assert_int_equal(bed->wire->calls->due(bed->wire), 1050000);
	bed_turn(bed, 1049999);
	assert_int_equal(bed->inner.count, 0);
	bed_destroy(bed);
}

static void jitter_stays_within_its_bounds_and_reaches_them(void **state) {
	struct bed *bed = bed_create("delay=50us±20us,seed=3");
	uint64_t least = NIC_NEVER;
	uint64_t most = 0;

	(void)state;
	bed_run(bed, FRAMES, 100000); // no frame waits behind another
	assert_int_equal(bed->inner.count, FRAMES);
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint64_t delay_ns = bed->inner.at_ns[i] - 100000 * (uint64_t)bed->inner.numbers[i];

		least = delay_ns < least ? delay_ns : least;
		most = delay_ns > most ? delay_ns : most;
	}
	assert_in_range(least, 30000, 30100);
	assert_in_range(most, 69900, 70000);
	bed_destroy(bed);
}

static void jitter_changes_no_order(void **state) {
	struct bed *bed = bed_create("delay=50us±50us,dup=5%,seed=3");
	uint32_t repeated = 0;

	(void)state;
	bed_run(bed, FRAMES, 1000);
	for (uint32_t i = 0; i < bed->inner.count; i++) {
		uint64_t sent_ns = 1000 * (uint64_t)bed->inner.numbers[i];

		assert_int_equal(bed->inner.numbers[i] + repeated, i);
		assert_in_range(bed->inner.at_ns[i] - sent_ns, 0, 100000);
		repeated += i + 1 < bed->inner.count &&
			    bed->inner.numbers[i + 1] == bed->inner.numbers[i];
	}
	assert_int_equal(bed->inner.count, FRAMES + bed->counters.fault_duplicated);
	bed_destroy(bed);
}

static void a_frame_held_back_is_overtaken_by_few_and_is_never_forgotten(void **state) {
	struct bed *bed = bed_create("reorder=5%,seed=4");
	uint32_t highest = 0;
	uint32_t late = 0;

	(void)state;
	bed_run(bed, FRAMES, 1000);
	assert_int_equal(bed->inner.count, FRAMES);
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t number = bed->inner.numbers[i];

		// Eight frames overtake a held frame, and each of them may have been held itself.
		assert_true(number + 64 > highest);
		late += number < highest;
		highest = number > highest ? number : highest;
	}
	assert_in_range(late, bed->counters.fault_reordered * 8 / 10, FRAMES / 10);
	bed_destroy(bed);
}

static void a_last_frame_that_is_held_back_leaves_after_a_while(void **state) {
	struct bed *bed = bed_create("reorder=100%");

	(void)state;
	bed_turn(bed, 0);
	assert_true(bed_send(bed, 1));
	assert_int_equal(bed->inner.count, 0);
	assert_int_equal(bed->wire->calls->due(bed->wire), 200000);
	bed_turn(bed, 200000);
	assert_int_equal(bed->inner.count, 1);
	assert_true(bed->wire->calls->due(bed->wire) == NIC_NEVER);
	bed_destroy(bed);
}

static void a_full_wire_inside_delays_and_loses_nothing(void **state) {
	struct bed *bed = bed_create("delay=10us,dup=50%,reorder=50%");
	uint32_t sent = 0;

	(void)state;
	bed->inner.room = 10;
	for (uint32_t i = 0; i < 20 && bed_send(bed, i); i++)
		sent++;
	bed_turn(bed, 1000000);
	bed_turn(bed, 2000000);
	assert_int_equal(bed->inner.count, 10);
	assert_null(bed->wire->calls->take(bed->wire));
	bed->inner.room = SENT_MAX;
	for (uint64_t now_ns = 3000000; now_ns < 9000000; now_ns += 1000000)
		bed_turn(bed, now_ns);
	assert_int_equal(bed->inner.count, sent + bed->counters.fault_duplicated);
	assert_true(bed->wire->calls->due(bed->wire) == NIC_NEVER);
	bed_destroy(bed);
}

static void a_full_pool_takes_nothing_until_frames_have_left(void **state) {
	struct bed *bed = bed_create("delay=1s");
	uint32_t sent = 0;

	(void)state;
	while (sent < SENT_MAX && bed_send(bed, sent))
		sent++;
	assert_in_range(sent, 1024, 4096);
	bed_turn(bed, 1000000000);
	assert_int_equal(bed->inner.count, sent);
	assert_true(bed_send(bed, sent));
	bed_destroy(bed);
}

// Regression: the last acknowledgement of a program was held back, and its peer exhausted its
// retries.
static void what_is_held_back_or_delayed_leaves_when_the_wire_goes(void **state) {
	static const char *const faults[] = {"reorder=100%", "delay=1s", "reorder=100%,delay=1s"};

	(void)state;
	for (size_t n = 0; n < sizeof(faults) / sizeof(faults[0]); n++) {
		struct bed *bed = bed_create(faults[n]);

		for (uint32_t number = 0; number < 3; number++)
			assert_true(bed_send(bed, number));
		wire_destroy(bed->wire);
		assert_int_equal(bed->inner.count, 3);
		assert_true(bed->inner.destroyed);
		free(bed);
	}
}

// All frames of this test are sent to 165.165.165.165.
static void packets_to_others_are_spared(void **state) {
	static const struct {
		const char *faults;
		uint64_t lost;
	} rows[] = {
		{"loss=100%,to=165.165.165.165", 10},
		{"loss=100%,to=165.165.165.164", 0},
		{"loss=100%,to=a5a5::1", 0},
		{"loss=100%,to=fd00::a5a5:a5a5", 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(rows[n].faults);

		bed_run(bed, 10, 1000);
		assert_int_equal(bed->counters.fault_lost, rows[n].lost);
		assert_int_equal(bed->inner.count, 10 - rows[n].lost);
		bed_destroy(bed);
	}
}

static void bed_change(struct bed *bed, const char *text) {
	struct soft_faults faults;

	assert_int_equal(soft_faults_parse(text, strlen(text), NULL, &faults), 0);
	assert_int_equal(wire_faults_change(&bed->wire, &faults, &bed->counters, &bed->clock), 0);
}

static void faults_come_change_and_go_and_no_frame_is_forgotten(void **state) {
	struct bed *bed = bed_create("");

	(void)state;
	assert_true(bed_send(bed, 0));
	bed_change(bed, "");
	assert_ptr_equal(bed->wire, &bed->inner.wire);
	bed_change(bed, "delay=1ms");
	assert_true(bed_send(bed, 1));
	assert_int_equal(bed->inner.count, 1);
	bed_change(bed, "loss=100%");
	assert_true(bed_send(bed, 2));
	bed_change(bed, "");
	assert_true(bed_send(bed, 3));
	assert_int_equal(bed->inner.count, 2);
	bed_turn(bed, bed->wire->calls->due(bed->wire));
	assert_int_equal(bed->inner.count, 3); // the delayed frame, at its due time
	assert_int_equal(bed->counters.fault_lost, 1);
	bed_destroy(bed);
}

UNIT_GROUP(soft_wire_faults) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_faults_there_is_no_wrapper),
		cmocka_unit_test(a_wrapper_looks_like_what_it_wraps_but_never_trusts),
		cmocka_unit_test(each_fault_comes_as_often_as_was_asked_for),
		cmocka_unit_test(all_faults_together_keep_the_sums),
		cmocka_unit_test(one_seed_gives_one_history_and_another_seed_another),
		cmocka_unit_test(a_delay_keeps_the_order_and_its_time_is_told),
		cmocka_unit_test(a_delay_begins_with_the_frame_not_with_the_turn_before_it),
		cmocka_unit_test(jitter_stays_within_its_bounds_and_reaches_them),
		cmocka_unit_test(jitter_changes_no_order),
		cmocka_unit_test(a_frame_held_back_is_overtaken_by_few_and_is_never_forgotten),
		cmocka_unit_test(a_last_frame_that_is_held_back_leaves_after_a_while),
		cmocka_unit_test(what_is_held_back_or_delayed_leaves_when_the_wire_goes),
		cmocka_unit_test(packets_to_others_are_spared),
		cmocka_unit_test(faults_come_change_and_go_and_no_frame_is_forgotten),
		cmocka_unit_test(a_full_wire_inside_delays_and_loses_nothing),
		cmocka_unit_test(a_full_pool_takes_nothing_until_frames_have_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
