// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/pulse.h>
#include <support/cmocka.h>

#include <endian.h>
#include <stdalign.h>
#include <string.h>

static struct pulse *pulse;
static alignas(8) uint8_t copy[PULSE_HEAD_BYTES]; // the page as a device reads it

// Return the page as a one-sided read would.
static const void *read_page(void) {
	memcpy(copy, pulse_memory(pulse), sizeof(copy));
	return copy;
}

static int page_make(void **state) {
	(void)state;
	return pulse_create(42, 3, &pulse);
}

static int page_drop(void **state) {
	(void)state;
	pulse = pulse_destroy(pulse);
	return 0;
}

static void page_that_never_beat_is_evidence_of_nothing(void **state) {
	uint64_t incarnation = 1, beats = 1;

	(void)state;
	assert_false(pulse_parse_head(read_page(), 42, &incarnation, &beats));
	assert_int_equal(incarnation, 1);
	assert_int_equal(beats, 1);
}

static void beats_of_control_are_counted_with_its_incarnation(void **state) {
	uint64_t incarnation, beats;

	(void)state;
	pulse_beat(pulse, 7 << 16, 1000);
	pulse_beat(pulse, 8 << 16, 2000);
	pulse_beat_worker(pulse, 1);
	pulse_beat_worker(pulse, PULSE_WORKERS_MAX); // the page has no word for this worker
	assert_true(pulse_parse_head(read_page(), 42, &incarnation, &beats));
	assert_int_equal(beats, 2);
	assert_int_equal(pulse_read_beats(copy + PULSE_BEATS_AT), 2);
	assert_int_equal(incarnation, 8 << 16);
}

// Beat control `times` times, each time together with the workers in the mask.
static void beat(uint32_t times, uint32_t workers) {
	for (uint32_t n = 0; n < times; n++) {
		for (uint32_t k = 0; k < PULSE_WORKERS_MAX; k++) {
			if ((workers >> k & 1) != 0)
				pulse_beat_worker(pulse, k);
		}
		pulse_beat(pulse, 7 << 16, 1000);
	}
}

static void a_worker_whose_word_stands_while_control_beats_hangs(void **state) {
	struct pulse_workers seen = {.begun = false};
	uint32_t count = 0;

	(void)state;
	beat(1, 1);
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 0);
	assert_int_equal(count, 3);
	beat(PULSE_WORKER_HUNG_BEATS - 1, 0);
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 0);
	beat(1, 0);
	// The second worker never beat, so it cannot be reported as hung.
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 1);
	beat(1, 3);
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 0);
	beat(PULSE_WORKER_HUNG_BEATS, 1);
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 2);
	// If control does not beat either, the state of the workers is unknown.
	assert_int_equal(pulse_find_hung_workers(read_page(), &seen, &count), 2);
}

static void bytes_that_are_no_page_are_evidence_of_nothing(void **state) {
	uint64_t incarnation = 1, beats = 1;

	(void)state;
	pulse_beat(pulse, 7 << 16, 1000);
	memset(copy, 0, sizeof(copy));
	assert_false(pulse_parse_head(copy, 42, &incarnation, &beats));
	assert_false(pulse_parse_head(read_page(), 43, &incarnation, &beats));
	copy[8] = PULSE_LAYOUT + 1;
	assert_false(pulse_parse_head(copy, 42, &incarnation, &beats));
	read_page();
	copy[24] = PULSE_WORKERS_MAX + 1;
	assert_false(pulse_parse_head(copy, 42, &incarnation, &beats));
}

static void all_of_the_page_beyond_its_words_is_zero(void **state) {
	const uint8_t *page = pulse_memory(pulse);

	(void)state;
	for (uint32_t n = PULSE_HEAD_BYTES; n < PULSE_BYTES; n++)
		assert_int_equal(page[n], 0);
}

#define PAGE_TEST(name) cmocka_unit_test_setup_teardown(name, page_make, page_drop)

static void glance_sees_what_a_reading_says(void **state) {
	uint64_t incarnation, beats;

	(void)state;
	pulse_beat(pulse, 7 << 16, 1000);
	pulse_beat(pulse, 7 << 16, 2000);
	assert_true(pulse_parse_head(pulse_memory(pulse), 42, &incarnation, &beats));
	assert_int_equal(incarnation, 7 << 16);
	assert_int_equal(beats, 2);
	assert_int_equal(
		pulse_read_beats((const uint8_t *)pulse_memory(pulse) + PULSE_BEATS_AT), 2
	);
}

static void wait_for_a_processor_is_shown(void **state) {
	(void)state;
	assert_int_equal(pulse_read_wait(read_page()), 0);
	pulse_set_wait(pulse, 2500000);
	assert_int_equal(pulse_read_wait(read_page()), 2500000);
	pulse_set_wait(pulse, 0);
	assert_int_equal(pulse_read_wait(read_page()), 0);
}

static void glance_tells_nothing_of_what_no_agent_writes(void **state) {
	static const struct {
		uint32_t place; // index of the word
		uint64_t value;
	} lies[] = {
		{0, 0},
		{0, PULSE_MAGIC + 1},
		{1, PULSE_LAYOUT + 1},
		{2, 43},		    // id of another agent
		{3, PULSE_WORKERS_MAX + 1}, // too many workers
		{4, 0},			    // the agent never beat
	};
	uint64_t page[PULSE_HEAD_BYTES / 8];
	uint64_t incarnation, beats;

	(void)state;
	pulse_beat(pulse, 7 << 16, 1000);
	for (size_t n = 0; n < sizeof(lies) / sizeof(lies[0]); n++) {
		memcpy(page, read_page(), sizeof(page));
		page[lies[n].place] = htole64(lies[n].value);
		assert_false(pulse_parse_head(page, 42, &incarnation, &beats));
	}
}

UNIT_GROUP(pulse) {
	const struct CMUnitTest tests[] = {
		PAGE_TEST(page_that_never_beat_is_evidence_of_nothing),
		PAGE_TEST(beats_of_control_are_counted_with_its_incarnation),
		PAGE_TEST(a_worker_whose_word_stands_while_control_beats_hangs),
		PAGE_TEST(bytes_that_are_no_page_are_evidence_of_nothing),
		PAGE_TEST(all_of_the_page_beyond_its_words_is_zero),
		PAGE_TEST(wait_for_a_processor_is_shown),
		cmocka_unit_test_setup_teardown(
			glance_sees_what_a_reading_says, page_make, page_drop
		),
		cmocka_unit_test_setup_teardown(
			glance_tells_nothing_of_what_no_agent_writes, page_make, page_drop
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
