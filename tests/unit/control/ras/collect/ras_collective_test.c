// SPDX-License-Identifier: BSD-3-Clause
// Successful collectives and their bounds. Faults: ras_collective_fault_test.c.
#include "collect/gather.h"
#include "core/core.h"

#include <lib/wire.h>
#include <ras/payload.h>
#include <support/cmocka.h>
#include <support/collective_net.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct topology {
	const char *name;
	void (*connect)(struct net *net);
};

static const struct topology topologies[] = {
	{"ring", net_ring},
	{"chords", net_chords},
	{"tree", net_tree},
};

static uint64_t collect(struct net *net, uint32_t root, uint32_t kind) {
	uint64_t id = 0;

	assert_int_equal(ras_collect(net->nodes[root].ras, net->now_ns, kind, 0, &id), 0);
	assert_true(id != 0);
	return id;
}

static const struct net_result *result_of(const struct net *net, uint32_t root) {
	assert_int_equal(net->nodes[root].result_count, 1);
	return &net->nodes[root].results[0];
}

static void assert_everybody_answered(const struct net *net, uint32_t root) {
	const struct net_result *kept = result_of(net, root);

	assert_int_equal(kept->result.member_count, net->count);
	assert_int_equal(kept->result.answered, net->count);
	assert_int_equal(kept->result.agreeing, net->count);
	assert_int_equal(kept->result.missing_count, 0);
	assert_int_equal(kept->result.surplus, 0);
	assert_int_equal(kept->result.truncated, 0);
	assert_false(kept->result.by_deadline);
	for (uint32_t n = 0; n < net->count; n++) {
		assert_int_equal(net->nodes[n].contributed, net->nodes[n].part_count);
		assert_int_equal(kept->parts_of[n], net->nodes[n].part_count);
	}
}

static void every_node_is_counted_once_on_every_topology_in_any_order(void **state) {
	static const uint32_t counts[] = {1, 2, 3, 4, 7, 16, 33};

	(void)state;
	for (size_t t = 0; t < COUNT_OF(topologies); t++) {
		for (size_t c = 0; c < COUNT_OF(counts); c++) {
			for (uint64_t seed = 0; seed < 8; seed++) {
				struct net *net = net_create(counts[c]);
				uint32_t root = (uint32_t)seed % net->count;

				net->random = seed;
				topologies[t].connect(net);
				collect(net, root, RAS_COLLECT_COMMS);
				net_run_out(net);
				assert_everybody_answered(net, root);
				assert_true(net_idle(net));
				net_destroy(net);
			}
		}
	}
}

static void a_flood_asks_each_link_once_and_chords_keep_it_shallow(void **state) {
	struct net *net = net_create(64);
	uint64_t asked = 0;

	(void)state;
	net_chords(net);
	collect(net, 0, RAS_COLLECT_COMMS);
	net_run_out(net);
	assert_everybody_answered(net, 0);
	assert_in_range(result_of(net, 0)->result.hops_max, 1, 6 + 2);
	// Each node but the root asks over all its links except one, and each request is answered
	// once.
	for (uint32_t n = 0; n < net->count; n++)
		asked += net->nodes[n].ras->links.count - (n > 0);
	assert_int_equal(net->sent_frames, 2 * asked);
	net_destroy(net);
}

static void the_result_never_comes_from_inside_the_call(void **state) {
	struct net *net = net_create(1);

	(void)state;
	collect(net, 0, RAS_COLLECT_PATHS);
	assert_int_equal(net->nodes[0].result_count, 0);
	assert_int_equal(collective_next_ns(net->nodes[0].ras), net->now_ns);
	net_run_out(net);
	assert_everybody_answered(net, 0);
	net_destroy(net);
}

