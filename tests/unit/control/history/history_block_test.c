// SPDX-License-Identifier: BSD-3-Clause
#include <control/history_block.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BEGIN_S INT64_C(1795980000)

static struct history_block block;
static struct history_reader reader;

static struct history_path_name path_of(uint32_t n) {
	struct history_path_name name = {
		.peer = n + 1, .device = "mlx5_0", .peer_device = "mlx5_1"};

	snprintf(name.node, sizeof(name.node), "n%u", n);
	return name;
}

static void fill(uint32_t paths) {
	struct history_node node = {.id = 9, .name = "n9", .state = RAS_DEAD, .verdict = 13};
	struct history_bins bins = {0};

	history_block_begin(&block, HISTORY_FINE, 7, 3);
	history_bins_add(&bins, true, 2000);
	for (uint32_t minute = 0; minute < 2; minute++) {
		assert_true(history_block_put_period(&block, BEGIN_S + minute * 60, 60));
		assert_true(history_block_put_node(&block, &node));
		for (uint32_t n = 0; n < paths; n++) {
			struct history_path_name name = path_of(n);

			assert_true(history_block_put_path(&block, &name, &bins));
		}
	}
}

static void a_block_returns_its_items_with_their_times_and_names(void **state) {
	struct history_header header;
	struct history_item item;
	uint32_t periods = 0, nodes = 0, paths = 0;
	size_t used;

	(void)state;
	fill(3);
	used = history_block_seal(&block);
	assert_int_equal(history_header_read(block.bytes, &header), 0);
	assert_int_equal(header.used, used);
	assert_int_equal(header.owner, 7);
	assert_int_equal(header.sequence, 3);
	assert_int_equal(header.first_s, BEGIN_S);
	assert_int_equal(header.last_s, BEGIN_S + 120);
	assert_int_equal(history_block_check(block.bytes, &header), 0);
	history_reader_init(&reader, block.bytes, used);
	while (history_reader_next(&reader, &item)) {
		periods += item.kind == HISTORY_ITEM_PERIOD;
		assert_int_equal(item.begin_s, BEGIN_S + (periods - 1) * 60);
		assert_int_equal(item.seconds, 60);
		if (item.kind == HISTORY_ITEM_NODE) {
			nodes++;
			assert_string_equal(item.node.name, "n9");
			assert_int_equal(item.node.state, RAS_DEAD);
		}
		if (item.kind == HISTORY_ITEM_PATH) {
			struct history_path_name name = path_of(paths++ % 3);
			struct history_bins bins = {0};

			assert_string_equal(item.path->node, name.node);
			assert_string_equal(item.path->peer_device, "mlx5_1");
			history_bins_get(&item.bins, &bins);
			assert_int_equal(bins.sent, 1);
		}
	}
	assert_true(wire_reader_ok(&reader.items));
	assert_int_equal(periods, 2);
	assert_int_equal(nodes, 2);
	assert_int_equal(paths, 6);
}

static void every_flipped_bit_is_found(void **state) {
	struct history_header header;
	size_t used;

	(void)state;
	fill(3);
	used = history_block_seal(&block);
	for (size_t bit = 0; bit < used * 8; bit++) {
		block.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(
			history_header_read(block.bytes, &header) != 0 ||
			history_block_check(block.bytes, &header) != 0
		);
		block.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void an_empty_block_and_one_of_another_version_are_told_apart(void **state) {
	struct history_header header;

	(void)state;
	fill(1);
	history_block_seal(&block);
	block.bytes[4] = HISTORY_VERSION + 1;
	assert_int_equal(history_header_read(block.bytes, &header), -EPROTONOSUPPORT);
	memset(block.bytes, 0, HISTORY_HEADER_BYTES);
	assert_int_equal(history_header_read(block.bytes, &header), -ENODATA);
}

static void a_full_block_refuses_items_and_keeps_those_it_has(void **state) {
	struct history_bins bins = {0};
	struct history_header header;
	struct history_item item;
	uint32_t stored = 0, read = 0;

	(void)state;
	history_block_begin(&block, HISTORY_COARSE, 7, 1);
	for (uint64_t n = 0; n < HISTORY_BINS; n++)
		history_bins_add(&bins, true, UINT64_C(300) << n % 20);
	assert_true(history_block_put_period(&block, BEGIN_S, 3600));
	for (;; stored++) {
		struct history_path_name name = path_of(stored % 300);

		if (!history_block_put_path(&block, &name, &bins))
			break;
	}
	history_block_seal(&block);
	assert_int_equal(history_header_read(block.bytes, &header), 0);
	history_reader_init(&reader, block.bytes, header.used);
	while (history_reader_next(&reader, &item))
		read += item.kind == HISTORY_ITEM_PATH;
	assert_true(wire_reader_ok(&reader.items));
	assert_int_equal(read, stored);
	assert_true(stored > 500);
}

static void a_block_that_is_set_back_can_be_filled_again(void **state) {
	struct history_path_name name = path_of(1);
	struct history_bins bins = {.sent = 1};
	struct history_mark mark;
	size_t used;

	(void)state;
	fill(1);
	mark = history_block_mark(&block);
	assert_true(history_block_put_period(&block, BEGIN_S + 9000, 60));
	assert_true(history_block_put_path(&block, &name, &bins));
	used = block.used;
	history_block_set_back(&block, &mark);
	assert_int_equal(block.last_s, BEGIN_S + 120);
	assert_true(history_block_put_period(&block, BEGIN_S + 9000, 60));
	assert_true(history_block_put_path(&block, &name, &bins));
	assert_int_equal(block.used, used);
}

static void unknown_items_are_skipped_and_broken_ones_end_the_block(void **state) {
	static const uint8_t newer[] = {200, 3, 1, 2, 3};
	static const uint8_t broken[] = {HISTORY_ITEM_PATH, 1, 9}; // no such path
	struct history_item item;
	uint32_t count = 0;

	(void)state;
	fill(1);
	memcpy(block.bytes + block.used, newer, sizeof(newer));
	block.used += sizeof(newer);
	history_reader_init(&reader, block.bytes, block.used);
	while (history_reader_next(&reader, &item))
		count++;
	assert_int_equal(count, 6);
	assert_true(wire_reader_ok(&reader.items));
	memcpy(block.bytes + block.used, broken, sizeof(broken));
	history_reader_init(&reader, block.bytes, block.used + sizeof(broken));
	while (history_reader_next(&reader, &item))
		count++;
	assert_int_equal(count, 12);
	assert_false(wire_reader_ok(&reader.items));
}

UNIT_GROUP(history_block) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_returns_its_items_with_their_times_and_names),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(an_empty_block_and_one_of_another_version_are_told_apart),
		cmocka_unit_test(a_full_block_refuses_items_and_keeps_those_it_has),
		cmocka_unit_test(a_block_that_is_set_back_can_be_filled_again),
		cmocka_unit_test(unknown_items_are_skipped_and_broken_ones_end_the_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
