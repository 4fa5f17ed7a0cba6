// SPDX-License-Identifier: BSD-3-Clause
#include "overlay/state_file.h"

#include <control/state.h>
#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <support/tree.h>
#include <verdict/verdict.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOURNAL_BYTES 65536

static char directory[PATH_MAX];
static char detail[STATE_DETAIL_BYTES];

static int make_directory(void **state) {
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/tocsin-state-XXXXXX");
	log_set_level(LOG_LEVEL_ERROR);
	return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state) {
	(void)state;
	return tree_remove(directory);
}

static struct state *open_state(void) {
	struct state *opened = NULL;

	if (state_open(directory, JOURNAL_BYTES, detail, &opened) != 0)
		fail_msg("%s", detail);
	return opened;
}

static void write_file(const char *name, const char *text) {
	char path[PATH_MAX + 32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static struct state_event event_of(uint64_t peer, const char *name) {
	struct state_event event = {
		.realtime_ns = 1795274228633000000, // lines have milliseconds
		.event =
			{
				.kind = RAS_EVENT_DEAD,
				.cause = RAS_CAUSE_GONE,
				.peer = peer,
				.incarnation = 65537,
				.observer_count = 2,
				.observers = {UINT64_MAX, 7},
				.value = 12,
				.hops = 3,
			},
	};

	snprintf(event.event.name, sizeof(event.event.name), "%s", name);
	return event;
}

static void the_words_of_an_event_survive_whatever_they_are(void **state) {
	static const char *const texts[] = {"", "the NIC blinks", "\"\\\t\x01 {\"a\":1} \xc3\xa4"};
	const struct state_event *earlier;
	struct state *opened = open_state();
	struct state_event event;

	(void)state;
	for (size_t n = 0; n < 3; n++) {
		event = event_of(5, "n5");
		snprintf(event.text, sizeof(event.text), "%s", texts[n]);
		state_journal(opened, &event);
	}
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_earlier(opened, &earlier), 3);
	for (size_t n = 0; n < 3; n++)
		assert_string_equal(earlier[n].text, texts[n]);
	state_close(opened);
}

static void a_line_whose_words_are_too_long_is_no_line(void **state) {
	char line[STATE_LINE_BYTES_MAX], words[STATE_TEXT_BYTES + 1] = "";
	struct state_event event;

	(void)state;
	memset(words, 'x', STATE_TEXT_BYTES);
	snprintf(
		line, sizeof(line),
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"gone\",\"peer\":\"0000000000000001\","
		"\"name\":\"n\",\"incarnation\":1,\"value\":0,\"hops\":0,\"observers\":[],"
		"\"text\":\"%s\"}",
		words
	);
	assert_int_equal(state_line_parse(line, strlen(line), &event), -EBADMSG);
}

static void a_line_has_the_names_of_the_answer_to_events(void **state) {
	struct state_event event = event_of(5, "n5");
	char line[STATE_LINE_BYTES_MAX];
	int size = state_line_format(&event, line, sizeof(line));

	(void)state;
	assert_true(size > 0);
	line[size - 1] = '\0';
	assert_string_equal(
		line, "{\"time\":\"2026-11-21T15:17:08.633Z\",\"event\":\"DEAD\",\"node\":\"n5\","
		      "\"node_id\":\"0000000000000005\",\"cause\":\"gone\",\"start\":1,"
		      "\"refutations\":1,\"value\":12,\"hops\":3,"
		      "\"observer_ids\":[\"ffffffffffffffff\",\"0000000000000007\"]}"
	);
}

// Earlier versions wrote other names.
static void a_line_of_an_older_version_is_read(void **state) {
	static const char line[] =
		"{\"time_ns\":1795274228633157520,\"event\":\"DEAD\",\"cause\":\"gone\",\"peer\":"
		"\"0000000000000001\",\"name\":\"n\",\"incarnation\":65537,\"value\":9,\"hops\":2,"
		"\"observers\":[\"0000000000000007\"]}";
	struct state_event event;

	(void)state;
	assert_int_equal(state_line_parse(line, sizeof(line) - 1, &event), 0);
	assert_int_equal(event.realtime_ns, 1795274228633157520);
	assert_int_equal(event.event.kind, RAS_EVENT_DEAD);
	assert_int_equal(event.event.incarnation, 65537);
	assert_int_equal(event.event.peer, 1);
	assert_int_equal(event.event.observers[0], 7);
	assert_string_equal(event.event.name, "n");
}

// Regression: after an upgrade `tocsin why --at` called a fabric-down node device-stuck.
static void a_verdict_of_an_older_version_keeps_its_name(void **state) {
	static const struct {
		int older;
		enum verdict verdict;
	} rows[] = {
		{1, VERDICT_HEALTHY},
		{2, VERDICT_CHECK_WARNING},
		{12, VERDICT_FABRIC_DOWN},
		{13, VERDICT_NODE_DOWN},
	};
	struct state_event event;
	char line[256];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		snprintf(
			line, sizeof(line),
			"{\"time_ns\":1,\"event\":\"VERDICT\",\"cause\":\"none\",\"peer\":"
			"\"0000000000000001\",\"name\":\"n\",\"incarnation\":1,\"value\":%d,"
			"\"hops\":0,\"observers\":[]}",
			rows[n].older
		);
		assert_int_equal(state_line_parse(line, strlen(line), &event), 0);
		assert_int_equal(event.event.value, rows[n].verdict);
	}
}

