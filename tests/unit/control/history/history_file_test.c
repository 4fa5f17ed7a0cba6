// SPDX-License-Identifier: BSD-3-Clause
#include "history/history_file.h"

#include <support/cmocka.h>
#include <support/tree.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE (32 * HISTORY_BLOCK_BYTES)
#define OWNER UINT64_C(7)
#define BEGIN_S INT64_C(1795980000)

static char directory[PATH_MAX];
static struct history_file_report report;
static struct history_block block;

static int make_directory(void **state) {
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/tocsin-history-XXXXXX");
	return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state) {
	(void)state;
	return tree_remove(directory);
}

static int file_fd(void) {
	char path[PATH_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/history", directory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct history_file *open_file(uint64_t size_bytes) {
	struct history_file *file = NULL;

	assert_int_equal(history_file_open(directory, size_bytes, OWNER, &file, &report), 0);
	return file;
}

// Write a block whose single record is of its own minute, in `copies` steps of growth.
static void write_block(struct history_file *file, uint64_t sequence, uint32_t copies) {
	struct history_node node = {.id = sequence, .name = "n1", .state = RAS_DEAD};

	history_block_begin(&block, HISTORY_FINE, OWNER, sequence);
	assert_true(history_block_put_period(&block, BEGIN_S + (int64_t)sequence * 60, 60));
	for (uint32_t n = 0; n < copies; n++) {
		assert_true(history_block_put_node(&block, &node));
		assert_int_equal(
			history_file_write(file, block.bytes, history_block_seal(&block)), 0
		);
	}
}

struct found {
	uint64_t blocks, nodes, first, last;
};

static void count_block(void *ctx, const uint8_t *bytes, size_t used) {
	static struct history_reader reader;
	struct found *found = ctx;
	struct history_item item;

	found->blocks++;
	history_reader_init(&reader, bytes, used);
	while (history_reader_next(&reader, &item)) {
		if (item.kind != HISTORY_ITEM_NODE)
			continue;
		found->nodes++;
		if (found->first == 0)
			found->first = item.node.id;
		found->last = item.node.id;
	}
	assert_true(wire_reader_ok(&reader.items));
}

static struct found read_all(struct history_file *file, uint64_t *ret_damaged) {
	struct found found = {0};
	int damaged =
		history_file_read(file, HISTORY_FINE, INT64_MIN, INT64_MAX, count_block, &found);

	assert_true(damaged >= 0);
	*ret_damaged = (uint64_t)damaged;
	return found;
}

static void records_survive_and_the_oldest_are_overwritten(void **state) {
	struct history_file *file = open_file(SIZE);
	uint32_t slots = history_file_tier_blocks(SIZE, HISTORY_FINE);
	struct found found;
	uint64_t damaged;
	struct stat info;
	int fd = file_fd();

	(void)state;
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_size, SIZE);
	assert_true(info.st_blocks * 512 >= SIZE); // reserved, so that a full disk does no harm
	for (uint64_t n = 1; n <= 100; n++)
		write_block(file, n, 3);
	history_file_close(file);
	file = open_file(SIZE);
	found = read_all(file, &damaged);
	assert_int_equal(damaged, 0);
	assert_int_equal(report.damaged, 0);
	assert_int_equal(found.last, 100);
	assert_true(found.blocks >= slots - 2);
	assert_int_equal(found.first, 100 - found.blocks + 1);
	assert_int_equal(found.nodes, found.blocks * 3); // one copy of each block
	assert_int_equal(history_file_next_sequence(file, HISTORY_FINE), 101);
	assert_int_equal(history_file_next_sequence(file, HISTORY_COARSE), 1);
	history_file_close(file);
	close(fd);
}

