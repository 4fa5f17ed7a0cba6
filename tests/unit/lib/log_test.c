// SPDX-License-Identifier: BSD-3-Clause
// Each test logs into a memory file, sets both clocks by hand, and compares the lines.
#include <lib/log.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAMP "2026-03-01T09:30:00.125Z "
#define THREAD_COUNT 4
#define THREAD_LINES 500

static uint64_t fake_monotonic_ns;
static int file;
static char text[(THREAD_COUNT + 1) * THREAD_LINES * 256];

static uint64_t monotonic_now(void) {
	return fake_monotonic_ns;
}

static uint64_t realtime_now(void) {
	return UINT64_C(1772357400125999999);
}

static int open_file(void **state) {
	struct log_sink sink = {
		.prefix = LOG_PREFIX_NONE,
		.monotonic_ns = monotonic_now,
		.realtime_ns = realtime_now,
	};

	(void)state;
	file = memfd_create("log", MFD_CLOEXEC);
	// A memory file has no lock on its position, unlike stderr redirected to a regular file.
	// Without O_APPEND, concurrent writers would overwrite each other.
	if (file < 0 || fcntl(file, F_SETFL, O_APPEND) != 0)
		return -1;
	fake_monotonic_ns = 5 * LOG_REFILL_NS;
	sink.fd = file;
	log_set_sink(&sink);
	log_set_level(LOG_LEVEL_INFO);
	return 0;
}

static int close_file(void **state) {
	(void)state;
	log_set_sink(NULL);
	return close(file);
}

// Return everything logged since the last call.
static const char *take_text(void) {
	struct stat status;
	off_t size;

	assert_int_equal(fstat(file, &status), 0);
	size = status.st_size;
	assert_in_range(size, 0, sizeof(text) - 1);
	assert_int_equal(pread(file, text, (size_t)size, 0), size);
	text[size] = '\0';
	assert_int_equal(ftruncate(file, 0), 0);
	return text;
}

static void use_sink(int fd, enum log_prefix prefix) {
	const struct log_sink sink = {fd, prefix, monotonic_now, realtime_now};

	log_set_sink(&sink);
}

static void line_is_time_level_event_and_fields(void **state) {
	(void)state;
	log_event(
		LOG_LEVEL_ERROR, "start_failed", log_str("part", "rcu"),
		log_errno("error", -ENOMEM), log_u64("max", UINT64_MAX), log_i64("min", INT64_MIN),
		log_bool("again", true)
	);
	assert_string_equal(
		take_text(),
		STAMP "error start_failed part=rcu error=ENOMEM max=18446744073709551615 "
		      "min=-9223372036854775808 again=true\n"
	);
	log_event(LOG_LEVEL_INFO, "ready");
	assert_string_equal(take_text(), STAMP "info ready\n");
}

static void errno_is_shown_by_name_whatever_its_sign(void **state) {
	(void)state;
	log_event(
		LOG_LEVEL_WARN, "x", log_errno("a", ECONNREFUSED), log_errno("b", -ECONNREFUSED),
		log_errno("c", -99999), log_errno("d", INT_MIN), log_errno("e", 0)
	);
	assert_string_equal(
		take_text(), STAMP "warn x a=ECONNREFUSED b=ECONNREFUSED c=99999 d=2147483648 e=0\n"
	);
}

static void hostile_value_stays_inside_its_quotes_and_its_line(void **state) {
	static const struct {
		const char *value;
		const char *shown;
	} cases[] = {
		{"", "\"\""},
		{"bare-1.2:3/[x]", "bare-1.2:3/[x]"},
		{"Gr\xc3\xbc\xc3\x9f"
		 "e",
		 "Gr\xc3\xbc\xc3\x9f"
		 "e"},
		{"two words", "\"two words\""},
		{"a=b", "\"a=b\""},
		{"x\n2026 error forged=1", "\"x\\n2026 error forged=1\""},
		{"\" level=error", "\"\\\" level=error\""},
		{"\\", "\"\\\\\""},
		{"\xff", "\"\\xff\""},
		{"\x1b[2J", "\"\\x1b[2J\""},
		{NULL, "(null)"},
	};
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		log_event(LOG_LEVEL_INFO, "x", log_str("v", cases[i].value));
		snprintf(expected, sizeof(expected), STAMP "info x v=%s\n", cases[i].shown);
		assert_string_equal(take_text(), expected);
	}
}

static void bytes_with_an_embedded_nul_are_shown_whole(void **state) {
	(void)state;
	log_event(LOG_LEVEL_INFO, "x", log_bytes("v", "a\0b", 3));
	assert_string_equal(take_text(), STAMP "info x v=\"a\\x00b\"\n");
}