// Journal and history store these numbers. A new verdict needs a conversion of older numbers.
static void stored_numbers_of_verdicts_are_those_of_this_version(void **state) {
	(void)state;
	assert_int_equal(VERDICT_HEALTHY, 1);
	assert_int_equal(VERDICT_NODE_BUSY, 2);
	assert_int_equal(VERDICT_UNKNOWN, 7);
	assert_int_equal(VERDICT_NODE_DOWN, 14);
	assert_int_equal(VERDICT_COUNT, 15);
}

static void a_cause_of_a_newer_version_is_kept_as_unknown(void **state) {
	static const char line[] =
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"melted\",\"peer\":"
		"\"0000000000000001\",\"name\":\"n\",\"incarnation\":1,\"value\":0,\"hops\":0,"
		"\"observers\":[]}";
	struct state_event event;

	(void)state;
	assert_int_equal(state_line_parse(line, sizeof(line) - 1, &event), 0);
	assert_string_equal(ras_cause_name(event.event.cause), "unknown");
}

static void a_first_start_is_not_known_and_the_next_ones_count(void **state) {
	struct state *opened = open_state();

	(void)state;
	assert_int_equal(state_start(opened), 0);
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_start(opened), 2);
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_start(opened), 3);
	state_close(opened);
}

static void a_start_that_the_cluster_taught_is_kept(void **state) {
	struct state *opened = open_state();

	(void)state;
	state_save_start(opened, 41);
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_start(opened), 42);
	state_close(opened);
}

static void a_counter_that_is_no_number_is_learnt_at_the_join(void **state) {
	static const char *const texts[] = {
		"",
		"\n",
		"x\n",
		"-1\n",
		"0\n",
		"99999999999999999999\n",
		"281474976710655\n",
		"1 2\n",
		"12345678901234567890123456789012345678901234567890\n",
	};

	(void)state;
	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		struct state *opened;

		write_file("start", texts[n]);
		opened = open_state();
		assert_int_equal(state_start(opened), 0);
		state_close(opened);
	}
}

static void a_directory_that_another_agent_holds_is_refused_with_its_pid(void **state) {
	struct state *holder = open_state();
	struct state *second = NULL;
	char pid[32];

	(void)state;
	assert_int_equal(state_open(directory, JOURNAL_BYTES, detail, &second), -EBUSY);
	assert_null(second);
	snprintf(pid, sizeof(pid), "process %d", getpid());
	assert_non_null(strstr(detail, pid));
	assert_non_null(strstr(detail, directory));
	state_close(holder);
}

static void a_directory_whose_parent_is_missing_is_an_error_with_its_path(void **state) {
	struct state *opened = NULL;

	(void)state;
	assert_int_equal(
		state_open("/tmp/tocsin-state-none/x", JOURNAL_BYTES, detail, &opened), -ENOENT
	);
	assert_non_null(strstr(detail, "/tmp/tocsin-state-none/x"));
	assert_null(opened);
}