// A write that a crash cut short destroys the older of two copies at most.
static void a_torn_block_costs_only_what_it_added(void **state) {
	struct history_file *file = open_file(SIZE);
	struct history_header header;
	uint8_t bytes[HISTORY_HEADER_BYTES];
	struct found found;
	uint64_t damaged;
	uint32_t torn = 0;
	int fd = file_fd();

	(void)state;
	write_block(file, 1, 1);
	write_block(file, 2, 2);
	history_file_close(file);
	// Tear the longer copy of block 2.
	for (off_t at = 0; at < SIZE; at += HISTORY_BLOCK_BYTES) {
		assert_int_equal(pread(fd, bytes, sizeof(bytes), at), sizeof(bytes));
		if (history_header_read(bytes, &header) != 0 || header.sequence != 2)
			continue;
		if (header.used == block.used) {
			assert_int_equal(pwrite(fd, "torn", 4, at + header.used - 4), 4);
			torn++;
		}
	}
	assert_int_equal(torn, 1);
	file = open_file(SIZE);
	assert_int_equal(report.damaged, 1);
	found = read_all(file, &damaged);
	assert_int_equal(damaged, 0);
	assert_int_equal(found.blocks, 2);
	assert_int_equal(found.nodes, 2);
	// Later blocks come after all that was stored, so the ring overwrites the oldest ones.
	assert_int_equal(history_file_next_sequence(file, HISTORY_FINE), 3);
	history_file_close(file);
	close(fd);
}

static void flipped_foreign_and_newer_blocks_are_counted_and_skipped(void **state) {
	struct history_file *file = open_file(SIZE);
	struct history_block other;
	struct found found;
	uint64_t damaged;
	int fd = file_fd();

	(void)state;
	for (uint64_t n = 1; n <= 4; n++)
		write_block(file, n, 1);
	assert_int_equal(pwrite(fd, "x", 1, 9), 1);			   // a header
	assert_int_equal(pwrite(fd, "x", 1, HISTORY_BLOCK_BYTES + 70), 1); // items
	assert_int_equal(pwrite(fd, "\2", 1, 2 * HISTORY_BLOCK_BYTES + 4), 1);
	history_block_begin(&other, HISTORY_FINE, OWNER + 1, 50);
	history_block_seal(&other);
	assert_int_equal(
		pwrite(fd, other.bytes, HISTORY_HEADER_BYTES, 20 * HISTORY_BLOCK_BYTES),
		HISTORY_HEADER_BYTES
	);
	// The file is open: everything is checked again when it is read.
	found = read_all(file, &damaged);
	assert_int_equal(damaged, 3);
	assert_int_equal(found.blocks, 1);
	history_file_close(file);
	file = open_file(SIZE);
	assert_int_equal(report.damaged, 1);
	assert_int_equal(report.other_version, 1);
	assert_int_equal(report.foreign, 1);
	assert_int_equal(report.blocks, 2);
	found = read_all(file, &damaged);
	assert_int_equal(damaged, 1);
	assert_int_equal(found.last, 4);
	write_block(file, history_file_next_sequence(file, HISTORY_FINE), 1);
	found = read_all(file, &damaged);
	assert_int_equal(found.last, 5);
	history_file_close(file);
	close(fd);
}

static void a_file_that_was_cut_off_or_filled_with_noise_is_used_again(void **state) {
	struct history_file *file = open_file(SIZE);
	static uint8_t noise[SIZE];
	struct found found;
	uint64_t damaged;
	int fd = file_fd();

	(void)state;
	write_block(file, 1, 1);
	write_block(file, 2, 1);
	assert_int_equal(ftruncate(fd, HISTORY_BLOCK_BYTES / 2), 0);
	found = read_all(file, &damaged);
	assert_int_equal(found.blocks, 1);
	assert_int_equal(damaged, 1);
	write_block(file, 3, 1);
	history_file_close(file);
	file = open_file(SIZE);
	found = read_all(file, &damaged);
	assert_int_equal(found.blocks, 2);
	history_file_close(file);
	memset(noise, 0xa5, sizeof(noise));
	assert_int_equal(pwrite(fd, noise, sizeof(noise), 0), SIZE);
	file = open_file(SIZE);
	assert_int_equal(report.damaged, SIZE / HISTORY_BLOCK_BYTES);
	write_block(file, 1, 2);
	found = read_all(file, &damaged);
	assert_int_equal(found.nodes, 2);
	history_file_close(file);
	close(fd);
}

static void a_forged_number_leaves_room_for_further_blocks(void **state) {
	struct history_file *file = open_file(SIZE);
	struct found found;
	uint64_t damaged;

	(void)state;
	write_block(file, UINT64_MAX - 1, 1);
	history_file_close(file);
	file = open_file(SIZE);
	assert_int_equal(report.damaged, 1);
	assert_int_equal(history_file_next_sequence(file, HISTORY_FINE), 1);
	write_block(file, 1, 2);
	found = read_all(file, &damaged);
	assert_int_equal(found.nodes, 2);
	history_file_close(file);
}