static void line_too_long_is_cut_visibly_at_every_length(void **state) {
	char value[2 * LOG_LINE_BYTES_MAX + 1];
	const char *line;
	size_t size;

	(void)state;
	for (size_t length = LOG_LINE_BYTES_MAX - 100; length < sizeof(value); length++) {
		memset(value, length % 2 == 0 ? 'a' : '\n', length);
		value[length] = '\0';
		fake_monotonic_ns += LOG_REFILL_NS;
		log_event(
			LOG_LEVEL_INFO, "x", log_str("v", value), log_u64("count", 1234567),
			log_str("last", "word")
		);
		line = take_text();
		size = strlen(line);
		assert_in_range(size, LOG_LINE_BYTES_MAX / 2, LOG_LINE_BYTES_MAX);
		assert_ptr_equal(strchr(line, '\n'), line + size - 1);
		assert_null(strstr(line, "= "));
		if (strstr(line, "last=word\n") == NULL)
			assert_string_equal(line + size - 13, " truncated=1\n");
	}
}

static int evaluations;

static uint64_t count_evaluation(void) {
	evaluations++;
	return 1;
}

static void disabled_level_evaluates_nothing_and_can_be_turned_on(void **state) {
	(void)state;
	evaluations = 0;
	for (int turn = 0; turn < 2; turn++) {
		log_event(LOG_LEVEL_DEBUG, "x", log_u64("v", count_evaluation()));
		assert_int_equal(evaluations, turn);
		log_set_level(LOG_LEVEL_DEBUG);
	}
	assert_string_equal(take_text(), STAMP "debug x v=1\n");
	log_set_level(LOG_LEVEL_ERROR);
	assert_false(log_enabled(LOG_LEVEL_WARN));
	assert_true(log_enabled(LOG_LEVEL_ERROR));
}

static void log_from_one_site(void) {
	log_event(LOG_LEVEL_WARN, "busy");
}

static size_t count_lines(const char *lines) {
	size_t count = 0;

	for (; *lines != '\0'; lines++)
		count += *lines == '\n';
	return count;
}

static void site_logs_a_burst_then_one_line_per_interval_and_counts_the_rest(void **state) {
	(void)state;
	for (int i = 0; i < LOG_BURST_MAX + 7; i++)
		log_from_one_site();
	assert_int_equal(count_lines(take_text()), LOG_BURST_MAX);
	log_event(LOG_LEVEL_WARN, "another_site_is_not_held_back");
	assert_int_equal(count_lines(take_text()), 1);

	fake_monotonic_ns += LOG_REFILL_NS - 1;
	log_from_one_site();
	assert_string_equal(take_text(), "");
	fake_monotonic_ns += 1;
	log_from_one_site();
	log_from_one_site();
	assert_string_equal(take_text(), STAMP "warn busy suppressed=8\n");

	fake_monotonic_ns += 1000 * LOG_REFILL_NS;
	for (int i = 0; i < LOG_BURST_MAX + 7; i++)
		log_from_one_site();
	assert_int_equal(count_lines(take_text()), LOG_BURST_MAX);
}

static void errno_is_kept_by_a_line_that_is_lost_and_the_loss_counted(void **state) {
	uint64_t lost_before = log_lost_count();

	(void)state;
	use_sink(-1, LOG_PREFIX_NONE);
	errno = EPROTO;
	log_event(LOG_LEVEL_ERROR, "x");
	assert_int_equal(errno, EPROTO);
	assert_int_equal(log_lost_count() - lost_before, 1);
}