static void a_request_that_cannot_be_is_refused_with_the_id_untouched(void **state) {
	struct net *net = net_create(1);
	struct ras *ras = net->nodes[0].ras;
	uint64_t id = 77;

	(void)state;
	assert_int_equal(ras_collect(ras, net->now_ns, 0, 0, &id), -EINVAL);
	assert_int_equal(ras_collect(ras, net->now_ns, RAS_COLLECT_KIND_END, 0, &id), -EINVAL);
	ras->leaving = true;
	assert_int_equal(ras_collect(ras, net->now_ns, RAS_COLLECT_CONNS, 0, &id), -EAGAIN);
	ras->leaving = false;
	ras->started = false;
	assert_int_equal(ras_collect(ras, net->now_ns, RAS_COLLECT_CONNS, 0, &id), -EAGAIN);
	ras->started = true;
	for (uint32_t fails_at = 1; fails_at <= 4; fails_at++) {
		net->allocation_fails_at = net->allocations + fails_at;
		assert_int_equal(ras_collect(ras, net->now_ns, RAS_COLLECT_COMMS, 0, &id), -ENOMEM);
	}
	assert_int_equal(id, 77);
	assert_int_equal(ras_collect_cancel(ras, net->now_ns, 5), -ENOENT);
	assert_true(net_idle(net));
	net_destroy(net);
}

static void a_share_of_many_parts_arrives_whole_and_in_order(void **state) {
	struct net *net = net_create(9);

	(void)state;
	net_tree(net);
	for (uint32_t n = 0; n < net->count; n++) {
		net->nodes[n].part_count = 1 + n % 4;
		net->nodes[n].part_bytes = n % 2 == 0 ? 60000 : 0;
	}
	net->nodes[4].part_bytes = RAS_COLLECT_PART_BYTES_MAX;
	collect(net, 0, RAS_COLLECT_PATHS);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 9);
	assert_int_equal(result_of(net, 0)->parts_of[4], 1);
	assert_int_equal(result_of(net, 0)->parts_of[6], 3);
	assert_int_equal(result_of(net, 0)->parts_of[3], 0); // empty parts are not kept
	net_destroy(net);
}

static void a_share_of_too_many_parts_is_cut_and_counted(void **state) {
	struct net *net = net_create(2);

	(void)state;
	net_ring(net);
	net->nodes[1].part_count = RAS_COLLECT_PARTS_MAX + 3;
	collect(net, 0, RAS_COLLECT_PATHS);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 2);
	assert_int_equal(result_of(net, 0)->parts_of[1], RAS_COLLECT_PARTS_MAX);
	assert_int_equal(ras_collect_counters(net->nodes[1].ras)->contributions_cut, 1);
	net_destroy(net);
}

static void a_part_that_overflows_its_writer_is_empty_and_counted(void **state) {
	struct net *net = net_create(2);

	(void)state;
	net_ring(net);
	net->nodes[1].part_bytes = RAS_COLLECT_PART_BYTES_MAX + 1;
	collect(net, 0, RAS_COLLECT_PATHS);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 2);
	assert_int_equal(result_of(net, 0)->parts_of[1], 0);
	assert_int_equal(ras_collect_counters(net->nodes[1].ras)->contributions_cut, 1);
	net_destroy(net);
}

static void the_root_keeps_sixteen_mebibytes_and_says_what_it_cut(void **state) {
	struct net *net = net_create(300);
	const struct net_result *kept;

	(void)state;
	net_chords(net);
	for (uint32_t n = 0; n < net->count; n++)
		net->nodes[n].part_bytes = 65000;
	collect(net, 0, RAS_COLLECT_PATHS);
	net_run_out(net);
	kept = result_of(net, 0);
	assert_int_equal(kept->result.answered, 300);
	assert_int_equal(kept->result.missing_count, 0);
	assert_int_equal(kept->parts + kept->result.truncated, 300);
	assert_in_range(kept->bytes, RAS_COLLECT_BYTES_MAX - 2 * 65000, RAS_COLLECT_BYTES_MAX);
	// The root's memory, and at most a frame and a partial share at each other node.
	assert_in_range(net->used_bytes_max, 0, 18u << 20 | 300 * 2 * RAS_FRAME_MAX);
	net_destroy(net);
}

