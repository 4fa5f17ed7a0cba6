// SPDX-License-Identifier: BSD-3-Clause
// How the root merges the parts of all nodes.
#include <support/payload_part.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void conns_are_summed_and_the_slowest_named(void **state) {
	struct ras_conns conns = {0};
	struct ras_conn_row row = {.samples = 1, .retransmits = RAS_RETRANSMITS_UNKNOWN};
	struct part part;

	(void)state;
	for (uint32_t node = 0; node < 40; node++) {
		part_begin(&part, node);
		row.peer = node + 1;
		row.min_ns = row.mean_ns = row.max_ns = 100 + node;
		row.sent_bytes = 10;
		assert_int_equal(ras_conn_put(&part.writer, &row), 0);
		part_end(&part);
		assert_int_equal(ras_conns_add(&conns, &part.collected), 0);
	}
	assert_int_equal(conns.all.rows, 40);
	assert_int_equal(conns.transports[RAS_TRANSPORT_TCP].rows, 40);
	assert_int_equal(conns.all.min_ns, 100);
	assert_int_equal(conns.all.max_ns, 139);
	assert_int_equal(conns.all.mean_ns, 119);
	assert_int_equal(conns.all.sent_bytes, 400);
	assert_int_equal(conns.all.retransmits_unknown, 40);
	assert_int_equal(conns.worst_count, RAS_CONNS_WORST_MAX);
	for (uint32_t n = 0; n < RAS_CONNS_WORST_MAX; n++)
		assert_int_equal(conns.worst[n].node, 39 - n);
}

static void sums_of_hostile_numbers_stop_at_the_largest(void **state) {
	struct ras_conn_row row = a_conn;
	struct ras_conns conns = {0};
	struct part part;

	(void)state;
	row.samples = UINT32_MAX;
	row.mean_ns = row.max_ns = UINT64_MAX;
	row.retransmits = UINT64_MAX - 1;
	part_begin(&part, 1);
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(ras_conn_put(&part.writer, &row), 0);
	part_end(&part);
	assert_int_equal(ras_conns_add(&conns, &part.collected), 0);
	assert_true(conns.all.received_bytes == UINT64_MAX);
	assert_true(conns.all.retransmits == UINT64_MAX);
	assert_true(conns.all.mean_ns == UINT64_MAX);
}

static void an_arriving_rank_is_missing_no_more_whatever_the_order(void **state) {
	const struct ras_comm_rank rank_two = {.rank = 2, .pid = 17};
	const struct ras_comm arriving = {
		.id = a_comm.id, .size = 4, .rank_count = 1, .ranks = &rank_two};
	const struct ras_comm *const orders[][2] = {{&a_comm, &arriving}, {&arriving, &a_comm}};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(orders); n++) {
		struct ras_merged_comm merged;
		struct ras_comms *comms;

		assert_int_equal(ras_comms_create(&memory, &comms), 0);
		for (uint32_t i = 0; i < 2; i++) {
			struct part part;

			part_begin(&part, 1 + i);
			assert_int_equal(ras_comm_put(&part.writer, orders[n][i]), 0);
			part_end(&part);
			assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		}
		assert_int_equal(ras_comms_settle(comms), 1);
		ras_comms_at(comms, 0, &merged);
		assert_int_equal(merged.rank_count, 2);
		assert_int_equal(merged.ranks[0].rank.rank, 1);
		assert_int_equal(merged.ranks[1].rank.rank, 2);
		assert_int_equal(merged.missing_count, 0);
		assert_false(merged.collision);
		ras_comms_destroy(comms);
	}
}

static void a_rank_held_twice_is_kept_once_and_counted(void **state) {
	struct ras_merged_comm merged;
	struct ras_comms *comms;

	(void)state;
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	for (uint64_t node = 9; node >= 7; node--) {
		struct part part;

		part_begin(&part, node);
		assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
		part_end(&part);
		assert_int_equal(ras_comms_add(comms, &part.collected), 0);
	}
	assert_int_equal(ras_comms_settle(comms), 1);
	ras_comms_at(comms, 0, &merged);
	assert_int_equal(merged.rank_count, 1);
	assert_int_equal(merged.ranks[0].node, 7);
	assert_int_equal(merged.missing_count, 1); // the same list three times
	assert_int_equal(merged.missing[0].missing.node, 99);
	assert_int_equal(ras_comms_settle(comms), 1); // settling again has no effect
	ras_comms_destroy(comms);
}