static void limit_file(rlim_t bytes) {
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// A full disk stores the beginning of a line and then nothing. The first line after that must begin
// on its own line.
static void line_after_one_that_was_cut_begins_anew(void **state) {
	uint64_t lost_before = log_lost_count();

	(void)state;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	limit_file(10);
	log_event(LOG_LEVEL_INFO, "cut");
	log_event(LOG_LEVEL_INFO, "lost");
	limit_file(11); // room for the newline, but for no text after it
	log_event(LOG_LEVEL_INFO, "lost");
	limit_file(RLIM_INFINITY);
	assert_int_equal(log_lost_count() - lost_before, 3);
	log_event(LOG_LEVEL_INFO, "whole");
	log_event(LOG_LEVEL_INFO, "next");
	assert_string_equal(take_text(), "2026-03-01\n" STAMP "info whole\n" STAMP "info next\n");
}

static void line_is_lost_where_nobody_reads_and_the_writer_goes_on(void **state) {
	uint64_t lost_before = log_lost_count();
	char drained[65536];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	use_sink(ends[1], LOG_PREFIX_NONE);
	fake_monotonic_ns = 0;
	for (unsigned n = 0; n < 3000; n++) {
		fake_monotonic_ns += LOG_REFILL_NS;
		log_event(LOG_LEVEL_INFO, "said", log_str("text", "to nobody"));
	}
	assert_in_range(log_lost_count(), lost_before + 1, lost_before + 2999);
	assert_true(read(ends[0], drained, sizeof(drained)) > 0);
	lost_before = log_lost_count();
	fake_monotonic_ns += LOG_REFILL_NS;
	log_event(LOG_LEVEL_INFO, "said", log_str("text", "to somebody"));
	assert_int_equal(log_lost_count(), lost_before);
	close(ends[0]);
	close(ends[1]);
}

static void priority_of_journald_precedes_each_level(void **state) {
	(void)state;
	use_sink(file, LOG_PREFIX_PRIORITY);
	log_set_level(LOG_LEVEL_DEBUG);
	log_event(LOG_LEVEL_ERROR, "x");
	log_event(LOG_LEVEL_WARN, "x");
	log_event(LOG_LEVEL_INFO, "x");
	log_event(LOG_LEVEL_DEBUG, "x");
	assert_string_equal(
		take_text(),
		"<3>" STAMP "error x\n<4>" STAMP "warn x\n<6>" STAMP "info x\n<7>" STAMP "debug x\n"
	);
}

static void prefix_is_written_to_the_stream_of_the_journal_alone(void **state) {
	char name[64];
	struct stat status;

	(void)state;
	assert_int_equal(fstat(file, &status), 0);
	snprintf(
		name, sizeof(name), "%llu:%llu", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino
	);
	assert_int_equal(log_choose_prefix(file, NULL), LOG_PREFIX_NONE);
	assert_int_equal(log_choose_prefix(file, name), LOG_PREFIX_PRIORITY);
	assert_int_equal(log_choose_prefix(file, "1:1"), LOG_PREFIX_NONE);
	assert_int_equal(log_choose_prefix(file, "junk"), LOG_PREFIX_NONE);
	name[strlen(name) + 1] = '\0';
	name[strlen(name)] = 'x';
	assert_int_equal(log_choose_prefix(file, name), LOG_PREFIX_NONE);
}

static void level_names_round_trip_and_others_leave_the_output_alone(void **state) {
	static const char *const bad[] = {"", "Error", "warning", "info ", "4"};
	enum log_level level = LOG_LEVEL_WARN;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(log_level_parse(bad[i], &level), -EINVAL);
		assert_int_equal(level, LOG_LEVEL_WARN);
	}
	for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
		assert_int_equal(log_level_parse(log_level_name((enum log_level)i), &level), 0);
		assert_int_equal(level, i);
	}
}

static void *log_many(void *argument) {
	const char *name = argument;

	// Each line needs its own site: with one site the rate limit would hold back all but a
	// burst.
	for (uint64_t i = 0; i < THREAD_LINES; i++) {
		struct log_site site = {0};

		log_write(
			&site, LOG_LEVEL_INFO, "line",
			(const struct log_field[]
			){log_str("thread", name), log_u64("i", i), {.type = LOG_FIELD_END}}
		);
	}
	return NULL;
}

static void threads_write_whole_lines_in_their_own_order(void **state) {
	static char names[THREAD_COUNT][2] = {"0", "1", "2", "3"};
	unsigned long long next[THREAD_COUNT] = {0};
	pthread_t threads[THREAD_COUNT];
	unsigned thread;
	char *rest = NULL;
	unsigned long long i;

	(void)state;
	for (size_t t = 0; t < THREAD_COUNT; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, log_many, names[t]), 0);
	for (size_t t = 0; t < THREAD_COUNT; t++)
		assert_int_equal(pthread_join(threads[t], NULL), 0);
	take_text();
	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest)) {
		assert_int_equal(sscanf(line, STAMP "info line thread=%u i=%llu", &thread, &i), 2);
		assert_in_range(thread, 0, THREAD_COUNT - 1);
		assert_int_equal(i, next[thread]++);
	}
	for (size_t t = 0; t < THREAD_COUNT; t++)
		assert_int_equal(next[t], THREAD_LINES);
}

#define LOG_TEST(function) cmocka_unit_test_setup_teardown(function, open_file, close_file)

UNIT_GROUP(log) {
	const struct CMUnitTest tests[] = {
		LOG_TEST(line_is_time_level_event_and_fields),
		LOG_TEST(errno_is_shown_by_name_whatever_its_sign),
		LOG_TEST(hostile_value_stays_inside_its_quotes_and_its_line),
		LOG_TEST(bytes_with_an_embedded_nul_are_shown_whole),
		LOG_TEST(line_too_long_is_cut_visibly_at_every_length),
		LOG_TEST(disabled_level_evaluates_nothing_and_can_be_turned_on),
		LOG_TEST(site_logs_a_burst_then_one_line_per_interval_and_counts_the_rest),
		LOG_TEST(errno_is_kept_by_a_line_that_is_lost_and_the_loss_counted),
		LOG_TEST(line_after_one_that_was_cut_begins_anew),
		LOG_TEST(line_is_lost_where_nobody_reads_and_the_writer_goes_on),
		LOG_TEST(priority_of_journald_precedes_each_level),
		LOG_TEST(prefix_is_written_to_the_stream_of_the_journal_alone),
		LOG_TEST(level_names_round_trip_and_others_leave_the_output_alone),
		LOG_TEST(threads_write_whole_lines_in_their_own_order),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
