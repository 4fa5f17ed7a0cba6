// SPDX-License-Identifier: BSD-3-Clause
// Tests of the record of drains: its content, the files that it rejects, and concurrent changes.
#include "slurm/drain_record.h"

#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 6
#define ROWS_OF_EACH 20

struct place {
	char directory[64], file[80], lock[96];
};

static int begin(void **state) {
	struct place *place = calloc(1, sizeof(*place));

	if (place == NULL)
		return -1;
	snprintf(place->directory, sizeof(place->directory), "/tmp/tocsin-drains-XXXXXX");
	if (mkdtemp(place->directory) == NULL) {
		free(place);
		return -1;
	}
	snprintf(place->file, sizeof(place->file), "%s/drains", place->directory);
	snprintf(place->lock, sizeof(place->lock), "%s.lock", place->file);
	*state = place;
	return 0;
}

static int end(void **state) {
	struct place *place = *state;

	unlink(place->file);
	unlink(place->lock);
	rmdir(place->directory);
	free(place);
	return 0;
}

static void put(const struct place *place, const char *node, const char *reason) {
	struct drain_row row = {.stamp = "root@2026-11-24T01:00:00"};
	char why[DRAIN_WHY_BYTES];

	snprintf(row.node, sizeof(row.node), "%s", node);
	snprintf(row.reason, sizeof(row.reason), "%s", reason);
	assert_int_equal(drain_record_change(place->file, NULL, NULL, &row, why), 0);
}

static struct drain_record record_of(const struct place *place) {
	struct drain_record record;
	char why[DRAIN_WHY_BYTES];

	assert_int_equal(drain_record_read(place->file, &record, why), 0);
	return record;
}

static void write_text(const char *file, const char *text) {
	FILE *out = fopen(file, "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void file_that_is_not_there_holds_nothing(void **state) {
	struct drain_record record = record_of(*state);

	assert_int_equal(record.count, 0);
	assert_false(drain_record_holds(&record, "n1", "tocsin: x", "root@1"));
	drain_record_free(&record);
}

static void row_is_held_word_for_word_with_its_giver_and_time(void **state) {
	static const struct {
		const char *node, *reason, *stamp;
		bool held;
	} rows[] = {
		{"n1", "tocsin: \"a\" \\ \x01 b", "root@2026-11-24T01:00:00", true},
		{"n1", "tocsin: \"a\" \\ \x01 b -- HOLD", "root@2026-11-24T01:00:00", false},
		{"n1", "tocsin: \"a\" \\ \x01 b", "ann@2026-11-24T01:00:00", false},
		{"n1", "tocsin: \"a\" \\ \x01 b", "root@2026-11-24T01:00:01", false},
		{"n1", "tocsin: \"a\" \\ \x01 b", "", false},
		{"n1", "", "root@2026-11-24T01:00:00", false},
		{"n2", "tocsin: \"a\" \\ \x01 b", "root@2026-11-24T01:00:00", false},
	};
	struct drain_record record;

	put(*state, "n9", "tocsin: before");
	put(*state, "n1", "tocsin: before");
	put(*state, "n1", rows[0].reason);
	record = record_of(*state);
	assert_int_equal(record.count, 2);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(
			drain_record_holds(&record, rows[n].node, rows[n].reason, rows[n].stamp),
			rows[n].held
		);
	drain_record_free(&record);
}

static void file_that_is_none_is_refused_and_left_as_it_is(void **state) {
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"{\"version\": 2, \"drains\": []}",
		"{\"version\": 1}",
		"{\"version\": 1, \"drains\": {}}",
		"{\"version\": 1, \"drains\": [7]}",
		"{\"version\": 1, \"drains\": [null]}",
		"{\"version\": 1, \"drains\": [{\"node\": \"n1\", \"reason\": \"x\"}]}",
		"{\"version\": 1, \"drains\": [{\"node\": \"\", \"reason\": \"x\", \"stamp\": \"y\"}]}",
		"{\"version\": 1, \"drains\": [], \"drains\": []}",
	};
	const struct place *place = *state;
	const struct drain_row row = {.node = "n1", .reason = "x", .stamp = "y"};

	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		struct drain_record record;
		char why[DRAIN_WHY_BYTES];
		struct stat there;

		write_text(place->file, texts[n]);
		assert_int_equal(drain_record_read(place->file, &record, why), -EBADMSG);
		assert_non_null(strstr(why, "not a record of drains"));
		assert_int_equal(drain_record_change(place->file, NULL, NULL, &row, why), -EBADMSG);
		assert_int_equal(stat(place->file, &there), 0);
		assert_int_equal(there.st_size, strlen(texts[n]));
	}
}