static void events_come_back_after_a_restart_as_they_were(void **state) {
	struct state_event first = event_of(1, "node-1");
	struct state_event second = event_of(UINT64_MAX, "quote\"back\\slash");
	const struct state_event *earlier;
	struct state *opened = open_state();

	(void)state;
	assert_int_equal(state_earlier(opened, &earlier), 0);
	state_journal(opened, &first);
	state_journal(opened, &second);
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_earlier(opened, &earlier), 2);
	assert_memory_equal(&earlier[0], &first, sizeof(first));
	assert_memory_equal(&earlier[1], &second, sizeof(second));
	state_close(opened);
}

static void keep_paths(struct state *opened, const char *text) {
	char *own = strdup(text);

	assert_non_null(own);
	state_save_text(opened, STATE_PATHS, own);
}

static void what_was_kept_of_paths_is_there_once_after_a_restart(void **state) {
	struct state *opened = open_state();
	char *text = NULL;

	(void)state;
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -ENOENT);
	keep_paths(opened, "one\n");
	keep_paths(opened, "two\n");
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), 0);
	assert_string_equal(text, "two\n");
	free(text);
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -ENOENT);
	state_close(opened);
	opened = open_state(); // the text is still there
	state_close(opened);
}

static void texts_are_kept_beside_each_other(void **state) {
	struct state *opened = open_state();
	char *text = NULL;

	(void)state;
	keep_paths(opened, "paths\n");
	state_save_text(opened, STATE_MEMBERS, strdup("members\n"));
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_MEMBERS, &text), 0);
	assert_string_equal(text, "members\n");
	free(text);
	assert_int_equal(state_read_text(opened, STATE_MEMBERS, &text), -ENOENT);
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), 0);
	assert_string_equal(text, "paths\n");
	free(text);
	state_close(opened);
}

static void file_of_paths_that_is_too_long_or_none_is_told_as_such(void **state) {
	char path[PATH_MAX + 32], *text = NULL;
	struct state_counters counters;
	struct state *opened;
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/paths", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	for (uint32_t n = 0; n < 1024 * 1024; n++)
		fputc('x', file);
	assert_int_equal(fclose(file), 0);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -EMSGSIZE);
	state_close(opened);
	assert_int_equal(remove(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -ELOOP);
	state_close(opened);
	// A directory at this path makes writes fail: failures are counted, and nothing else
	// happens.
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -EISDIR);
	keep_paths(opened, "lost\n");
	do
		state_counters(opened, &counters);
	while (counters.write_failures < 1);
	state_close(opened);
	assert_null(text);
}

// The write fails as on a full disk. No later event causes another write.
static void text_that_could_not_be_written_is_written_once_the_disk_takes_it(void **state) {
	char path[PATH_MAX + 32], *text = NULL;
	struct state_counters counters;
	struct state *opened;
	struct stat info;

	(void)state;
	snprintf(path, sizeof(path), "%s/paths", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), -EISDIR);
	keep_paths(opened, "older\n");
	keep_paths(opened, "newest\n");
	do
		state_counters(opened, &counters);
	while (counters.write_failures < 1);
	assert_int_equal(rmdir(path), 0);
	while (stat(path, &info) != 0)
		sched_yield();
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_read_text(opened, STATE_PATHS, &text), 0);
	assert_string_equal(text, "newest\n");
	free(text);
	state_close(opened);
}

static void a_journal_stays_within_its_size_and_keeps_the_latest(void **state) {
	struct state_event event = event_of(1, "node");
	const struct state_event *earlier;
	struct state *opened;
	uint64_t written = 0;
	struct stat now, before;
	uint32_t count;
	char path[PATH_MAX + 32];

	(void)state;
	while (written < 3000) {
		opened = open_state();
		for (int n = 0; n < 500; n++) {
			event.event.value = written++;
			state_journal(opened, &event);
		}
		state_close(opened);
	}
	snprintf(path, sizeof(path), "%s/journal", directory);
	assert_int_equal(stat(path, &now), 0);
	snprintf(path, sizeof(path), "%s/journal.1", directory);
	assert_int_equal(stat(path, &before), 0);
	assert_true(now.st_size + before.st_size <= JOURNAL_BYTES);
	opened = open_state();
	count = state_earlier(opened, &earlier);
	assert_true(count > 100);
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(earlier[n].event.value, written - count + n);
	state_close(opened);
}

