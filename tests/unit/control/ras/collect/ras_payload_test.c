// SPDX-License-Identifier: BSD-3-Clause
// The rows of collectives on the wire. Merging: ras_payload_merge_test.c.
#include <support/payload_part.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static int drain_conns(struct wire_reader *reader) {
	struct ras_conn_row row;
	int err;

	while ((err = ras_conn_get(reader, &row)) == 0)
		assert_memory_equal(&row, &a_conn, sizeof(row));
	return err;
}

static int drain_comms(struct wire_reader *reader) {
	struct wire_reader row;
	struct ras_comm_missing missing;
	struct ras_comm_rank rank;
	struct ras_comm head;
	int err;

	while ((err = ras_comm_row_next(reader, &row)) == 0) {
		err = ras_comm_get(&row, &head);
		rank = (struct ras_comm_rank){0};
		for (uint32_t n = 0; err == 0 && n < head.rank_count; n++) {
			err = ras_comm_get_rank(&row, &head, &rank, &rank);
			if (err == 0)
				assert_memory_equal(&rank, &a_rank, sizeof(rank));
		}
		for (uint32_t n = 0; err == 0 && n < head.missing_count; n++) {
			err = ras_comm_get_missing(&row, head.size, &missing);
			if (err == 0)
				assert_memory_equal(&missing, &a_missing, sizeof(missing));
		}
		if (err != 0)
			return err;
		assert_int_equal(ras_comm_id_compare(&head.id, &a_comm.id), 0);
		assert_int_equal(head.size, 4);
		assert_int_equal(head.config, a_comm.config);
		assert_string_equal(head.job, a_comm.job);
		assert_int_equal(head.signature_count, a_comm.signature_count);
		for (uint32_t n = 0; n < head.signature_count; n++) {
			assert_int_equal(head.signatures[n].kind, a_comm.signatures[n].kind);
			assert_int_equal(head.signatures[n].root, a_comm.signatures[n].root);
			assert_true(head.signatures[n].count == a_comm.signatures[n].count);
		}
		assert_int_equal(head.recent.first, a_comm.recent.first);
		assert_int_equal(head.recent.count, a_comm.recent.count);
	}
	return err;
}

static int drain_paths(struct wire_reader *reader) {
	struct ras_path_row row;
	int err;

	while ((err = ras_path_get(reader, &row)) == 0) {
		assert_string_equal(row.device, a_path.device);
		assert_string_equal(row.peer_device, a_path.peer_device);
		assert_int_equal(row.p99_ns, a_path.p99_ns);
		assert_int_equal(row.baseline_ns, a_path.baseline_ns);
		assert_int_equal(row.for_s, a_path.for_s);
		assert_int_equal(row.lost_permille, a_path.lost_permille);
		assert_int_equal(row.seen, a_path.seen);
		assert_true(row.steady);
	}
	return err;
}

static int put_conn(struct wire_writer *writer) {
	return ras_conn_put(writer, &a_conn);
}

static int put_comm(struct wire_writer *writer) {
	return ras_comm_put(writer, &a_comm);
}

static int put_path(struct wire_writer *writer) {
	return ras_path_put(writer, &a_path);
}

static const struct kind {
	int (*put)(struct wire_writer *writer);
	int (*drain)(struct wire_reader *reader);
} kinds[] = {
	{put_conn, drain_conns},
	{put_comm, drain_comms},
	{put_path, drain_paths},
};

static void rows_come_back_as_they_were_put(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(kinds); n++) {
		struct wire_reader reader;
		struct part part;

		part_begin(&part, 1);
		assert_int_equal(kinds[n].put(&part.writer), 0);
		assert_int_equal(kinds[n].put(&part.writer), 0);
		part_end(&part);
		wire_reader_init(&reader, part.bytes, part.collected.size);
		assert_int_equal(kinds[n].drain(&reader), -ENODATA);
	}
}

static void a_row_that_does_not_fit_leaves_the_writer_as_it_was(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(kinds); n++) {
		struct wire_writer writer;
		uint8_t bytes[512];
		size_t whole;
		size_t used;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		assert_int_equal(kinds[n].put(&writer), 0);
		whole = wire_writer_used(&writer);
		for (size_t room = 0; room < whole; room++) {
			wire_writer_init(&writer, bytes, whole + room);
			assert_int_equal(kinds[n].put(&writer), 0);
			assert_int_equal(kinds[n].put(&writer), -EMSGSIZE);
			assert_int_equal(wire_writer_finish(&writer, &used), 0);
			assert_int_equal(used, whole);
		}
	}
}

static void every_truncation_of_a_row_is_ebadmsg(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(kinds); n++) {
		struct part part;

		part_begin(&part, 1);
		assert_int_equal(kinds[n].put(&part.writer), 0);
		part_end(&part);
		for (size_t size = 1; size < part.collected.size; size++) {
			struct wire_reader reader;

			wire_reader_init(&reader, part.bytes, size);
			assert_int_equal(kinds[n].drain(&reader), -EBADMSG);
			assert_int_equal(kinds[n].drain(&reader), -EBADMSG); // the error persists
		}
	}
}

