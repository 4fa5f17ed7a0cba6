// SPDX-License-Identifier: BSD-3-Clause
// Tests of generated samples, on a thread that takes page faults and gives up the processor.
#include "run/outlier.h"

#include <support/cmocka.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define PAGES 64

static struct outlier_watch watch;
static struct outlier outliers[OUTLIERS_MAX];

static void open_watch(uint64_t bound_ns) {
	outlier_watch_open(&watch, gettid(), 0);
	outlier_watch_begin(&watch, bound_ns);
}

static void touch_new_pages(void) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);

	assert_true(memory != MAP_FAILED);
	madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t n = 0; n < PAGES; n++)
		memory[n * page] = 1;
	munmap(memory, PAGES * page);
}

static void give_the_processor_up(void) {
	const struct timespec little = {.tv_nsec = 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL);
}

// Report sample `sample`, which ended at `sample` + 1 ms.
static void look(uint64_t sample, uint64_t took_ns) {
	outlier_watch_sample(&watch, sample, took_ns, (sample + 1) * MS, (sample + 1) * MS);
}

static void the_largest_are_kept_in_their_order(void **state) {
	uint64_t looked_at = 0;

	(void)state;
	open_watch(100);
	for (uint64_t n = 0; n < 1000; n++) {
		uint64_t took_ns = 100 + n * 7919 % 1000;

		if (took_ns >= watch.bound_ns) {
			look(n, took_ns);
			looked_at++;
		}
	}
	assert_true(looked_at < 200);
	assert_int_equal(outlier_watch_sorted(&watch, outliers), OUTLIERS_MAX);
	for (uint32_t n = 0; n < OUTLIERS_MAX; n++)
		assert_int_equal(outliers[n].took_ns, 1099 - n);
	outlier_watch_begin(&watch, 5);
	assert_int_equal(outlier_watch_sorted(&watch, outliers), 0);
	outlier_watch_close(&watch);
}

static void what_happened_since_the_last_look_is_told_and_no_more(void **state) {
	const uint64_t *evidence = outliers[0].evidence;

	(void)state;
	open_watch(MS);
	look(0, 10);
	assert_int_equal(watch.due_ns, 11 * MS); // ten milliseconds after its end
	touch_new_pages();
	give_the_processor_up();
	look(1, 2 * MS);
	assert_int_equal(outlier_watch_sorted(&watch, outliers), 1);
	assert_int_equal(outliers[0].sample, 1);
	assert_int_equal(outliers[0].within_ns, MS);
	assert_true(evidence[OUTLIER_MINOR] >= PAGES && evidence[OUTLIER_MINOR] < 4 * PAGES);
	assert_true(evidence[OUTLIER_VOLUNTARY] >= 1);
	// Events before an intermediate look must not be attributed to the next sample.
	touch_new_pages();
	look(2, 10);
	look(3, 3 * MS);
	assert_int_equal(outlier_watch_sorted(&watch, outliers), 2);
	assert_int_equal(outliers[0].sample, 3);
	assert_true(evidence[OUTLIER_MINOR] < PAGES);
	outlier_watch_close(&watch);
}

// Write lines as those of /proc/stat. The hypervisor stole `ticks` from each of `cpus` processors.
static void write_stolen_ticks(int fd, uint32_t cpus, uint64_t ticks) {
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	dprintf(fd, "cpu  1 0 1 1 1 0 1 %" PRIu64 " 0 0\n", cpus * ticks);
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		dprintf(fd, "cpu%u 1 0 1 1 1 0 1 %" PRIu64 " 0 0\n", cpu, ticks);
	dprintf(fd, "intr 100 1 2 3\n");
}