static void more_events_than_memory_keeps_leave_the_latest_in_order(void **state) {
	struct state_event event = event_of(1, "node");
	char line[STATE_LINE_BYTES_MAX];
	const struct state_event *earlier;
	struct state *opened;
	char path[PATH_MAX + 32];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/journal", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	for (uint64_t n = 0; n < STATE_EARLIER_MAX + 10; n++) {
		event.event.value = n;
		assert_true(state_line_format(&event, line, sizeof(line)) > 0);
		fwrite(line, 1, strcspn(line, "\n") + 1, file);
	}
	assert_int_equal(fclose(file), 0);
	opened = open_state();
	assert_int_equal(state_earlier(opened, &earlier), STATE_EARLIER_MAX);
	assert_int_equal(earlier[0].event.value, 10);
	assert_int_equal(earlier[STATE_EARLIER_MAX - 1].event.value, STATE_EARLIER_MAX + 9);
	state_close(opened);
}

static void lines_that_are_no_event_are_left_out(void **state) {
	static const char *const lines[] = {
		"",
		"\n",
		"{}\n",
		"[]\n",
		"null\n",
		"{\"time\":\"2026-11-21\"}\n",
		"{\"time\":\"yesterday\",\"event\":\"DEAD\",\"node\":\"a\",\"node_id\":"
		"\"0000000000000001\",\"cause\":\"none\",\"start\":1,\"refutations\":0,\"value\":1,"
		"\"hops\":1,\"observer_ids\":[]}\n",
		"{\"time\":\"2026-11-21T16:57:08.633Z\",\"event\":\"DEAD\",\"node\":\"a\","
		"\"node_id\":\"0000000000000001\",\"cause\":\"none\",\"start\":1,"
		"\"refutations\":65536,\"value\":1,\"hops\":1,\"observer_ids\":[]}\n",
		"{\"time_ns\":1}\n",
		"{\"time_ns\":1",
		"{\"time_ns\":1,\"event\":\"NOPE\",\"cause\":\"none\",\"peer\":\"0000000000000001\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"1\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"-000000000000001\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"0x00000000000001\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"               1\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"0000000000000001\","
		"\"name\":\"a\",\"incarnation\":1,\"value\":1,\"hops\":1,"
		"\"observers\":[\"0000000000000001\",\"0000000000000001\",\"0000000000000001\"]}\n",
		"{\"time_ns\":1,\"event\":\"DEAD\",\"cause\":\"none\",\"peer\":\"0000000000000001\","
		"\"name\":\"0123456789012345678901234567890123456789012345678901234567890123\","
		"\"incarnation\":1,\"value\":1,\"hops\":1,\"observers\":[]}\n",
	};

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		struct state_event event;

		assert_int_equal(state_line_parse(lines[n], strlen(lines[n]), &event), -EBADMSG);
	}
}

static void a_disk_that_takes_nothing_costs_events_and_nothing_else(void **state) {
	struct state_event event = event_of(1, "node");
	struct state_counters counters;
	struct state *opened = open_state();
	char path[PATH_MAX + 32];

	(void)state;
	// A directory at this path makes every open fail.
	snprintf(path, sizeof(path), "%s/journal", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int n = 0; n < 10; n++)
		state_journal(opened, &event);
	do
		state_counters(opened, &counters);
	while (counters.write_failures < 10);
	assert_int_equal(counters.events_written, 0);
	state_close(opened);
}

static void await_written(const struct state *opened, uint64_t written, uint64_t failures) {
	struct state_counters counters;

	do
		state_counters(opened, &counters);
	while (counters.events_written + counters.write_failures < written + failures);
	assert_int_equal(counters.events_written, written);
}

static uint64_t some_time(void) {
	return 1;
}

// Count the occurrences in the log.
static uint32_t count_in(FILE *file, const char *words) {
	char line[LOG_LINE_BYTES_MAX + 2];
	uint32_t found = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		found += strstr(line, words) != NULL;
	return found;
}

