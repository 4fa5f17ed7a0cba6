// SPDX-License-Identifier: BSD-3-Clause
// Reads of a page in GPU memory: which results are evidence on the GPU, and which on the path.
#include "fabric/gpu_path.h"

#include <support/cmocka.h>

#include <string.h>

#define SEC RAS_NS_PER_SEC
#define US UINT64_C(1000)
#define WORD 77

static struct gpu_path gpu;
static uint64_t now_ns;

static int begin(void **state) {
	(void)state;
	memset(&gpu, 0, sizeof(gpu));
	now_ns = 1000 * SEC;
	gpu_path_set_page(&gpu, now_ns, 3, WORD);
	return 0;
}

static struct fabric_gpu_path look(void) {
	struct fabric_gpu_path seen;

	gpu_path_describe(&gpu, &seen);
	return seen;
}

static void read_it(enum gpu_read read) {
	now_ns += SEC;
	assert_false(gpu_path_add_read(&gpu, now_ns, read, false, 10 * US));
}

static void host(bool answered) {
	now_ns += SEC / 10;
	gpu_path_add_pulse_read(&gpu, now_ns, answered);
}

static void windows(uint32_t count, uint64_t latency_ns, uint64_t host_permille) {
	for (uint32_t n = 0; n < count * GPU_PATH_WINDOW; n++) {
		now_ns += 8 * SEC;
		if (gpu_path_add_read(&gpu, now_ns, GPU_READ_CORRECT, true, latency_ns))
			gpu_path_judge(&gpu, now_ns, host_permille);
	}
}

static void it_is_unseen_until_it_was_read_and_good_at_once(void **state) {
	(void)state;
	assert_true(look().shown);
	assert_int_equal(look().ordinal, 3);
	assert_int_equal(look().seen, FABRIC_GPU_UNSEEN);
	assert_int_equal(look().median_ns, 0);
	assert_true(gpu_path_is_due(&gpu, now_ns));
	read_it(GPU_READ_CORRECT);
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
	assert_int_equal(look().since_ns, now_ns);
	assert_int_equal(look().probes, 1);
}

static void two_reads_in_a_row_that_fail_beside_a_good_pulse_are_the_gpus(void **state) {
	static const struct {
		enum gpu_read read;
		enum fabric_gpu_seen seen;
	} rows[] = {
		{GPU_READ_SILENT, FABRIC_GPU_SILENT},
		{GPU_READ_REFUSED, FABRIC_GPU_REFUSED},
		{GPU_READ_WRONG, FABRIC_GPU_WRONG},
	};

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		begin(state);
		read_it(GPU_READ_CORRECT);
		read_it(rows[n].read);
		host(true);
		assert_int_equal(look().seen, FABRIC_GPU_GOOD);
		read_it(GPU_READ_CORRECT);
		read_it(rows[n].read);
		host(true);
		assert_int_equal(look().seen, FABRIC_GPU_GOOD);
		read_it(rows[n].read);
		host(true);
		assert_int_equal(look().seen, rows[n].seen);
		assert_int_equal(look().silent + look().refused + look().wrong, 3);
	}
}

static void what_the_pulse_shows_too_is_the_paths(void **state) {
	(void)state;
	read_it(GPU_READ_CORRECT);
	for (uint32_t n = 0; n < 10; n++) {
		read_it(GPU_READ_SILENT);
		// Not before the state of the host path is known.
		assert_false(gpu_path_is_due(&gpu, now_ns + 1000 * SEC));
		for (uint32_t lost = 0; lost < 60; lost++)
			host(false);
		assert_false(gpu_path_is_due(&gpu, now_ns));
		now_ns += 6 * SEC;
		assert_true(gpu_path_is_due(&gpu, now_ns));
	}
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
	assert_int_equal(look().silent, 0);
	assert_int_equal(look().probes, 11);
}

static void reads_that_were_held_up_behind_it_do_not_excuse_it(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		read_it(GPU_READ_SILENT);
		host(false);
		host(false);
		host(true); // over a new pair
	}
	assert_int_equal(look().seen, FABRIC_GPU_SILENT);
}

