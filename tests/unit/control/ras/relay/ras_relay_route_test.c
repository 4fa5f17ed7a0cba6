// SPDX-License-Identifier: BSD-3-Clause
// The routing rules over whole rings: every source, every destination, every single fault.
#include "control/ras/relay/ras_relay_net.h"
#include "relay/relay_packet.h"

#include <support/cmocka.h>
#include <support/sanitized.h>

#include <stdio.h>

struct tally {
	uint32_t sent, delivered, refused, expired;
	uint32_t hops_max;
	uint64_t frames;
};

static void forget_reports(struct net *net, uint32_t from, uint32_t to) {
	net->nodes[from].report_count = 0;
	net->nodes[to].delivery_count = 0;
}

// Send one message and wait for its end.
static void try_pair(struct net *net, uint32_t from, uint32_t to, struct tally *tally) {
	struct net_node *source = &net->nodes[from];
	uint64_t frames = net->frames;

	forget_reports(net, from, to);
	assert_int_equal(net_send(net, from, to, 1), 0);
	net_settle(net);
	assert_int_equal(source->report_count, 1);
	assert_true(net->nodes[to].delivery_count <= 1);
	tally->sent++;
	tally->frames += net->frames - frames;
	switch (source->reports[0].outcome) {
	case RAS_RELAY_OUTCOME_DELIVERED:
		assert_int_equal(net->nodes[to].delivery_count, 1);
		tally->delivered++;
		if (source->reports[0].hops > tally->hops_max)
			tally->hops_max = source->reports[0].hops;
		break;
	case RAS_RELAY_OUTCOME_REFUSED:
		assert_int_equal(net->nodes[to].delivery_count, 0);
		tally->refused++;
		break;
	case RAS_RELAY_OUTCOME_EXPIRED:
	case RAS_RELAY_OUTCOME_COUNT:
		tally->expired++;
	}
}

// Try every pair without this node.
static void try_all(struct net *net, uint32_t except, struct tally *tally) {
	for (uint32_t from = 0; from < net->count; from++) {
		for (uint32_t to = 0; to < net->count; to++) {
			if (from != except && to != except && from != to)
				try_pair(net, from, to, tally);
		}
	}
}

static struct net *long_net(uint32_t count) {
	struct net *net = net_create(count);

	net_link_long(net);
	return net;
}

static uint32_t ceil_log2(uint32_t value) {
	uint32_t bits = 0;

	while ((1u << bits) < value)
		bits++;
	return bits;
}

static void wire_node(struct net *net, uint32_t node, enum net_wire wire) {
	for (uint32_t n = 0; n < net->count; n++) {
		if (net->wires[node][n] != NET_ABSENT)
			net_wire(net, node, n, wire);
	}
}

static const uint32_t sizes[] = {2, 3, 4, 5, 16, 64};

static void without_faults_every_pair_is_reached_by_the_shortest_rule(void **state) {
	(void)state;
	for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		struct net *net = long_net(sizes[s]);
		struct tally tally = {0};

		for (uint32_t from = 0; from < net->count; from++) {
			for (uint32_t to = 0; to < net->count; to++)
				try_pair(net, from, to, &tally);
		}
		assert_int_equal(tally.delivered, tally.sent);
		assert_true(tally.hops_max <= ceil_log2(net->count));
		net_destroy(net);
	}
}

static void one_dead_node_stops_no_message_between_the_others(void **state) {
	(void)state;
	for (uint32_t count = 16; count <= OR_SANITIZED(64u, 16u); count *= 4) {
		struct net *net = long_net(count);
		struct tally tally = {0};

		for (uint32_t dead = 0; dead < count; dead++) {
			wire_node(net, dead, NET_DOWN);
			try_all(net, dead, &tally);
			wire_node(net, dead, NET_GOOD);
		}
		print_message(
			"# %u nodes, one dead: %u sent, longest %u hops\n", count, tally.sent,
			tally.hops_max
		);
		assert_int_equal(tally.delivered, tally.sent);
		assert_true(tally.hops_max < relay_hops_max(count, true));
		net_destroy(net);
	}
}

static void a_dead_destination_is_refused_and_nothing_goes_in_circles(void **state) {
	(void)state;
	for (uint32_t count = 16; count <= OR_SANITIZED(64u, 16u); count *= 4) {
		struct net *net = long_net(count);
		struct tally tally = {0};

		for (uint32_t dead = 0; dead < count; dead++) {
			wire_node(net, dead, NET_DOWN);
			for (uint32_t from = 0; from < count; from++) {
				if (from != dead)
					try_pair(net, from, dead, &tally);
			}
			wire_node(net, dead, NET_GOOD);
		}
		print_message(
			"# %u nodes, destination dead: %u sent, %.1f frames each with %u tries\n",
			count, tally.sent, (double)tally.frames / tally.sent,
			net->profile.relay_tries
		);
		assert_int_equal(tally.refused, tally.sent);
		// Each try takes at most the longest way, in both directions.
		assert_true(
			tally.frames <=
			(uint64_t)tally.sent * net->profile.relay_tries * 2 * (ceil_log2(count) + 2)
		);
		net_destroy(net);
	}
}

