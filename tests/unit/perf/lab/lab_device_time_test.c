// SPDX-License-Identifier: BSD-3-Clause
// Tests of a device's clock against the worker's clock. The test provides both clocks, and devices
// with wrong clocks.
#include "run/device_time.h"

#include <lib/histogram.h>
#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <record.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// A device clock with any start value and mask. Its true rate differs from the stated rate by
// off_ppm.
struct played_clock {
	uint64_t mask, khz;
	double off_ppm;
	uint64_t begins;
};

static uint64_t stamp_at(const struct played_clock *played, uint64_t ns) {
	double khz = (double)played->khz * (1 + played->off_ppm / 1e6);

	return (played->begins + (uint64_t)((double)ns * khz / 1e6)) & played->mask;
}

static struct device_reading reading_at(const struct played_clock *played, uint64_t ns) {
	return (struct device_reading
	){.before_ns = ns - 100, .after_ns = ns + 100, .stamp = stamp_at(played, ns)};
}

static struct device_clock clock_of(const struct played_clock *played) {
	const struct device_stamp_clock stamps = {.mask = played->mask, .khz = played->khz};
	struct device_clock clock;

	device_clock_init(&clock, &stamps);
	return clock;
}

static uint64_t distance(uint64_t a, uint64_t b) {
	return a > b ? a - b : b - a;
}

static void stamps_are_translated_whatever_the_clock(void **state) {
	static const struct played_clock rows[] = {
		{UINT64_MAX, 1000000, 0, 0},		       // ticks of 1 ns
		{UINT64_MAX, 156250, 0, 12345},		       // ticks of 6.4 ns
		{UINT64_MAX, 1000000, 0, UINT64_MAX - 3 * MS}, // wraps in 3 ms
		{UINT32_MAX, 1000000, 0, UINT32_MAX - 40000},  // 32 bits wide, wraps at once
		{(UINT64_C(1) << 48) - 1, 156250, 80, 7},      // the crystal is off by 80 ppm
		{(UINT64_C(1) << 31) - 1, 1000000, -60, 99},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct device_clock clock = clock_of(&rows[n]);

		for (uint64_t ns = MS; ns < 400 * MS; ns += 2 * MS) {
			struct device_reading reading = reading_at(&rows[n], ns);

			device_clock_update(&clock, &reading);
			// Stamps from just before the reading until the next reading.
			for (int64_t off = -20000; off < (int64_t)MS; off += 33333) {
				uint64_t at = (uint64_t)((int64_t)ns + off);
				uint64_t said = device_clock_ns(&clock, stamp_at(&rows[n], at));
				// An error of 80 ppm over 1 ms is allowed until the rate is learnt.
				uint64_t allowed = ns < 60 * MS ? 100 : 20;

				assert_in_range(distance(said, at), 0, allowed);
			}
		}
		assert_in_range(clock.off_ns, 0, 200);
	}
}

static void a_clock_that_does_not_run_as_it_says_is_found_off(void **state) {
	static const struct {
		struct played_clock played;
		double runs; // true rate divided by the stated rate
	} rows[] = {
		{{UINT64_MAX, 1000000, 0, 5}, 0},	   // stands still
		{{UINT64_MAX, 1000000, 0, UINT64_MAX}, 2}, // twice as fast
		{{UINT64_MAX, 1000000, 0, MS * 1000}, -1}, // backwards
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct device_clock clock = clock_of(&rows[n].played);

		for (uint64_t ns = MS; ns < 200 * MS; ns += 10 * MS) {
			double ticks = rows[n].runs * (double)ns;
			const struct device_reading reading = {
				.before_ns = ns,
				.after_ns = ns + 100,
				.stamp = rows[n].played.begins + (uint64_t)(int64_t)ticks,
			};

			device_clock_update(&clock, &reading);
		}
		// The stamps are still translated with the stated rate.
		assert_true(fabs(clock.tick_ns - 1) < 1e-12);
		assert_true(clock.off_ns > 9 * MS);
	}
}