// Regression: one row that was not valid text made the file unreadable for ever.
static void row_that_is_no_text_is_refused_and_harms_no_other(void **state) {
	const struct place *place = *state;
	const struct drain_row row = {.node = "n2", .reason = "tocsin: \xe4", .stamp = "y"};
	struct drain_record record;
	char why[DRAIN_WHY_BYTES];

	put(place, "n1", "tocsin: x");
	assert_int_equal(drain_record_change(place->file, NULL, NULL, &row, why), -EILSEQ);
	record = record_of(place);
	assert_int_equal(record.count, 1);
	drain_record_free(&record);
}

static bool is_kept(void *ctx, const struct drain_row *row) {
	return strcmp(row->node, ctx) != 0;
}

static void rows_that_are_not_wanted_are_dropped(void **state) {
	const struct place *place = *state;
	struct drain_record record;
	char why[DRAIN_WHY_BYTES], unwanted[] = "n2";

	put(place, "n1", "tocsin: x");
	put(place, "n2", "tocsin: x");
	put(place, "n3", "tocsin: x");
	assert_int_equal(drain_record_change(place->file, is_kept, unwanted, NULL, why), 0);
	record = record_of(place);
	assert_int_equal(record.count, 2);
	assert_null(drain_record_find(&record, "n2"));
	assert_non_null(drain_record_find(&record, "n3"));
	drain_record_free(&record);
}

static void links_and_pipes_are_not_written_through(void **state) {
	const struct place *place = *state;
	const struct drain_row row = {.node = "n1", .reason = "x", .stamp = "y"};
	char why[DRAIN_WHY_BYTES];

	assert_int_equal(symlink("/dev/null", place->file), 0);
	assert_int_not_equal(drain_record_change(place->file, NULL, NULL, &row, why), 0);
	unlink(place->file);
	assert_int_equal(mkfifo(place->file, 0600), 0);
	assert_int_not_equal(drain_record_change(place->file, NULL, NULL, &row, why), 0);
	unlink(place->lock);
	unlink(place->file);
	assert_int_equal(symlink(place->directory, place->lock), 0);
	assert_int_equal(drain_record_change(place->file, NULL, NULL, &row, why), -ELOOP);
}

static void several_who_write_at_a_time_lose_no_row(void **state) {
	const struct place *place = *state;
	struct drain_record record;

	for (int writer = 0; writer < WRITERS; writer++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			for (int n = 0; n < ROWS_OF_EACH; n++) {
				struct drain_row row = {.reason = "x", .stamp = "y"};
				char why[DRAIN_WHY_BYTES];
				int err;

				snprintf(row.node, sizeof(row.node), "n%d-%d", writer, n);
				// On a machine with few CPUs another writer may hold the lock for a
				// long time.
				do
					err = drain_record_change(
						place->file, NULL, NULL, &row, why
					);
				while (err == -EWOULDBLOCK);
				if (err != 0)
					_exit(1);
			}
			_exit(0);
		}
	}
	for (int writer = 0; writer < WRITERS; writer++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	record = record_of(place);
	assert_int_equal(record.count, WRITERS * ROWS_OF_EACH);
	drain_record_free(&record);
}

UNIT_GROUP(drain_record) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_that_is_not_there_holds_nothing, begin, end),
		cmocka_unit_test_setup_teardown(
			row_is_held_word_for_word_with_its_giver_and_time, begin, end
		),
		cmocka_unit_test_setup_teardown(
			file_that_is_none_is_refused_and_left_as_it_is, begin, end
		),
		cmocka_unit_test_setup_teardown(
			row_that_is_no_text_is_refused_and_harms_no_other, begin, end
		),
		cmocka_unit_test_setup_teardown(rows_that_are_not_wanted_are_dropped, begin, end),
		cmocka_unit_test_setup_teardown(
			links_and_pipes_are_not_written_through, begin, end
		),
		cmocka_unit_test_setup_teardown(
			several_who_write_at_a_time_lose_no_row, begin, end
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