static void a_disk_that_takes_nothing_is_logged_when_it_begins_and_when_it_ends(void **state) {
	struct state_event event = event_of(1, "node");
	FILE *file = tmpfile();
	const struct log_sink sink = {
		.fd = fileno(file), .monotonic_ns = some_time, .realtime_ns = some_time};
	struct state *opened = open_state();
	char path[PATH_MAX + 32];

	(void)state;
	log_set_level(LOG_LEVEL_INFO);
	log_set_sink(&sink);
	snprintf(path, sizeof(path), "%s/journal", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int n = 0; n < 10; n++)
		state_journal(opened, &event);
	await_written(opened, 0, 10);
	assert_int_equal(remove(path), 0);
	state_journal(opened, &event);
	await_written(opened, 1, 10);
	state_close(opened);
	log_set_sink(NULL);
	assert_int_equal(count_in(file, " journal_write_failed "), 1);
	assert_int_equal(count_in(file, " journal_is_written_again events_lost=10"), 1);
	fclose(file);
}

static void a_directory_that_others_can_change_is_refused(void **state) {
	static const struct {
		mode_t mode;
		const char *words;
	} cases[] = {
		{0770, "other users can write to it"},
		{0707, "other users can write to it"},
		{01777, "other users can write to it"},
	};
	struct state *opened = NULL;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(chmod(directory, cases[n].mode), 0);
		assert_int_equal(state_open(directory, JOURNAL_BYTES, detail, &opened), -EPERM);
		assert_non_null(strstr(detail, directory));
		assert_non_null(strstr(detail, cases[n].words));
	}
	assert_int_equal(chmod(directory, 0755), 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(directory, 54321, (gid_t)-1), 0);
	assert_int_equal(state_open(directory, JOURNAL_BYTES, detail, &opened), -EPERM);
	assert_non_null(strstr(detail, "it belongs to another user"));
	assert_null(opened);
}

static void a_link_in_place_of_a_file_is_not_followed(void **state) {
	struct state *opened = NULL;
	char path[PATH_MAX + 32], victim[PATH_MAX + 32];
	struct stat info;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", directory);
	write_file("victim", "precious\n");
	snprintf(path, sizeof(path), "%s/lock", directory);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(state_open(directory, JOURNAL_BYTES, detail, &opened), -ELOOP);
	assert_int_equal(remove(path), 0);
	snprintf(path, sizeof(path), "%s/start.new", directory);
	assert_int_equal(symlink(victim, path), 0);
	state_close(open_state());
	assert_int_equal(stat(victim, &info), 0);
	assert_int_equal(info.st_size, strlen("precious\n"));
}