static void a_rate_is_kept_when_readings_begin_anew(void **state) {
	static const struct played_clock played = {UINT32_MAX, 1000000, 50, 1};
	struct device_clock clock = clock_of(&played);
	struct device_reading reading;
	uint64_t late = UINT64_C(100) * 1000 * MS; // 32 bits wrap many times in this time

	(void)state;
	for (uint64_t ns = MS; ns < 200 * MS; ns += 5 * MS) {
		reading = reading_at(&played, ns);
		device_clock_update(&clock, &reading);
	}
	device_clock_restart(&clock);
	assert_int_equal(device_clock_ns(&clock, 1), 0);
	reading = reading_at(&played, late);
	device_clock_update(&clock, &reading);
	assert_int_equal(clock.off_ns, 0);
	assert_in_range(
		distance(
			device_clock_ns(&clock, stamp_at(&played, late + 10 * MS)), late + 10 * MS
		),
		0, 20
	);
}

static struct device_time time_of(const struct played_clock *played, uint64_t now_ns) {
	struct device_time time = {.clock = clock_of(played), .answer_ns = UINT64_MAX};
	struct device_reading reading = reading_at(played, now_ns);

	device_clock_update(&time.clock, &reading);
	assert_int_equal(run_record_create(&time.device), 0);
	assert_int_equal(run_record_create(&time.host), 0);
	assert_int_equal(histogram_create(&histogram_shape_latency, &time.answers), 0);
	return time;
}

static void time_release(struct device_time *time) {
	run_record_destroy(time->device);
	run_record_destroy(time->host);
	histogram_destroy(time->answers);
}

static uint64_t only_sample(struct run_record *record, uint32_t place) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];

	assert_int_equal(run_record_blocks(record, blocks), 1);
	return blocks[0].samples[place];
}

static void both_parts_of_a_sample_make_up_all_of_it(void **state) {
	static const struct played_clock played = {UINT64_MAX, 1000000, 0, 0};
	static const struct {
		uint64_t start_ns, end_ns, stamp;
		uint64_t device_ns, host_ns;
		bool outside;
	} rows[] = {
		{MS, MS + 5000, MS + 3000, 3000, 2000, false},
		{MS, MS + 5000, MS, 0, 5000, false},
		// Before the start, but within the clock error.
		{MS, MS + 5000, MS - 1000, 0, 5000, false},
		{MS, MS + 5000, MS + 6000, 5000, 0, false},
		{MS, MS + 5000, MS - 5000, 0, 5000, true},  // before the submission
		{MS, MS + 5000, MS + 50000, 5000, 0, true}, // after the completion was seen
		{MS, MS + 5000, 0, 0, 5000, true},	    // no stamp
		{MS, MS + 5000, UINT64_MAX, 0, 5000, true},
		// In the far half of the counter's range.
		{MS, MS + 5000, UINT64_MAX / 2, 5000, 0, true},
		{MS, MS, MS, 0, 0, false},
	};
	struct device_time time = time_of(&played, MS);
	uint64_t outside = 0;

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(rows); n++) {
		device_time_record(&time, rows[n].start_ns, rows[n].end_ns, rows[n].stamp);
		outside += rows[n].outside;
		assert_int_equal(time.outside, outside);
		assert_int_equal(only_sample(time.device, n), rows[n].device_ns);
		assert_int_equal(only_sample(time.host, n), rows[n].host_ns);
	}
	time_release(&time);
}

static void an_answer_is_noted_once_when_nothing_waits(void **state) {
	static const struct played_clock played = {UINT64_MAX, 1000000, 0, 0};
	struct device_time time = time_of(&played, MS);
	struct histogram_summary all;

	(void)state;
	device_time_record_answer(&time);
	device_time_note_answer(&time, MS + 700, MS + 100);
	device_time_record_answer(&time);
	device_time_record_answer(&time);
	device_time_note_answer(
		&time, MS, MS + 5
	); // the stamp is later than the completion, by the difference of the clocks
	device_time_note_answer(&time, MS + 50, MS); // the next answer had already arrived
	device_time_record_answer(&time);
	histogram_summarize(time.answers, &all);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.max, 600);
	assert_int_equal(all.min, 0);
	time_release(&time);
}

UNIT_GROUP(lab_device_time) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps_are_translated_whatever_the_clock),
		cmocka_unit_test(a_clock_that_does_not_run_as_it_says_is_found_off),
		cmocka_unit_test(a_rate_is_kept_when_readings_begin_anew),
		cmocka_unit_test(both_parts_of_a_sample_make_up_all_of_it),
		cmocka_unit_test(an_answer_is_noted_once_when_nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