static void who_fails_is_read_again_after_pauses_that_grow_to_five_minutes(void **state) {
	uint64_t before_ns = 0;

	(void)state;
	for (uint32_t n = 0; n < 12; n++) {
		uint64_t pause_ns = 0;

		read_it(GPU_READ_REFUSED);
		host(true);
		while (!gpu_path_is_due(&gpu, now_ns + pause_ns))
			pause_ns += SEC;
		assert_in_range(pause_ns, 5 * SEC, 300 * SEC);
		assert_true(pause_ns >= before_ns);
		before_ns = pause_ns;
	}
	assert_int_equal(before_ns, 300 * SEC);
	read_it(GPU_READ_CORRECT);
	assert_true(gpu_path_is_due(&gpu, now_ns));
}

static void it_is_good_again_after_three_right_ones(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 2; n++)
		read_it(GPU_READ_WRONG);
	assert_int_equal(look().seen, FABRIC_GPU_WRONG);
	read_it(GPU_READ_CORRECT);
	read_it(GPU_READ_CORRECT);
	assert_int_equal(look().seen, FABRIC_GPU_WRONG);
	read_it(GPU_READ_CORRECT);
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
}

static void two_windows_at_more_than_twice_the_usual_are_slow_unless_the_pulse_is_too(void **state
) {
	(void)state;
	windows(3, 10 * US, 1000);
	assert_int_equal(look().usual_ns, 10 * US);
	assert_int_equal(look().median_ns, 10 * US);
	windows(1, 25 * US, 1000);
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
	windows(1, 25 * US, 1000);
	assert_int_equal(look().seen, FABRIC_GPU_SLOW);
	assert_int_equal(look().median_ns, 25 * US);
	windows(1, 12 * US, 1000);
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
	// The path itself takes three times its usual time.
	windows(4, 35 * US, 3000);
	assert_int_equal(look().seen, FABRIC_GPU_GOOD);
	windows(2, 65 * US, 3000);
	assert_int_equal(look().seen, FABRIC_GPU_SLOW);
}

static void the_usual_rises_slowly_and_falls_at_once(void **state) {
	uint64_t begun_ns;

	(void)state;
	windows(2, 10 * US, 1000);
	begun_ns = now_ns;
	windows(40, 15 * US, 1000);
	assert_in_range(now_ns - begun_ns, 3600 * SEC, 4000 * SEC);
	assert_in_range(look().usual_ns, 10900, 11400);
	windows(1, 8 * US, 1000);
	assert_int_equal(look().usual_ns, 8 * US);
}

static void another_page_is_unseen_and_only_that_of_the_same_gpu_keeps_its_times(void **state) {
	(void)state;
	windows(2, 10 * US, 1000);
	for (uint32_t n = 0; n < 2; n++)
		read_it(GPU_READ_WRONG);
	gpu_path_set_page(&gpu, now_ns, 3, WORD);
	assert_int_equal(look().seen, FABRIC_GPU_WRONG);
	gpu_path_set_page(&gpu, now_ns, 3, WORD + 1);
	assert_int_equal(look().seen, FABRIC_GPU_UNSEEN);
	assert_int_equal(look().usual_ns, 10 * US);
	assert_true(gpu_path_is_due(&gpu, now_ns));
	gpu_path_set_page(&gpu, now_ns, 4, WORD + 2);
	assert_int_equal(look().ordinal, 4);
	assert_int_equal(look().usual_ns, 0);
	assert_int_equal(look().probes, 0);
}

#define FRESH(name) cmocka_unit_test_setup(name, begin)

UNIT_GROUP(gpu_path) {
	static const struct CMUnitTest tests[] = {
		FRESH(it_is_unseen_until_it_was_read_and_good_at_once),
		FRESH(two_reads_in_a_row_that_fail_beside_a_good_pulse_are_the_gpus),
		FRESH(what_the_pulse_shows_too_is_the_paths),
		FRESH(reads_that_were_held_up_behind_it_do_not_excuse_it),
		FRESH(who_fails_is_read_again_after_pauses_that_grow_to_five_minutes),
		FRESH(it_is_good_again_after_three_right_ones),
		FRESH(two_windows_at_more_than_twice_the_usual_are_slow_unless_the_pulse_is_too),
		FRESH(the_usual_rises_slowly_and_falls_at_once),
		FRESH(another_page_is_unseen_and_only_that_of_the_same_gpu_keeps_its_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