// A file size limit truncates a write like a full disk: what fits is written.
static void limit_files(uint64_t size) {
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size == 0 ? limit.rlim_max : size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_line_that_was_cut_spoils_no_other_of_this_run_or_the_next(void **state) {
	struct state_event event = event_of(1, "node");
	const struct state_event *earlier;
	struct state *opened = open_state();
	char line[STATE_LINE_BYTES_MAX];
	int size = state_line_format(&event, line, sizeof(line));

	(void)state;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	state_journal(opened, &event);
	await_written(opened, 1, 0);
	limit_files((uint64_t)size + (uint64_t)size / 2);
	event.event.value++;
	state_journal(opened, &event); // truncated
	await_written(opened, 1, 1);
	event.event.value++;
	state_journal(opened, &event); // nothing of it fits
	await_written(opened, 1, 2);
	limit_files(0);
	event.event.value++;
	state_journal(opened, &event); // 15
	await_written(opened, 2, 2);
	limit_files(3 * (uint64_t)size);
	event.event.value++;
	state_journal(opened, &event); // truncated, and the process ends
	await_written(opened, 2, 3);
	limit_files(0);
	state_close(opened);

	opened = open_state();
	assert_int_equal(state_earlier(opened, &earlier), 2);
	event.event.value++;
	state_journal(opened, &event); // 17
	state_close(opened);
	opened = open_state();
	assert_int_equal(state_earlier(opened, &earlier), 3);
	assert_int_equal(earlier[0].event.value, 12);
	assert_int_equal(earlier[1].event.value, 15);
	assert_int_equal(earlier[2].event.value, 17);
	state_close(opened);
}

static void a_journal_that_cannot_be_put_aside_does_not_grow(void **state) {
	struct state_event event = event_of(1, "node");
	struct state_counters counters;
	struct state *opened;
	char path[PATH_MAX + 32];
	struct stat now;

	(void)state;
	snprintf(path, sizeof(path), "%s/journal.1", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	do {
		opened = open_state();
		for (int n = 0; n < 500; n++)
			state_journal(opened, &event);
		do
			state_counters(opened, &counters);
		while (counters.events_written + counters.write_failures < 500);
		state_close(opened);
	} while (counters.events_written > 0);
	snprintf(path, sizeof(path), "%s/journal", directory);
	assert_int_equal(stat(path, &now), 0);
	assert_true(now.st_size <= JOURNAL_BYTES / 2);
}

// A sanitizer delays frees, and its memory grows with time.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// smaps_rollup counts the pages exactly; the counters of statm lag behind by some pages.
static uint64_t resident_bytes(void) {
	FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	uint64_t kib = 0;

	assert_non_null(rollup);
	while (kib == 0 && fgets(line, sizeof(line), rollup) != NULL)
		sscanf(line, "Rss: %" SCNu64, &kib);
	fclose(rollup);
	assert_in_range(kib, 1, UINT32_MAX);
	return kib * 1024;
}

static void journal_one_by_one(struct state *opened, uint64_t count) {
	const struct state_event event = event_of(1, "node");
	struct state_counters counters;

	for (uint64_t n = 1; n <= count; n++) {
		state_journal(opened, &event);
		do
			state_counters(opened, &counters);
		while (counters.events_written < n);
	}
}

static void events_that_are_written_as_they_come_do_not_touch_the_whole_queue(void **state) {
	const uint64_t queue_bytes = STATE_QUEUE_EVENTS * sizeof(struct state_event);
	struct state *opened;
	uint64_t before;

	(void)state;
	opened = open_state();
	before = resident_bytes();
	journal_one_by_one(opened, STATE_QUEUE_EVENTS);
	assert_in_range(resident_bytes(), 0, before + queue_bytes / 2);
	state_close(opened);
}
#endif

UNIT_GROUP(state) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		CASE(the_words_of_an_event_survive_whatever_they_are),
		CASE(a_line_whose_words_are_too_long_is_no_line),
		CASE(a_line_has_the_names_of_the_answer_to_events),
		CASE(a_line_of_an_older_version_is_read),
		CASE(a_verdict_of_an_older_version_keeps_its_name),
		CASE(stored_numbers_of_verdicts_are_those_of_this_version),
		CASE(a_cause_of_a_newer_version_is_kept_as_unknown),
		CASE(a_first_start_is_not_known_and_the_next_ones_count),
		CASE(a_start_that_the_cluster_taught_is_kept),
		CASE(a_counter_that_is_no_number_is_learnt_at_the_join),
		CASE(a_directory_that_another_agent_holds_is_refused_with_its_pid),
		CASE(a_directory_whose_parent_is_missing_is_an_error_with_its_path),
		CASE(events_come_back_after_a_restart_as_they_were),
		CASE(what_was_kept_of_paths_is_there_once_after_a_restart),
		CASE(texts_are_kept_beside_each_other),
		CASE(file_of_paths_that_is_too_long_or_none_is_told_as_such),
		CASE(text_that_could_not_be_written_is_written_once_the_disk_takes_it),
		CASE(a_journal_stays_within_its_size_and_keeps_the_latest),
		CASE(more_events_than_memory_keeps_leave_the_latest_in_order),
		CASE(lines_that_are_no_event_are_left_out),
		CASE(a_disk_that_takes_nothing_costs_events_and_nothing_else),
		CASE(a_disk_that_takes_nothing_is_logged_when_it_begins_and_when_it_ends),
		CASE(a_directory_that_others_can_change_is_refused),
		CASE(a_link_in_place_of_a_file_is_not_followed),
		CASE(a_line_that_was_cut_spoils_no_other_of_this_run_or_the_next),
		CASE(a_journal_that_cannot_be_put_aside_does_not_grow),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		CASE(events_that_are_written_as_they_come_do_not_touch_the_whole_queue),
#endif
	};

	// Fresh pages for each state, instead of pages of an earlier test. Sanitizers reject this
	// call. NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	(void)mallopt(M_MMAP_THRESHOLD, 65536);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