// A restarted job uses the same hashes, while agents still report the job that ended.
static void of_two_holders_of_a_rank_the_one_that_lives_stays(void **state) {
	const struct ras_comm_rank ended = {.rank = 1, .pid = 5, .flags = RAS_RANK_EXITED};
	const struct ras_comm_rank lives = {.rank = 1, .pid = 9};
	const struct ras_comm_rank *const orders[][2] = {{&ended, &lives}, {&lives, &ended}};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(orders); n++) {
		struct ras_merged_comm merged;
		struct ras_comms *comms;

		assert_int_equal(ras_comms_create(&memory, &comms), 0);
		for (uint32_t node = 0; node < 2; node++) {
			const struct ras_comm comm = {
				.id = a_comm.id,
				.size = 4,
				.rank_count = 1,
				.ranks = orders[n][node]};
			struct part part;

			part_begin(&part, 7 + node);
			assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
			part_end(&part);
			assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		}
		assert_int_equal(ras_comms_settle(comms), 1);
		ras_comms_at(comms, 0, &merged);
		assert_int_equal(merged.rank_count, 1);
		assert_int_equal(merged.ranks[0].rank.pid, 9);
		ras_comms_destroy(comms);
	}
}

static void two_sizes_under_one_id_are_kept_as_two(void **state) {
	struct ras_comm other = a_comm;
	struct ras_merged_comm merged;
	struct ras_comms *comms;
	struct part part;

	(void)state;
	other.size = 8;
	part_begin(&part, 1);
	assert_int_equal(ras_comm_put(&part.writer, &other), 0);
	assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
	part_end(&part);
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	assert_int_equal(ras_comms_add(comms, &part.collected), 0);
	assert_int_equal(ras_comms_settle(comms), 2);
	for (uint32_t n = 0; n < 2; n++) {
		ras_comms_at(comms, n, &merged);
		assert_int_equal(merged.size, n == 0 ? 4 : 8);
		assert_true(merged.collision);
		assert_int_equal(merged.rank_count, 1);
		assert_int_equal(merged.missing_count, 1);
	}
	ras_comms_destroy(comms);
}

static void a_rank_has_the_signatures_of_its_row_s_head_or_its_own(void **state) {
	const struct ras_comm_rank ranks[] = {
		{.rank = 0, .launched = 5, .started = 5, .knows = RAS_RANK_KNOWS_SIGNATURES},
		{.rank = 1, .launched = 4, .started = 4, .knows = RAS_RANK_KNOWS_SIGNATURES},
		{.rank = 2,
		 .launched = 5,
		 .started = 5,
		 .knows = RAS_RANK_KNOWS_SIGNATURES,
		 .recent = {.first = 5, .count = 1, .index = {1}}},
	};
	const struct ras_comm comm = {
		.id = {1, 2, 3},
		.size = 3,
		.signature_count = 2,
		.signatures = {{.kind = 4, .count = 8}, {.kind = 4, .count = 9}},
		.recent = {.first = 4, .count = 2},
		.rank_count = 3,
		.ranks = ranks,
	};
	struct ras_merged_comm merged;
	struct ras_comms *comms;
	struct part part;

	(void)state;
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	part_begin(&part, 1);
	assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
	assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
	part_end(&part);
	assert_int_equal(ras_comms_add(comms, &part.collected), 0);
	assert_int_equal(ras_comms_settle(comms), 2);
	ras_comms_at(comms, 0, &merged);
	assert_int_equal(merged.rank_count, 3);
	assert_int_equal(ras_comm_signature_of(&merged, &merged.ranks[0], 5)->count, 8);
	assert_null(ras_comm_signature_of(&merged, &merged.ranks[0], 3));
	assert_null(ras_comm_signature_of(&merged, &merged.ranks[0], 6));
	assert_int_equal(ras_comm_signature_of(&merged, &merged.ranks[1], 4)->count, 8);
	// Not launched by this rank.
	assert_null(ras_comm_signature_of(&merged, &merged.ranks[1], 5));
	assert_int_equal(ras_comm_signature_of(&merged, &merged.ranks[2], 5)->count, 9);
	ras_comms_destroy(comms);
}