static void values_that_contradict_each_other_are_ebadmsg(void **state) {
	static const struct ras_conn_row conns[] = {
		{.samples = 0, .mean_ns = 1},
		{.samples = 1, .min_ns = 2, .mean_ns = 1, .max_ns = 3},
		{.samples = 1, .min_ns = 1, .mean_ns = 4, .max_ns = 3},
		{.transport = RAS_TRANSPORT_COUNT},
	};
	static const struct ras_path_row paths[] = {
		{.count = 0, .p99_ns = 1},
		{.count = 1, .min_ns = 2, .median_ns = 1, .p99_ns = 3},
		{.count = 1, .min_ns = 1, .median_ns = 4, .p99_ns = 3},
	};
	struct ras_conns conns_merged = {0};
	struct ras_paths *paths_merged;
	struct part part;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(conns); n++) {
		part_begin(&part, 1);
		assert_int_equal(ras_conn_put(&part.writer, &a_conn), 0);
		assert_int_equal(ras_conn_put(&part.writer, &conns[n]), 0);
		part_end(&part);
		assert_int_equal(ras_conns_add(&conns_merged, &part.collected), -EBADMSG);
		assert_int_equal(conns_merged.all.rows, 0); // without the good row before it
	}
	assert_int_equal(ras_paths_create(&memory, &paths_merged), 0);
	for (size_t n = 0; n < COUNT_OF(paths); n++) {
		part_begin(&part, 1);
		assert_int_equal(ras_path_put(&part.writer, &a_path), 0);
		assert_int_equal(ras_path_put(&part.writer, &paths[n]), 0);
		part_end(&part);
		assert_int_equal(ras_paths_add(paths_merged, &part.collected), -EBADMSG);
		assert_int_equal(ras_paths_settle(paths_merged), 0);
	}
	ras_paths_destroy(paths_merged);
}

static void a_bad_row_of_a_communicator_is_refused_alone_and_counted(void **state) {
	const struct ras_comm_rank outside = {.rank = 4};
	const struct ras_comm_missing outside_missing = {.rank = 4};
	const struct ras_comm_missing no_family = {.rank = 1, .family = 5};
	const struct ras_comm_rank bad_device = {.rank = 1, .cuda_device = -2};
	const struct ras_comm_rank twice[2] = {{.pid = 1}, {.pid = 2}};
	const struct ras_comm other = {
		.id = {.hash = UINT64_MAX}, .size = 4, .rank_count = 1, .ranks = twice};
	struct ras_merged_comm merged;
	const struct ras_comm_rank many[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
	const struct ras_comm rows[] = {
		{.size = 0},
		{.size = RAS_COMM_SIZE_MAX + 1},
		// One process registered rank 0 of a communicator of one rank twice.
		{.size = 1, .rank_count = 2, .ranks = twice},
		{.size = 4, .rank_count = 1, .ranks = &outside},
		{.size = 4, .missing_count = 1, .missing = &outside_missing},
		{.size = 4, .missing_count = 1, .missing = &no_family},
		{.size = 4, .rank_count = 1, .ranks = &bad_device},
		{.size = 3,
		 .rank_count = 3,
		 .ranks = many,
		 .missing_count = 1,
		 .missing = &a_missing},
	};
	struct ras_comms *comms;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct part part;

		part_begin(&part, 1);
		assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
		assert_int_equal(ras_comm_put(&part.writer, &rows[n]), 0);
		assert_int_equal(ras_comm_put(&part.writer, &other), 0);
		part_end(&part);
		assert_int_equal(ras_comms_create(&memory, &comms), 0);
		assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		assert_int_equal(ras_comms_bad_rows(comms), 1);
		// The rows around the bad row are complete, and no other row was added.
		assert_int_equal(ras_comms_settle(comms), 2);
		ras_comms_at(comms, 0, &merged);
		assert_int_equal(merged.rank_count, a_comm.rank_count);
		ras_comms_at(comms, 1, &merged);
		assert_int_equal(merged.size, other.size);
		assert_int_equal(merged.rank_count, 1);
		ras_comms_destroy(comms);
	}
}

// The bytes of a_comm with one byte changed, so that no writer would produce them.
static void a_rank_that_contradicts_itself_is_refused(void **state) {
	static const struct ras_comm_signature signature = {.kind = 4};
	struct ras_comm_rank rank = {
		.rank = 1, .pid = 1, .launched = 3, .cuda_device = -1, .nvml_device = -1};
	struct ras_comm comm = {.size = 4, .signature_count = 1, .rank_count = 1, .ranks = &rank};
	// Offsets from the end of the row: the length, the steps of rank and pid, two
	// differences, and the index of a signature that is not in the head.
	static const struct {
		uint8_t back, value;
	} changes[] = {{15, 255}, {14, 9}, {13, 3}, {6, 4}, {5, 4}, {1, 0x0f}, {3, 17}, {2, 0}};
	struct ras_comms *comms;
	struct part part;

	(void)state;
	comm.signatures[0] = signature;
	rank.started = rank.completed = 3;
	rank.recent = (struct ras_comm_recent){.first = 3, .count = 1};
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	for (size_t n = 0; n < COUNT_OF(changes); n++) {
		part_begin(&part, 1);
		assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
		part_end(&part);
		assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		part.bytes[part.collected.size - changes[n].back] = changes[n].value;
		assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		assert_int_equal(ras_comms_bad_rows(comms), n + 1);
	}
	ras_comms_destroy(comms);
}