static void one_dead_link_stops_no_message(void **state) {
	(void)state;
	for (uint32_t count = 16; count <= OR_SANITIZED(64u, 16u); count *= 4) {
		struct net *net = long_net(count);
		struct tally tally = {0};
		uint32_t step = count == 16 ? 1 : 7; // each link, or a sample

		for (uint32_t link = 0; link < count * count; link += step) {
			uint32_t a = link / count, b = link % count;

			if (a >= b || net->wires[a][b] == NET_ABSENT)
				continue;
			net_wire(net, a, b, NET_DOWN);
			try_all(net, NET_NODES_MAX, &tally);
			net_wire(net, a, b, NET_GOOD);
		}
		print_message(
			"# %u nodes, one link dead: %u sent, longest %u hops\n", count, tally.sent,
			tally.hops_max
		);
		assert_int_equal(tally.delivered, tally.sent);
		net_destroy(net);
	}
}

static void a_silent_link_is_gone_round_by_the_next_try(void **state) {
	struct net *net = long_net(16);
	struct tally tally = {0};

	(void)state;
	for (uint32_t a = 0; a < net->count; a++) {
		for (uint32_t b = a + 1; b < net->count; b++) {
			if (net->wires[a][b] == NET_ABSENT)
				continue;
			net_wire(net, a, b, NET_SILENT);
			for (uint32_t to = 0; to < net->count; to++) {
				if (to != a)
					try_pair(net, a, to, &tally);
			}
			net_wire(net, a, b, NET_GOOD);
		}
	}
	assert_int_equal(tally.delivered, tally.sent);
	net_destroy(net);
}

// Long links have 0.6 to 1.6 times their nominal length, so real rings are less regular than
// above.
static void links_of_uneven_length_stay_within_the_hop_limit(void **state) {
	uint64_t seed = 7;

	(void)state;
	for (uint32_t round = 0; round < 4; round++) {
		struct net *net = net_create(NET_NODES_MAX);
		struct tally tally = {0};

		for (uint32_t length = 2; length <= net->count / 2; length *= 2) {
			for (uint32_t n = 0; n < net->count; n++) {
				uint32_t least = (length * 6 + 9) / 10, most = length * 16 / 10;
				uint32_t real =
					least + (uint32_t)(net_random(&seed) % (most - least + 1));

				net_link(net, n, (n + real) % net->count);
			}
		}
		assert_true(net->count > 0);
		for (uint32_t n = 0; n < 4000; n++) {
			uint32_t from = (uint32_t)(net_random(&seed) % net->count);
			uint32_t to = (uint32_t)(net_random(&seed) % net->count);

			if (from != to)
				try_pair(net, from, to, &tally);
		}
		print_message(
			"# uneven links: %u sent, longest %u hops, limit %u\n", tally.sent,
			tally.hops_max, relay_hops_max(net->count, true)
		);
		assert_int_equal(tally.delivered, tally.sent);
		net_destroy(net);
	}
}

static bool count_back(struct net *net, struct net_frame *frame) {
	uint32_t *back = net->filter_ctx;
	struct relay_header header;

	assert_int_equal(relay_header_decode(frame->bytes, frame->size, &header), 0);
	*back += header.kind == RELAY_DATA && frame->from == 1 && frame->to == 0;
	return true;
}

static void nothing_goes_straight_back_where_it_came_from(void **state) {
	struct net *net = net_create(8);
	struct tally tally = {0};
	uint32_t back = 0;

	(void)state;
	net_wire(net, 1, 2, NET_DOWN);
	net->filter = count_back;
	net->filter_ctx = &back;
	try_pair(net, 0, 2, &tally);
	assert_int_equal(back, 0);
	// A plain ring has no second way towards the destination, so every try of this message is
	// rejected.
	assert_int_equal(net->nodes[0].reports[0].tries, net->profile.relay_tries);
	assert_int_equal(tally.refused, 1);
	net_destroy(net);
}

static void a_ring_alone_carries_to_its_far_side(void **state) {
	struct net *net = net_create(64);
	struct tally tally = {0};

	(void)state;
	net->profile.long_rings = false;
	for (uint32_t to = 1; to < net->count; to++)
		try_pair(net, 0, to, &tally);
	assert_int_equal(tally.delivered, tally.sent);
	assert_int_equal(tally.hops_max, 32);
	net_destroy(net);
}

static void two_runs_take_the_same_way(void **state) {
	uint64_t frames[2];

	(void)state;
	for (uint32_t run = 0; run < 2; run++) {
		struct net *net = long_net(64);
		struct tally tally = {0};

		wire_node(net, 9, NET_DOWN);
		for (uint32_t to = 10; to < 60; to++)
			try_pair(net, 0, to, &tally);
		frames[run] = net->frames;
		net_destroy(net);
	}
	assert_int_equal(frames[0], frames[1]);
}

UNIT_GROUP(ras_relay_route) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_faults_every_pair_is_reached_by_the_shortest_rule),
		cmocka_unit_test(one_dead_node_stops_no_message_between_the_others),
		cmocka_unit_test(a_dead_destination_is_refused_and_nothing_goes_in_circles),
		cmocka_unit_test(one_dead_link_stops_no_message),
		cmocka_unit_test(a_silent_link_is_gone_round_by_the_next_try),
		cmocka_unit_test(links_of_uneven_length_stay_within_the_hop_limit),
		cmocka_unit_test(nothing_goes_straight_back_where_it_came_from),
		cmocka_unit_test(a_ring_alone_carries_to_its_far_side),
		cmocka_unit_test(two_runs_take_the_same_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