static void two_jobs_with_one_communicator_are_told_as_such(void **state) {
	static const char *const jobs[][2] = {
		{"slurm:1", "slurm:2"}, {"slurm:1", "slurm:1"}, {"", "slurm:1"}, {"slurm:2", ""}};
	static const char *const names[] = {"slurm:2", "slurm:1", "slurm:1", "slurm:2"};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(jobs); n++) {
		struct ras_merged_comm merged;
		struct ras_comms *comms;

		assert_int_equal(ras_comms_create(&memory, &comms), 0);
		for (uint32_t node = 0; node < 2; node++) {
			struct ras_comm comm = {.size = 2};
			struct part part;

			memcpy(comm.job, jobs[n][node], strlen(jobs[n][node]) + 1);
			part_begin(&part, node);
			assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
			part_end(&part);
			assert_int_equal(ras_comms_add(comms, &part.collected), 0);
		}
		assert_int_equal(ras_comms_settle(comms), 1);
		ras_comms_at(comms, 0, &merged);
		assert_string_equal(merged.job, names[n]);
		assert_int_equal(merged.jobs_differ, n == 0);
		ras_comms_destroy(comms);
	}
}

#define JOB_NODES 24
#define JOB_COMMS 5
#define JOB_SIZE 60

static void job_part(struct part *part, uint32_t node) {
	part_begin(part, node);
	for (uint32_t n = 0; n < JOB_COMMS; n++) {
		struct ras_comm_rank ranks[3];
		struct ras_comm_missing missing[4];
		struct ras_comm comm = {
			.id = {n / 2, n, 0},
			.size = JOB_SIZE,
			.rank_count = 3,
			.ranks = ranks,
			.missing_count = 4,
			.missing = missing,
		};

		memset(ranks, 0, sizeof(ranks));
		memset(missing, 0, sizeof(missing));
		for (uint32_t i = 0; i < 3; i++)
			ranks[i].rank = random_below(JOB_SIZE);
		for (uint32_t i = 0; i < 4; i++) {
			missing[i].rank = random_below(JOB_SIZE);
			missing[i].node = random_below(3);
		}
		assert_int_equal(ras_comm_put(&part->writer, &comm), 0);
	}
	part_end(part);
}

static void the_merge_of_communicators_is_the_same_in_a_thousand_orders(void **state) {
	static struct part parts[JOB_NODES];
	struct ras_comms *first;
	struct ras_comms *other;
	uint32_t order[JOB_NODES];

	(void)state;
	random_state = 11;
	assert_int_equal(ras_comms_create(&memory, &first), 0);
	for (uint32_t n = 0; n < JOB_NODES; n++) {
		job_part(&parts[n], n);
		assert_int_equal(ras_comms_add(first, &parts[n].collected), 0);
	}
	assert_int_equal(ras_comms_settle(first), JOB_COMMS);
	for (uint32_t round = 0; round < 1000; round++) {
		shuffle(order, JOB_NODES);
		assert_int_equal(ras_comms_create(&memory, &other), 0);
		for (uint32_t n = 0; n < JOB_NODES; n++) {
			assert_int_equal(ras_comms_add(other, &parts[order[n]].collected), 0);
			if (random_below(8) == 0) // also in the middle
				ras_comms_settle(other);
		}
		assert_int_equal(ras_comms_settle(other), JOB_COMMS);
		for (uint32_t n = 0; n < JOB_COMMS; n++) {
			struct ras_merged_comm a;
			struct ras_merged_comm b;

			ras_comms_at(first, n, &a);
			ras_comms_at(other, n, &b);
			assert_int_equal(a.rank_count, b.rank_count);
			assert_int_equal(a.missing_count, b.missing_count);
			assert_true(a.missing_count > 0);
			for (uint32_t i = 0; i < a.rank_count; i++) {
				assert_int_equal(a.ranks[i].node, b.ranks[i].node);
				assert_int_equal(a.ranks[i].rank.rank, b.ranks[i].rank.rank);
			}
			for (uint32_t i = 0; i < a.missing_count; i++) {
				const struct ras_comm_missing *left = &a.missing[i].missing;
				const struct ras_comm_missing *right = &b.missing[i].missing;

				assert_int_equal(left->rank, right->rank);
				assert_int_equal(left->node, right->node);
			}
		}
		ras_comms_destroy(other);
	}
	ras_comms_destroy(first);
}