static void an_inner_node_keeps_no_more_than_a_frame(void **state) {
	struct net *net = net_create(33);

	(void)state;
	// A chain, so that everything passes through node 1.
	for (uint32_t n = 1; n < net->count; n++)
		net_connect(net, n - 1, n);
	for (uint32_t n = 0; n < net->count; n++)
		net->nodes[n].part_bytes = 30000;
	collect(net, 0, RAS_COLLECT_PATHS);
	do {
		assert_in_range(net->nodes[1].ras->memory.used_bytes, 0, RAS_FRAME_MAX + 1024);
	} while (net_step(net));
	net_run_out(net);
	assert_everybody_answered(net, 0);
	net_destroy(net);
}

static void an_idle_instance_costs_a_few_hundred_bytes(void **state) {
	struct net *net = net_create(2);

	(void)state;
	assert_in_range(net->nodes[0].ras->memory.used_bytes, 0, 300);
	net_ring(net);
	collect(net, 0, RAS_COLLECT_COMMS);
	net_run_out(net);
	assert_in_range(net->nodes[1].ras->memory.used_bytes, 0, 700);
	net_destroy(net);
}

static void more_than_sixteen_at_once_are_refused_with_a_reason(void **state) {
	struct net *net = net_create(3);
	struct ras *asker = net->nodes[0].ras;
	const struct net_result *kept;
	uint64_t id = 77;

	(void)state;
	net_connect(net, 0, 1);
	net_connect(net, 1, 2);
	net->nodes[2].deaf = true;
	for (uint32_t n = 0; n < COLLECTIVES_MAX; n++)
		collect(net, 1, RAS_COLLECT_COMMS);
	assert_int_equal(
		ras_collect(net->nodes[1].ras, net->now_ns, RAS_COLLECT_COMMS, 0, &id), -EBUSY
	);
	assert_int_equal(id, 77);
	net_run(net);
	assert_int_equal(ras_collect(asker, net->now_ns, RAS_COLLECT_COMMS, 0, &id), 0);
	net_run(net);
	kept = result_of(net, 0);
	assert_int_equal(kept->result.answered, 1);
	assert_int_equal(kept->result.legs_refused, 1);
	assert_int_equal(kept->result.missing_count, 2);
	assert_int_equal(kept->missing[0].reason, RAS_MISSING_REFUSED);
	assert_int_equal(kept->missing[1].reason, RAS_MISSING_BEHIND);
	assert_int_equal(ras_collect_counters(net->nodes[1].ras)->requests_refused, 1);
	net_destroy(net);
}

static void conns_arrived(struct net *net, const struct ras_collected_part *part) {
	assert_int_equal(ras_conns_add(net->test, part), 0);
}

static void conns_begin_with_the_rows_of_our_own_links(void **state) {
	struct net *net = net_create(3);
	struct ras_conns conns = {0};
	struct link *link;

	(void)state;
	net_ring(net);
	for (uint32_t n = 0; n < net->count; n++)
		net->nodes[n].part_bytes = 0;
	net->arrived = conns_arrived;
	net->test = &conns;
	link = net_link(net, 1, 0);
	link->connects = 4;
	link->sent_bytes = 500;
	link->rtt = (struct link_rtt){.count = 2, .sum_ns = 30, .min_ns = 10, .max_ns = 20};
	collect(net, 0, RAS_COLLECT_CONNS);
	net_run(net);
	assert_int_equal(result_of(net, 0)->result.answered, 3);
	assert_int_equal(conns.all.rows, 6); // each link, from both ends
	assert_int_equal(conns.all.samples, 2);
	assert_int_equal(conns.all.min_ns, 10);
	assert_int_equal(conns.all.mean_ns, 15);
	assert_int_equal(conns.all.errors, 3);
	assert_int_equal(conns.all.sent_bytes, 500);
	assert_int_equal(conns.all.retransmits_unknown, 6);
	assert_int_equal(conns.worst_count, 1);
	assert_int_equal(conns.worst[0].node, net_id(1));
	assert_int_equal(conns.worst[0].row.peer, net_id(0));
	net_destroy(net);
}