static void a_file_changes_its_size_and_keeps_what_fits(void **state) {
	struct history_file *file = open_file(SIZE);
	struct found found;
	uint64_t damaged;

	(void)state;
	for (uint64_t n = 1; n <= 3; n++)
		write_block(file, n, 1);
	history_file_close(file);
	file = open_file(2 * SIZE);
	found = read_all(file, &damaged);
	assert_int_equal(found.blocks, 3);
	history_file_close(file);
	file = open_file(SIZE);
	found = read_all(file, &damaged);
	assert_int_equal(found.blocks, 3);
	history_file_close(file);
}

static void slots_that_a_smaller_file_gives_to_another_tier_are_used(void **state) {
	uint32_t slots = history_file_tier_blocks(SIZE, HISTORY_COARSE);
	struct history_file *file = open_file(2 * SIZE);
	struct found found = {0};

	(void)state;
	for (uint64_t n = 0; n < history_file_tier_blocks(2 * SIZE, HISTORY_FINE); n++)
		write_block(file, 1000 + n, 1);
	history_file_close(file);
	file = open_file(SIZE);
	for (uint64_t n = 1; n <= slots; n++) {
		history_block_begin(&block, HISTORY_COARSE, OWNER, n);
		assert_true(history_block_put_period(&block, BEGIN_S, 3600));
		assert_int_equal(
			history_file_write(file, block.bytes, history_block_seal(&block)), 0
		);
	}
	assert_int_equal(
		history_file_read(file, HISTORY_COARSE, INT64_MIN, INT64_MAX, count_block, &found),
		0
	);
	assert_int_equal(found.blocks, slots);
	// Only blocks of the tier and the time count.
	assert_int_equal(
		history_file_bytes(file, HISTORY_COARSE, INT64_MIN, INT64_MAX),
		slots * history_block_seal(&block)
	);
	assert_int_equal(history_file_bytes(file, HISTORY_COARSE, INT64_MIN, BEGIN_S - 1), 0);
	assert_int_equal(history_file_bytes(file, HISTORY_COARSE, BEGIN_S + 3601, INT64_MAX), 0);
	history_file_close(file);
}

// The limit on the size of files stands for a disk without room.
static void a_disk_without_room_shortens_the_history_or_refuses_it(void **state) {
	struct rlimit before, tight = {0, 0};
	struct history_file *file;
	struct found found;
	uint64_t damaged;

	(void)state;
	file = open_file(SIZE);
	write_block(file, 1, 1);
	history_file_close(file);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	tight.rlim_max = before.rlim_max;
	tight.rlim_cur = SIZE;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	file = open_file(2 * SIZE);
	assert_true(report.is_short);
	write_block(file, 2, 2);
	found = read_all(file, &damaged);
	assert_int_equal(found.blocks, 2);
	history_file_close(file);
	assert_int_equal(remove_directory(NULL), 0);
	assert_int_equal(make_directory(NULL), 0);
	tight.rlim_cur = HISTORY_BLOCK_BYTES;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(history_file_open(directory, SIZE, OWNER, &file, &report), -ENOSPC);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void a_file_that_was_removed_is_noticed(void **state) {
	struct history_file *file = open_file(SIZE);
	char path[PATH_MAX + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/history", directory);
	write_block(file, 1, 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(
		history_file_write(file, block.bytes, history_block_seal(&block)), -ESTALE
	);
	history_file_close(file);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(history_file_open(directory, SIZE, OWNER, &file, &report), -ELOOP);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

UNIT_GROUP(history_file) {
	const struct CMUnitTest tests[] = {
		CASE(records_survive_and_the_oldest_are_overwritten),
		CASE(a_torn_block_costs_only_what_it_added),
		CASE(flipped_foreign_and_newer_blocks_are_counted_and_skipped),
		CASE(a_file_that_was_cut_off_or_filled_with_noise_is_used_again),
		CASE(a_forged_number_leaves_room_for_further_blocks),
		CASE(a_file_changes_its_size_and_keeps_what_fits),
		CASE(slots_that_a_smaller_file_gives_to_another_tier_are_used),
		CASE(a_disk_without_room_shortens_the_history_or_refuses_it),
		CASE(a_file_that_was_removed_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