static void assert_paths_equal(struct ras_paths *left, struct ras_paths *right) {
	uint32_t count = ras_paths_settle(left);

	assert_int_equal(ras_paths_settle(right), count);
	for (uint32_t n = 0; n < count; n++) {
		const struct ras_merged_path *a = ras_paths_at(left, n);
		const struct ras_merged_path *b = ras_paths_at(right, n);

		assert_int_equal(a->node, b->node);
		assert_int_equal(a->row.peer, b->row.peer);
		assert_int_equal(a->row.count, b->row.count);
		assert_true(n == 0 || a[-1].node < a->node || a[-1].row.peer < a->row.peer);
	}
}

static void conns_and_paths_merge_the_same_in_a_thousand_orders(void **state) {
	static struct part conns[JOB_NODES];
	static struct part paths[JOB_NODES];
	struct ras_conns conns_first = {0};
	struct ras_paths *paths_first;
	uint32_t order[JOB_NODES];

	(void)state;
	random_state = 12;
	assert_int_equal(ras_paths_create(&memory, &paths_first), 0);
	for (uint32_t n = 0; n < JOB_NODES; n++) {
		struct ras_conn_row conn = a_conn;
		struct ras_path_row path = a_path;

		part_begin(&conns[n], n);
		part_begin(&paths[n], n / 2); // the same path from two parts
		for (uint32_t i = 0; i < 3; i++) {
			conn.peer = random_below(50);
			conn.mean_ns = 10 + random_below(4);
			assert_int_equal(ras_conn_put(&conns[n].writer, &conn), 0);
			path.peer = random_below(4);
			path.count = 1 + random_below(3);
			assert_int_equal(ras_path_put(&paths[n].writer, &path), 0);
		}
		part_end(&conns[n]);
		part_end(&paths[n]);
		assert_int_equal(ras_conns_add(&conns_first, &conns[n].collected), 0);
		assert_int_equal(ras_paths_add(paths_first, &paths[n].collected), 0);
	}
	for (uint32_t round = 0; round < 1000; round++) {
		struct ras_conns conns_other = {0};
		struct ras_paths *merged_paths;

		shuffle(order, JOB_NODES);
		assert_int_equal(ras_paths_create(&memory, &merged_paths), 0);
		for (uint32_t n = 0; n < JOB_NODES; n++) {
			assert_int_equal(
				ras_conns_add(&conns_other, &conns[order[n]].collected), 0
			);
			assert_int_equal(
				ras_paths_add(merged_paths, &paths[order[n]].collected), 0
			);
		}
		assert_memory_equal(&conns_other, &conns_first, sizeof(conns_first));
		assert_paths_equal(paths_first, merged_paths);
		ras_paths_destroy(merged_paths);
	}
	ras_paths_destroy(paths_first);
}

static void of_two_summaries_of_a_path_the_one_with_more_probes_stays(void **state) {
	struct ras_path_row fewer = a_path;
	struct ras_paths *paths;
	struct part part;

	(void)state;
	fewer.count = 7;
	part_begin(&part, 3);
	assert_int_equal(ras_path_put(&part.writer, &fewer), 0);
	assert_int_equal(ras_path_put(&part.writer, &a_path), 0);
	assert_int_equal(ras_path_put(&part.writer, &fewer), 0);
	part_end(&part);
	assert_int_equal(ras_paths_create(&memory, &paths), 0);
	assert_int_equal(ras_paths_add(paths, &part.collected), 0);
	assert_int_equal(ras_paths_settle(paths), 1);
	assert_int_equal(ras_paths_at(paths, 0)->row.count, 100);
	assert_int_equal(ras_paths_at(paths, 0)->node, 3);
	ras_paths_destroy(paths);
}