// Write a share of COMMS as an agent does; it lists missing ranks unless the request excludes
// them.
static bool contribute_comms(
	struct net *net, const struct ras_contribution *wanted, struct wire_writer *writer
) {
	struct ras_comm_missing missing = {.rank = 1};
	struct ras_comm_rank rank = {.rank = 0};
	uint32_t *listed = net->test;

	for (uint64_t hash = 0; hash < 3; hash++) {
		struct ras_comm comm = {
			.id = {.hash = 2 - hash},
			.size = 2,
			.rank_count = 1,
			.ranks = &rank,
			.missing_count = 1,
			.missing = &missing,
		};

		for (uint32_t n = 0; n < wanted->skip_count; n++) {
			if (ras_comm_id_compare(&wanted->skip[n], &comm.id) == 0)
				comm.missing_count = 0;
		}
		*listed += comm.missing_count;
		assert_int_equal(ras_comm_put(writer, &comm), 0);
	}
	return false;
}

static void comms_arrived(struct net *net, const struct ras_collected_part *part) {
	(void)net;
	assert_true(part->size > 0);
}

static void missing_ranks_listed_above_are_not_listed_again_below(void **state) {
	struct net *net = net_create(15);
	uint32_t listed = 0;

	(void)state;
	net_tree(net);
	net->contribute = contribute_comms;
	net->arrived = comms_arrived;
	net->test = &listed;
	collect(net, 0, RAS_COLLECT_COMMS);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 15);
	assert_int_equal(listed, 3);
	net_destroy(net);
}

static void a_skip_list_that_is_full_grows_no_more(void **state) {
	struct collect_request request = {.id = 1, .kind = RAS_COLLECT_COMMS, .budget_ns = 1};
	static struct ras_comm_id skip[RAS_COLLECT_SKIP_MAX];
	static uint8_t frame[COLLECT_REQUEST_BYTES_MAX];
	struct net *net = net_create(3);
	struct wire_writer writer;
	uint32_t listed = 0;
	size_t size = 0;

	(void)state;
	net_connect(net, 0, 1);
	net_connect(net, 1, 2);
	net->contribute = contribute_comms;
	net->test = &listed;
	for (uint32_t n = 0; n < RAS_COLLECT_SKIP_MAX; n++)
		skip[n].hash = 100 + n;
	request.origin = net_id(0);
	wire_writer_init(&writer, frame, sizeof(frame));
	collect_request_encode(&request, skip, RAS_COLLECT_SKIP_MAX, &writer);
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	assert_int_equal(size, sizeof(frame));
	assert_int_equal(net_inject(net, 0, 1, frame, size), 0);
	net_run_out(net);
	assert_int_equal(listed, 2 * 3);
	net_destroy(net);
}

static void a_notice_reaches_everybody_else_once_on_every_topology(void **state) {
	(void)state;
	for (size_t t = 0; t < COUNT_OF(topologies); t++) {
		struct net *net = net_create(20);

		topologies[t].connect(net);
		assert_int_equal(
			ras_notice(net->nodes[3].ras, net->now_ns, RAS_NOTICE_OWN_MIN, "news", 4), 0
		);
		net_run(net);
		for (uint32_t n = 0; n < net->count; n++) {
			assert_int_equal(net->nodes[n].noticed, n != 3);
			if (n != 3)
				assert_int_equal(net->nodes[n].notice_origin, net_id(3));
		}
		flood_send_forget(net->nodes[0].ras, net_id(5), 9);
		net_run(net);
		for (uint32_t n = 0; n < net->count; n++) {
			assert_int_equal(net->nodes[n].forgotten, n != 0);
			assert_int_equal(net->nodes[n].noticed, n != 3);
		}
		net_destroy(net);
	}
}