// The clock of look() advances by 48 ms between two samples that take 48 ms each.
static void stolen_time_is_of_one_processor_and_at_most_the_time_that_passed(void **state) {
	static const struct {
		uint64_t ticks, stolen_ms; // 100 ticks per second
	} rows[] = {{0, 0}, {2, 20}, {4, 40}, {6, 48}};
	const uint64_t *evidence = outliers[0].evidence;
	int cpu = sched_getcpu();
	cpu_set_t old, one;

	(void)state;
	if (sysconf(_SC_CLK_TCK) != 100)
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		open_watch(48 * MS);
		if (watch.stat_fd >= 0)
			close(watch.stat_fd);
		watch.stat_fd = memfd_create("stat", MFD_CLOEXEC);
		write_stolen_ticks(watch.stat_fd, (uint32_t)cpu + 60, 1000);
		look(0, 48 * MS);
		write_stolen_ticks(watch.stat_fd, (uint32_t)cpu + 60, 1000 + rows[n].ticks);
		look(48, 49 * MS);
		assert_int_equal(outlier_watch_sorted(&watch, outliers), 2);
		assert_int_equal(evidence[OUTLIER_STEAL_NS], rows[n].stolen_ms * MS);
		assert_int_equal(evidence[OUTLIER_STEAL_WITHIN_NS], 48 * MS);
		outlier_watch_close(&watch);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static void nothing_is_known_of_the_first_sample(void **state) {
	(void)state;
	open_watch(0);
	look(0, MS);
	assert_int_equal(outlier_watch_sorted(&watch, outliers), 1);
	assert_int_equal(outliers[0].within_ns, 0);
	for (int kind = 0; kind < OUTLIER_KHZ; kind++)
		assert_true(outliers[0].evidence[kind] == OUTLIER_UNKNOWN);
	outlier_watch_close(&watch);
}

static void what_weighs_most_is_said(void **state) {
	static const struct {
		enum outlier_evidence kind;
		uint64_t value;
		const char *said;
		uint64_t preempted; // 0: unknown
	} rows[] = {
		{OUTLIER_WAITED_NS, 9 * MS, "waited 9.0 ms for its processor", 0},
		{OUTLIER_WAITED_NS, 9 * MS, "for its processor, preempted 1 time", 1},
		{OUTLIER_WAITED_NS, 9 * MS, "for its processor, preempted 3 times", 3},
		{OUTLIER_STEAL_NS, 10 * MS, "the hypervisor stole 10 ms of 50 ms", 0},
		{OUTLIER_MAJOR, 2, "2 page faults from disk", 0},
		{OUTLIER_MIGRATED, 1, "moved to another processor", 0},
		{OUTLIER_INVOLUNTARY, 3,
		 "3 involuntary and 0 voluntary context switches within 12 ms", 0},
		{OUTLIER_MINOR, 5, "5 page faults within 12 ms", 0},
		{OUTLIER_KHZ, 800000, "no cause in the kernel's counters", 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct outlier outlier = {.took_ns = 10 * MS, .within_ns = 12 * MS};
		char text[OUTLIER_TEXT_BYTES];

		for (int kind = 0; kind < OUTLIER_EVIDENCE_COUNT; kind++)
			outlier.evidence[kind] = OUTLIER_UNKNOWN;
		if (rows[n].preempted > 0)
			outlier.evidence[OUTLIER_INVOLUNTARY] = rows[n].preempted;
		outlier.evidence[rows[n].kind] = rows[n].value;
		outlier.evidence[OUTLIER_STEAL_WITHIN_NS] = 50 * MS;
		outlier_format(&outlier, text);
		if (strstr(text, rows[n].said) == NULL)
			fail_msg("'%s' is not '%s'", text, rows[n].said);
	}
}

UNIT_GROUP(lab_outlier) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_are_kept_in_their_order),
		cmocka_unit_test(what_happened_since_the_last_look_is_told_and_no_more),
		cmocka_unit_test(stolen_time_is_of_one_processor_and_at_most_the_time_that_passed),
		cmocka_unit_test(nothing_is_known_of_the_first_sample),
		cmocka_unit_test(what_weighs_most_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