static void a_communicator_that_all_its_ranks_left_is_dropped(void **state) {
	struct ras_comm_rank ranks[2] = {
		{.rank = 0, .left = 1, .cuda_device = -1, .nvml_device = -1},
		{.rank = 1, .left = 2, .exited_ms = 5, .cuda_device = -1, .nvml_device = -1},
	};
	struct ras_comm comm = {.size = 2, .rank_count = 2, .ranks = ranks};
	struct ras_merged_comm merged;
	struct ras_comms *comms;
	struct part part;

	(void)state;
	part_begin(&part, 1);
	for (uint64_t hash = 1; hash <= 4; hash++) {
		comm.id.hash = hash;
		ranks[1].left = hash % 2 == 0 ? 2 : 0;
		assert_int_equal(ras_comm_put(&part.writer, &comm), 0);
	}
	part_end(&part);
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	assert_int_equal(ras_comms_add(comms, &part.collected), 0);
	assert_int_equal(ras_comms_settle(comms), 2);
	for (uint32_t n = 0; n < 2; n++) {
		ras_comms_at(comms, n, &merged);
		assert_int_equal(merged.id.hash, 1 + 2 * n);
		assert_int_equal(merged.rank_count, 2);
		assert_int_equal(merged.ranks[0].rank.left, 1);
		assert_int_equal(merged.ranks[1].rank.left, 0);
		assert_int_equal(merged.ranks[1].comm.hash, 1 + 2 * n);
	}
	ras_comms_destroy(comms);
}

static void a_merge_without_memory_stays_as_it_was(void **state) {
	struct ras_comms *comms;
	struct part part;

	(void)state;
	assert_int_equal(ras_comms_create(&memory, &comms), 0);
	part_begin(&part, 1);
	assert_int_equal(ras_comm_put(&part.writer, &a_comm), 0);
	part_end(&part);
	for (size_t spare = 0;; spare += 64) {
		pool.limit_bytes = pool.used_bytes + spare;
		if (ras_comms_add(comms, &part.collected) == 0)
			break;
		assert_int_equal(ras_comms_settle(comms), 0);
	}
	assert_int_equal(ras_comms_settle(comms), 1);
	ras_comms_destroy(comms);
}

UNIT_GROUP(ras_payload_merge) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conns_are_summed_and_the_slowest_named),
		cmocka_unit_test(sums_of_hostile_numbers_stop_at_the_largest),
		cmocka_unit_test(an_arriving_rank_is_missing_no_more_whatever_the_order),
		cmocka_unit_test(a_rank_held_twice_is_kept_once_and_counted),
		cmocka_unit_test(of_two_holders_of_a_rank_the_one_that_lives_stays),
		cmocka_unit_test(two_sizes_under_one_id_are_kept_as_two),
		cmocka_unit_test(a_rank_has_the_signatures_of_its_row_s_head_or_its_own),
		cmocka_unit_test(two_jobs_with_one_communicator_are_told_as_such),
		cmocka_unit_test(the_merge_of_communicators_is_the_same_in_a_thousand_orders),
		cmocka_unit_test(conns_and_paths_merge_the_same_in_a_thousand_orders),
		cmocka_unit_test(of_two_summaries_of_a_path_the_one_with_more_probes_stays),
		cmocka_unit_test(a_communicator_that_all_its_ranks_left_is_dropped),
		cmocka_unit_test_setup_teardown(
			a_merge_without_memory_stays_as_it_was, pool_fill, pool_is_whole
		),
	};

	return cmocka_run_group_tests_name("ras_payload_merge", tests, pool_fill, pool_is_whole);
}