static void a_notice_that_cannot_be_is_refused(void **state) {
	static uint8_t payload[RAS_NOTICE_BYTES_MAX + 1];
	struct net *net = net_create(2);
	struct ras *ras = net->nodes[0].ras;

	(void)state;
	net_ring(net);
	assert_int_equal(ras_notice(ras, net->now_ns, RAS_NOTICE_OWN_MIN - 1, payload, 1), -EINVAL);
	assert_int_equal(
		ras_notice(ras, net->now_ns, RAS_NOTICE_OWN_MIN, payload, sizeof(payload)),
		-EMSGSIZE
	);
	ras->leaving = true;
	assert_int_equal(ras_notice(ras, net->now_ns, RAS_NOTICE_OWN_MIN, payload, 1), -EAGAIN);
	ras->leaving = false;
	assert_int_equal(net->sent_frames, 0);
	assert_int_equal(
		ras_notice(ras, net->now_ns, RAS_NOTICE_OWN_MIN, payload, RAS_NOTICE_BYTES_MAX), 0
	);
	net_run(net);
	assert_int_equal(net->nodes[1].noticed, 1);
	net_destroy(net);
}

static void floods_that_overtake_each_other_are_all_seen_and_replays_are_not(void **state) {
	struct net *net = net_create(2);
	struct ras *ras = net->nodes[1].ras;
	struct flood_seen *seen = &ras->flood.notices;
	uint64_t origin = net_id(0);

	(void)state;
	assert_true(flood_record_first(ras, seen, origin, 200));
	assert_false(flood_record_first(ras, seen, origin, 200));
	assert_true(flood_record_first(ras, seen, origin, 137)); // the oldest one in the window
	assert_false(flood_record_first(ras, seen, origin, 137));
	assert_false(flood_record_first(ras, seen, origin, 136));
	assert_true(flood_record_first(ras, seen, origin, 199));
	assert_true(flood_record_first(ras, seen, origin, 230));
	assert_false(flood_record_first(ras, seen, origin, 199));
	assert_false(flood_record_first(ras, seen, origin, 166));
	assert_true(flood_record_first(ras, seen, origin, 1000));
	assert_false(flood_record_first(ras, seen, origin, 230));
	assert_true(flood_record_first(ras, seen, origin, 999));
	net_destroy(net);
}

static void the_memory_of_origins_is_bounded_and_loses_the_oldest(void **state) {
	struct net *net = net_create(1);
	struct ras *ras = net->nodes[0].ras;
	struct flood_seen *seen = &ras->flood.notices;

	(void)state;
	for (uint64_t origin = 0; origin < FLOOD_ORIGINS_MAX; origin++)
		assert_true(flood_record_first(ras, seen, 1 + origin * 7919, 5));
	assert_false(flood_record_first(ras, seen, 1, 5)); // marks this origin as recently used
	assert_true(flood_record_first(ras, seen, 2, 5));
	assert_int_equal(seen->count, FLOOD_ORIGINS_MAX);
	assert_false(flood_record_first(ras, seen, 1, 5));
	assert_false(flood_record_first(ras, seen, 2, 5));
	assert_false(flood_record_first(ras, seen, 1 + 2 * 7919, 5));
	assert_true(flood_record_first(ras, seen, 1 + 7919, 5)
	); // the entry of this origin was evicted
	assert_in_range(
		ras->memory.used_bytes, 0, FLOOD_ORIGINS_MAX * sizeof(struct flood_origin) + 512
	);
	net_destroy(net);
}