static void a_part_that_ends_inside_a_row_is_refused_whole(void **state) {
	struct ras_comms *comms;
	struct part part;

	(void)state;
	part_begin(&part, 1);
	assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
	assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
	part_end(&part);
	part.collected.size--;
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	assert_int_equal(ras_comms_add(comms, &part.collected), -EBADMSG);
	assert_int_equal(ras_comms_settle(comms), 0);
	assert_int_equal(ras_comms_bad_rows(comms), 0);
	ras_comms_destroy(comms);
}

static void what_a_newer_version_appends_to_a_rank_or_a_row_is_skipped(void **state) {
	const struct ras_comm_rank rank = {.rank = 1, .cuda_device = -1, .nvml_device = -1};
	const struct ras_comm comm = {.size = 4, .rank_count = 1, .ranks = &rank};
	struct ras_merged_comm merged;
	struct ras_comms *comms;
	struct part part;

	(void)state;
	part_begin(&part, 1);
	assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
	wire_put_u8(&part.writer, 0);	  // no call
	wire_put_varint(&part.writer, 0); // no posted operation
	wire_put_varint(&part.writer, 0); // not busy on purpose
	wire_put_u8(&part.writer, 0xee);
	part_end(&part);
	part.bytes[part.collected.size - 16] += 4; // the length of the rank
	// The length of the row, with one more byte behind the rank.
	wire_put_u8(&part.writer, 0xee);
	part_end(&part);
	wire_patch_u32(&part.writer, 0, (uint32_t)(part.collected.size - sizeof(uint32_t)));
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	assert_int_equal(ras_comms_add(comms, &part.collected), 0);
	assert_int_equal(ras_comms_settle(comms), 1);
	ras_comms_at(comms, 0, &merged);
	assert_int_equal(merged.rank_count, 1);
	assert_int_equal(merged.ranks[0].rank.rank, 1);
	ras_comms_destroy(comms);
}

static void text_that_is_no_text_is_refused_by_put_and_get(void **state) {
	struct ras_path_row path = a_path;
	struct ras_path_row untouched;
	struct wire_reader reader;
	struct part part;

	(void)state;
	part_begin(&part, 1);
	path.device[0] = '\xc0';
	assert_int_equal(ras_path_put(&part.writer, &path), -EILSEQ);
	assert_int_equal(wire_writer_used(&part.writer), 0);
	assert_int_equal(ras_path_put(&part.writer, &a_path), 0);
	part_end(&part);
	// The peer, then the length of the device's name and its first byte.
	part.bytes[8 + 2] = 0;
	wire_reader_init(&reader, part.bytes, part.collected.size);
	memset(&untouched, 0x5a, sizeof(untouched));
	path = untouched;
	assert_int_equal(ras_path_get(&reader, &path), -EILSEQ);
	assert_memory_equal(&path, &untouched, sizeof(path));
	part.bytes[8] = 0xff;
	wire_reader_init(&reader, part.bytes, part.collected.size);
	assert_int_equal(ras_path_get(&reader, &path), -EMSGSIZE);
}

static void names_exist_for_what_is_known_only(void **state) {
	(void)state;
	for (uint32_t n = 0; n < RAS_TRANSPORT_COUNT; n++)
		assert_non_null(ras_transport_name((enum ras_transport)n));
	assert_null(ras_transport_name(RAS_TRANSPORT_COUNT));
}

UNIT_GROUP(ras_payload) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back_as_they_were_put),
		cmocka_unit_test(a_row_that_does_not_fit_leaves_the_writer_as_it_was),
		cmocka_unit_test(every_truncation_of_a_row_is_ebadmsg),
		cmocka_unit_test(values_that_contradict_each_other_are_ebadmsg),
		cmocka_unit_test(a_bad_row_of_a_communicator_is_refused_alone_and_counted),
		cmocka_unit_test(a_rank_that_contradicts_itself_is_refused),
		cmocka_unit_test(a_part_that_ends_inside_a_row_is_refused_whole),
		cmocka_unit_test(what_a_newer_version_appends_to_a_rank_or_a_row_is_skipped),
		cmocka_unit_test(text_that_is_no_text_is_refused_by_put_and_get),
		cmocka_unit_test(names_exist_for_what_is_known_only),
	};

	return cmocka_run_group_tests_name("ras_payload", tests, pool_fill, pool_is_whole);
}