static void ids_grow_over_restarts_and_when_the_start_is_learnt_late(void **state) {
	struct net *net = net_create(1);
	struct ras *ras = net->nodes[0].ras;
	uint64_t first;
	uint64_t second;

	(void)state;
	first = flood_next_id(ras);
	ras_self(ras)->incarnation = ras_incarnation(1, 7); // refuted, but not restarted
	second = flood_next_id(ras);
	assert_int_equal(second, first + 1);
	ras_self(ras)->incarnation = ras_incarnation(9, 0);
	assert_true(flood_next_id(ras) > second + UINT32_MAX);
	net_destroy(net);
}

// The census of the brake is a sum. No user of the core takes part in it.
static void a_census_counts_each_member_once_and_asks_nobody_for_a_share(void **state) {
	static const uint32_t counts[] = {1, 2, 3, 7, 33};

	(void)state;
	for (size_t t = 0; t < COUNT_OF(topologies); t++) {
		for (size_t c = 0; c < COUNT_OF(counts); c++) {
			struct net *net = net_create(counts[c]);
			struct ras *root = net->nodes[counts[c] - 1].ras;

			net->random = c;
			topologies[t].connect(net);
			ras_enter(root, net->now_ns);
			collective_census_start(root, RAS_NS_PER_SEC, NULL, 0);
			ras_exit(root);
			net_run_out(net);
			assert_int_equal(root->liveness.census.word.reached, counts[c]);
			assert_true(net_idle(net));
			for (uint32_t n = 0; n < net->count; n++) {
				assert_int_equal(net->nodes[n].contributed, 0);
				assert_int_equal(net->nodes[n].result_count, 0);
			}
			net_destroy(net);
		}
	}
}

static void names_exist_for_what_is_known_only(void **state) {
	(void)state;
	for (uint32_t n = 0; n < RAS_MISSING_COUNT; n++)
		assert_non_null(ras_missing_name((enum ras_missing)n));
	assert_null(ras_missing_name(RAS_MISSING_COUNT));
}

UNIT_GROUP(ras_collective) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_node_is_counted_once_on_every_topology_in_any_order),
		cmocka_unit_test(a_flood_asks_each_link_once_and_chords_keep_it_shallow),
		cmocka_unit_test(the_result_never_comes_from_inside_the_call),
		cmocka_unit_test(a_request_that_cannot_be_is_refused_with_the_id_untouched),
		cmocka_unit_test(a_share_of_many_parts_arrives_whole_and_in_order),
		cmocka_unit_test(a_share_of_too_many_parts_is_cut_and_counted),
		cmocka_unit_test(a_part_that_overflows_its_writer_is_empty_and_counted),
		cmocka_unit_test(the_root_keeps_sixteen_mebibytes_and_says_what_it_cut),
		cmocka_unit_test(an_inner_node_keeps_no_more_than_a_frame),
		cmocka_unit_test(an_idle_instance_costs_a_few_hundred_bytes),
		cmocka_unit_test(more_than_sixteen_at_once_are_refused_with_a_reason),
		cmocka_unit_test(conns_begin_with_the_rows_of_our_own_links),
		cmocka_unit_test(missing_ranks_listed_above_are_not_listed_again_below),
		cmocka_unit_test(a_skip_list_that_is_full_grows_no_more),
		cmocka_unit_test(a_notice_reaches_everybody_else_once_on_every_topology),
		cmocka_unit_test(a_notice_that_cannot_be_is_refused),
		cmocka_unit_test(floods_that_overtake_each_other_are_all_seen_and_replays_are_not),
		cmocka_unit_test(the_memory_of_origins_is_bounded_and_loses_the_oldest),
		cmocka_unit_test(ids_grow_over_restarts_and_when_the_start_is_learnt_late),
		cmocka_unit_test(a_census_counts_each_member_once_and_asks_nobody_for_a_share),
		cmocka_unit_test(names_exist_for_what_is_known_only),
	};

	return cmocka_run_group_tests_name("ras_collective", tests, NULL, NULL);
}
