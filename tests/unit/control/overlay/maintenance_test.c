// SPDX-License-Identifier: BSD-3-Clause
// Orders of maintenance on three agents with fake tables, links, clocks and state directories.
#include "overlay/inside.h"

#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 3
#define SEC RAS_NS_PER_SEC
#define HOUR (3600 * SEC)

struct node {
	struct overlay overlay;
	uint32_t versions[NODES]; // of the switches, in this agent's table
	bool runs, apart;	  // apart: no link to the others
	uint64_t starts;
	uint64_t timer_ns, tick_ns; // 0: not set
	char *file;		    // NULL: none
};

static struct {
	struct node nodes[NODES];
	struct ras_record records[NODES];
	char names[NODES][4];
	uint64_t now_ns;
	int64_t clock_step_ns;
	uint32_t notices, relayed;
	bool notices_are_lost, core_has_no_memory;
} stage;

static struct node *node_of(const struct ras *ras) {
	return (struct node *)(void *)ras;
}

static uint32_t index_of(const struct node *node) {
	return (uint32_t)(node - stage.nodes);
}

static bool hears(const struct node *from, const struct node *to) {
	return from == to || (from->runs && to->runs && from->apart == to->apart);
}

uint64_t ras_self_id(const struct ras *ras) {
	return stage.records[index_of(node_of(ras))].id;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.slots_max = NODES, .joined = true};
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	uint32_t version = node_of(ras)->versions[slot];

	*ret_peer = (struct ras_peer){
		.record = &stage.records[slot],
		.slot = slot,
		.incarnation = stage.nodes[slot].starts,
		.maint = (version & 1) != 0,
		.maint_version = version,
	};
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	for (uint32_t n = 0; n < NODES; n++) {
		if (stage.records[n].id == id)
			return ras_peer_at(ras, n, ret_peer);
	}
	return -ENOENT;
}

int ras_restore_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t version) {
	(void)now_ns;
	if (version > RAS_MAINT_VERSION_MAX)
		return -EOVERFLOW;
	if (stage.core_has_no_memory)
		return -ENOMEM;
	for (uint32_t n = 0; n < NODES; n++) {
		for (uint32_t slot = 0; slot < NODES; slot++) {
			struct node *node = &stage.nodes[n];

			if (hears(node_of(ras), node) && stage.records[slot].id == peer &&
			    node->versions[slot] < version)
				node->versions[slot] = version;
		}
	}
	return 0;
}

int ras_set_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, bool on) {
	struct ras_peer now = {.maint = false};

	assert_int_equal(ras_peer_find(ras, peer, &now), 0);
	return ras_restore_maintenance(ras, now_ns, peer, now.maint_version + (now.maint != on));
}

int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info) {
	if (n >= NODES)
		return -ENOENT;
	*ret_info = (struct ras_link_info){
		.peer = stage.records[n].id,
		.ready = n != index_of(node_of(ras)) && hears(node_of(ras), &stage.nodes[n]),
		.mine = RAS_USE_NEXT,
	};
	return 0;
}

int ras_relay_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_relay_message *message,
	uint64_t *ret_message_id
) {
	(void)now_ns;
	(void)ret_message_id;
	assert_int_equal(message->port, OVERLAY_PORT_MAINTENANCE);
	assert_in_range(message->size, 1, RAS_RELAY_BULK_BYTES_MAX);
	for (uint32_t n = 0; n < NODES; n++) {
		if (stage.records[n].id == message->destination &&
		    hears(node_of(ras), &stage.nodes[n]))
			assert_int_equal(
				overlay_maintenance_deliver(
					&stage.nodes[n].overlay, message->payload, message->size
				),
				0
			);
	}
	stage.relayed++;
	return 0;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	(void)overlay;
	return stage.now_ns;
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	(void)overlay;
	return (int64_t)(1795000000 * SEC + now_ns) + stage.clock_step_ns;
}

void overlay_set_notice_consumer(
	struct overlay *overlay, uint32_t kind, overlay_notice_fn *fn, void *ctx
) {
	(void)overlay;
	(void)ctx;
	assert_int_equal(kind, OVERLAY_NOTICE_MAINTENANCE);
	assert_ptr_equal(fn, overlay_maintenance_notice);
}

int overlay_notice_send(struct overlay *overlay, uint32_t kind, const void *bytes, size_t size) {
	struct node *from = node_of(overlay->ras);

	assert_int_equal(kind, OVERLAY_NOTICE_MAINTENANCE);
	assert_in_range(size, 1, RAS_NOTICE_BYTES_MAX);
	for (uint32_t n = 0; n < NODES; n++) {
		if (from != &stage.nodes[n] && hears(from, &stage.nodes[n]) &&
		    !stage.notices_are_lost)
			overlay_maintenance_notice(&stage.nodes[n].overlay, 1, bytes, size);
	}
	stage.notices++;
	return 0;
}

static struct node *timer_node(const struct loop *loop, uint32_t *ret_index) {
	*ret_index = (uint32_t)((const struct node *)(const void *)loop - stage.nodes);
	return &stage.nodes[*ret_index];
}

int loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns) {
	uint32_t n;
	struct node *node = timer_node(loop, &n);

	if (timer == &node->overlay.maintenance.tick)
		node->tick_ns = at_ns;
	else
		node->timer_ns = at_ns;
	return 0;
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer) {
	loop_timer_set(loop, timer, 0);
}

int state_read_text(struct state *state, enum state_text which, char **ret_text) {
	const struct node *node = (const struct node *)(const void *)state;

	assert_int_equal(which, STATE_MAINTENANCE);
	if (node->file == NULL)
		return -ENOENT;
	*ret_text = strdup(node->file);
	return 0;
}

void state_save_text(struct state *state, enum state_text which, char *text) {
	struct node *node = (struct node *)(void *)state;

	assert_int_equal(which, STATE_MAINTENANCE);
	free(node->file);
	node->file = text;
}

static void node_start(uint32_t n) {
	static char cluster[] = "c";
	struct node *node = &stage.nodes[n];

	*node = (struct node){.file = node->file, .starts = node->starts + 1, .runs = true};
	node->overlay.ras = (struct ras *)(void *)node;
	node->overlay.state = (struct state *)(void *)node;
	node->overlay.loop = (struct loop *)(void *)node;
	node->overlay.remember.cluster = cluster;
	assert_int_equal(overlay_maintenance_start(&node->overlay), 0);
}

static void node_stop(uint32_t n) {
	overlay_maintenance_end(&stage.nodes[n].overlay);
	overlay_maintenance_fini(&stage.nodes[n].overlay);
	stage.nodes[n].runs = false;
}

static void pass(uint64_t ns) {
	for (uint64_t end_ns = stage.now_ns + ns; stage.now_ns < end_ns;) {
		stage.now_ns += 100 * RAS_NS_PER_MS;
		for (uint32_t n = 0; n < NODES; n++) {
			struct node *node = &stage.nodes[n];
			struct overlay_maintenance *maintenance = &node->overlay.maintenance;

			if (node->runs && node->timer_ns != 0 && node->timer_ns <= stage.now_ns) {
				node->timer_ns = 0;
				maintenance->timer.expired(&maintenance->timer, stage.now_ns);
			}
			if (node->runs && node->tick_ns != 0 && node->tick_ns <= stage.now_ns) {
				node->tick_ns = 0;
				maintenance->tick.expired(&maintenance->tick, stage.now_ns);
			}
		}
	}
}

// Let an agent begin, and all others learn of its table.
static void node_join(uint32_t n) {
	const struct ras_event joined = {.kind = RAS_EVENT_JOINED};

	node_start(n);
	for (uint32_t other = 0; other < NODES; other++) {
		for (uint32_t slot = 0; slot < NODES; slot++)
			if (stage.nodes[other].runs)
				(void)ras_restore_maintenance(
					stage.nodes[other].overlay.ras, 0, stage.records[slot].id,
					stage.nodes[other].versions[slot]
				);
	}
	for (uint32_t other = 0; other < NODES; other++) {
		if (stage.nodes[other].runs)
			overlay_maintenance_event(&stage.nodes[other].overlay, &joined);
	}
}

static int begin(void **state) {
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memset(&stage, 0, sizeof(stage));
	stage.now_ns = 100 * SEC;
	for (uint32_t n = 0; n < NODES; n++) {
		snprintf(stage.names[n], sizeof(stage.names[n]), "n%u", n);
		stage.records[n] = (struct ras_record
		){.name = stage.names[n], .name_length = 2, .id = ras_id(stage.names[n], 2)};
	}
	for (uint32_t n = 0; n < NODES; n++)
		node_start(n);
	return 0;
}

static int end(void **state) {
	(void)state;
	for (uint32_t n = 0; n < NODES; n++) {
		if (stage.nodes[n].runs)
			node_stop(n);
		free(stage.nodes[n].file);
	}
	return 0;
}

// Order maintenance of n0 at one agent.
static int order_at(uint32_t n, const char *reason, uint64_t for_ns) {
	struct overlay_maintenance_order order = {.for_ns = for_ns, .uid = 7, .user = "joe"};

	snprintf(order.reason, sizeof(order.reason), "%s", reason);
	return overlay_set_maintenance(&stage.nodes[n].overlay, stage.records[0].id, &order);
}

static bool order_of(uint32_t n, struct overlay_maintenance_order *order, uint64_t *age_ns) {
	struct ras_peer peer;

	assert_int_equal(ras_peer_at(stage.nodes[n].overlay.ras, 0, &peer), 0);
	return overlay_maintenance_find(&stage.nodes[n].overlay, &peer, order, age_ns);
}

static void expect_order(uint32_t n, const char *reason, uint64_t left_ns) {
	struct overlay_maintenance_order order;
	uint64_t age_ns;

	assert_true(order_of(n, &order, &age_ns));
	assert_string_equal(order.reason, reason);
	assert_string_equal(order.user, "joe");
	assert_int_equal(order.uid, 7);
	if (left_ns == RAS_NEVER)
		assert_true(order.for_ns == RAS_NEVER);
	else
		assert_in_range(order.for_ns, left_ns - 4 * SEC, left_ns); // each hop rounds
}

static void expect_version(uint32_t version) {
	for (uint32_t n = 0; n < NODES; n++) {
		if (stage.nodes[n].runs)
			assert_int_equal(stage.nodes[n].versions[0], version);
	}
}

static void order_reaches_all_and_ends_by_itself_on_all(void **state) {
	(void)state;
	assert_int_equal(order_at(1, "RMA \"1\"", 2 * HOUR), 0);
	pass(HOUR);
	for (uint32_t n = 0; n < NODES; n++)
		expect_order(n, "RMA \"1\"", HOUR);
	expect_version(1);
	pass(HOUR + 2 * SEC);
	expect_version(2);
	for (uint32_t n = 0; n < NODES; n++)
		assert_int_equal(stage.nodes[n].overlay.maintenance.detail_count, 0);
}

static void second_order_replaces_reason_and_end(void **state) {
	(void)state;
	assert_int_equal(order_at(1, "short", 10 * SEC), 0);
	pass(5 * SEC);
	assert_int_equal(order_at(2, "long", RAS_NEVER), 0);
	pass(60 * SEC);
	expect_version(3);
	for (uint32_t n = 0; n < NODES; n++)
		expect_order(n, "long", RAS_NEVER);
	assert_int_equal(
		overlay_set_maintenance(&stage.nodes[0].overlay, stage.records[0].id, NULL), 0
	);
	pass(SEC);
	expect_version(4);
}

// A minority lost its state directory. The file of one agent suffices, in any order of starts.
static void order_survives_restart_of_all_with_one_file(void **state) {
	(void)state;
	assert_int_equal(order_at(1, "disk", 2 * HOUR), 0);
	pass(5 * SEC);
	for (uint32_t kept = 0; kept < NODES; kept++) {
		for (uint32_t n = 0; n < NODES; n++)
			node_stop(n);
		for (uint32_t n = 0; n < NODES; n++) {
			if (n != kept) {
				free(stage.nodes[n].file);
				stage.nodes[n].file = NULL;
			}
		}
		for (uint32_t n = 0; n < NODES; n++) {
			node_join((kept + n + 1) % NODES); // the agent with the file joins last
			pass(5 * SEC);
		}
		for (uint32_t n = 0; n < NODES; n++)
			expect_order(n, "disk", 2 * HOUR - (20 + kept * 15) * SEC);
		expect_version(1);
	}
}

static void time_of_a_stop_counts_and_a_running_agent_corrects_it(void **state) {
	(void)state;
	assert_int_equal(order_at(1, "disk", 2 * HOUR), 0);
	pass(5 * SEC);
	node_stop(0);
	stage.now_ns += HOUR / 2;
	node_start(0);
	stage.nodes[0].versions[0] = 1;
	expect_order(0, "disk", 2 * HOUR - HOUR / 2 - 5 * SEC);
	node_stop(0);
	// A clock that is years ahead or behind after a boot ends no order at once.
	for (int n = 0; n < 2; n++) {
		stage.clock_step_ns = (n == 0 ? 1 : -1) * (int64_t)(10000 * HOUR);
		node_start(0);
		assert_int_equal(stage.nodes[0].overlay.maintenance.detail_count, 1);
		pass(5 * SEC);
		expect_order(0, "disk", 2 * HOUR - HOUR / 2 - (10 + 5 * (uint64_t)n) * SEC);
		stage.clock_step_ns = 0;
		node_stop(0);
	}
}

// Both sides of a partition gave an order. Versions are equal, so the origin decides, and neither
// the time of the order nor a clock does.
static void orders_of_two_sides_end_as_one(void **state) {
	uint32_t winner = stage.records[1].id > stage.records[2].id ? 1 : 2;
	uint32_t loser = 3 - winner;

	(void)state;
	stage.nodes[2].apart = true;
	assert_int_equal(order_at(winner, "wins", HOUR), 0);
	pass(10 * SEC);
	assert_int_equal(order_at(loser, "loses", RAS_NEVER), 0);
	pass(10 * SEC);
	stage.nodes[2].apart = false;
	for (uint32_t n = 0; n < NODES; n++)
		stage.nodes[n].overlay.maintenance.neighbour_count =
			0; // as if they had died and returned
	pass(5 * SEC);
	for (uint32_t n = 0; n < NODES; n++)
		expect_order(n, "wins", HOUR - 25 * SEC);
	pass(HOUR);
	expect_version(2);
}

static void agent_that_missed_a_notice_receives_the_repetition(void **state) {
	struct overlay_maintenance_order order;
	uint64_t age_ns;

	(void)state;
	stage.notices_are_lost = true;
	assert_int_equal(order_at(1, "missed", RAS_NEVER), 0);
	stage.notices_are_lost = false;
	pass(60 * SEC);
	assert_false(order_of(2, &order, &age_ns));
	pass(600 * SEC);
	expect_order(2, "missed", RAS_NEVER);
	assert_true(order_of(2, &order, &age_ns));
	assert_in_range(age_ns, 590 * SEC, 665 * SEC);
	assert_in_range(stage.notices, 2, 3);
	assert_int_equal(stage.relayed, 0);
}

#define ITEM(node, version, origin, reason, left)                           \
	"{\"node\":\"" node "\",\"version\":" version ",\"origin\":" origin \
	",\"uid\":7,\"user\":\"joe\",\"reason\":\"" reason "\",\"age_s\":1,\"left_s\":" left "}"
#define ORDER(node, version, origin, reason, left) "[" ITEM(node, version, origin, reason, left) "]"
#define ID "255"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"

static void hostile_orders_change_nothing(void **state) {
	static const char *const messages[] = {
		"",
		"{}",
		"[1]",
		"[{}]",
		"[{\"node\":\"n0\"}]",
		ORDER("n0", "2", ID, "even", "null"),
		ORDER("n0", "0", ID, "none", "null"),
		ORDER("n0", "-1", ID, "negative", "null"),
		ORDER("n0", "16777217", ID, "above the limit", "null"),
		ORDER("n0", "4294967297", ID, "beyond 32 bits", "null"),
		ORDER("n0", "1", "\"ff\"", "origin that is text", "null"),
		ORDER("n0", "1", "0.5", "origin that is no integer", "null"),
		ORDER("n0", "1", ID, LONG LONG, "null"),
		ORDER("n0", "1", ID, "past", "-1"),
		ORDER("n0", "1", ID, "end that is text", "\"3600\""),
		ORDER("n0", "1", ID, "end that is no integer", "3600.5"),
		ORDER("n0", "1", ID, "\\u001b[2Jescape", "null"),
		ORDER("n0", "1", ID, "two\\nlines", "null"),
		ORDER("n0", "1", ID, "delete \\u007f", "null"),
		ORDER("n0", "1", ID, "C1 \xc2\x9b[J", "null"),
		ORDER("n0", "1", ID, "C1 \\u009b2J", "null"),
		ORDER("n0", "1", ID, "reversed \\u202e", "null"),
		ORDER("", "1", ID, "no node", "null"),
		ORDER(LONG, "1", ID, "long node", "null"),
		ORDER("n9", "1", ID, "unknown node", "null"),
		ORDER("n0", "1", ID, "\\u0000", "null"),
	};

	(void)state;
	for (size_t n = 0; n < sizeof(messages) / sizeof(messages[0]); n++) {
		overlay_maintenance_notice(
			&stage.nodes[0].overlay, 1, messages[n], strlen(messages[n])
		);
		assert_int_equal(stage.nodes[0].overlay.maintenance.detail_count, 0);
	}
	// All but the order of an unknown node are malformed.
	assert_int_equal(
		overlay_maintenance_counters(&stage.nodes[0].overlay)->orders_malformed,
		sizeof(messages) / sizeof(messages[0]) - 1
	);
	// A duration beyond the limit of orders is cut to it.
	overlay_maintenance_notice(
		&stage.nodes[0].overlay, 1, ORDER("n0", "1", ID, "ok", "9223372036854775807"),
		strlen(ORDER("n0", "1", ID, "ok", "9223372036854775807"))
	);
	pass(5 * SEC);
	expect_order(0, "ok", OVERLAY_MAINTENANCE_FOR_MAX_NS - 4 * SEC);
}

static void receive(uint32_t n, const char *message) {
	overlay_maintenance_notice(&stage.nodes[n].overlay, 1, message, strlen(message));
}

// Regression: a member could hide the orders of others behind a malformed one.
static void malformed_order_hides_no_other(void **state) {
	(void)state;
	receive(0, "[1," ITEM("n0", "2", ID, "even", "null") "," ITEM(
			   "n0", "1", ID, "good", "null"
		   ) ",{}]");
	pass(5 * SEC);
	expect_order(0, "good", RAS_NEVER);
	assert_int_equal(
		overlay_maintenance_counters(&stage.nodes[0].overlay)->orders_malformed, 3
	);
}

// Regression: an order with an invented origin of a higher id replaced the order of a member.
static void order_of_no_member_replaces_none_and_is_replaced(void **state) {
	(void)state;
	assert_int_equal(order_at(1, "real", RAS_NEVER), 0);
	pass(5 * SEC);
	receive(0, ORDER("n0", "1", "-1", "invented", "null"));
	pass(5 * SEC);
	expect_order(0, "real", RAS_NEVER);
	// An agent without an order accepts one of an agent that is gone, until a member has one.
	receive(0, ORDER("n0", "3", "-1", "of an agent that is gone", "null"));
	pass(5 * SEC);
	expect_order(0, "of an agent that is gone", RAS_NEVER);
	stage.nodes[1].versions[0] = 2;
	json_object_del(stage.nodes[1].overlay.maintenance.versions, "n0");
	assert_int_equal(order_at(1, "of a member", RAS_NEVER), 0);
	pass(5 * SEC);
	expect_order(0, "of a member", RAS_NEVER);
}

// Regression: the order was stored, and began later although the caller had an error.
static void order_that_the_core_refuses_is_not_stored(void **state) {
	struct overlay_maintenance_order order;
	uint64_t age_ns;

	(void)state;
	assert_int_equal(order_at(1, "first", RAS_NEVER), 0);
	pass(5 * SEC);
	stage.core_has_no_memory = true;
	assert_int_equal(order_at(1, "refused", RAS_NEVER), -ENOMEM);
	stage.core_has_no_memory = false;
	pass(20 * SEC);
	expect_order(1, "first", RAS_NEVER);
	expect_version(1);
	// An order of another member waits until the core has memory.
	stage.core_has_no_memory = true;
	receive(2, ORDER("n0", "3", ID, "received", "null"));
	pass(5 * SEC);
	assert_false(order_of(2, &order, &age_ns));
	stage.core_has_no_memory = false;
	pass(5 * SEC);
	expect_order(2, "received", RAS_NEVER);
}

// Regression: a member that claimed the highest version made `off` do nothing for good.
static void version_of_a_liar_is_not_kept(void **state) {
	(void)state;
	node_stop(0);
	free(stage.nodes[0].file);
	stage.nodes[0].file = strdup("{\"version\":1,\"cluster\":\"c\",\"switches\":"
				     "{\"n0\":4294967295,\"n1\":3}}");
	node_join(0);
	pass(SEC);
	expect_version(0);
	assert_int_equal(stage.nodes[2].versions[1], 3);
	assert_int_equal(order_at(0, "works", RAS_NEVER), 0);
	expect_version(1);
	// A claim of the limit itself ends maintenance, and an order says why it cannot begin.
	assert_int_equal(
		ras_restore_maintenance(
			stage.nodes[1].overlay.ras, 0, stage.records[0].id, RAS_MAINT_VERSION_MAX
		),
		0
	);
	assert_int_equal(order_at(0, "refused", RAS_NEVER), -EOVERFLOW);
	expect_version(RAS_MAINT_VERSION_MAX);
}

// Replace the time at which the file was saved.
static void file_set_saved(uint32_t n, int64_t saved_s) {
	json_t *object = json_loads(stage.nodes[n].file, 0, NULL);

	assert_non_null(object);
	assert_int_equal(json_object_set_new(object, "saved_s", json_integer(saved_s)), 0);
	free(stage.nodes[n].file);
	stage.nodes[n].file = json_dumps(object, JSON_COMPACT);
	json_decref(object);
}

static void file_from_an_impossible_time_shortens_an_order_at_most_to_its_last_minute(void **state
) {
	static const int64_t times[] = {INT64_MIN, -1, INT64_MAX};

	(void)state;
	assert_int_equal(order_at(1, "disk", 2 * HOUR), 0);
	pass(5 * SEC);
	for (uint32_t n = 0; n < NODES; n++)
		node_stop(n);
	for (uint32_t n = 0; n < sizeof(times) / sizeof(times[0]); n++) {
		struct overlay_maintenance_order order;
		uint64_t age_ns;

		file_set_saved(0, times[n]);
		node_join(0);
		pass(5 * SEC); // the exchange
		assert_true(order_of(0, &order, &age_ns));
		assert_true(order.for_ns >= 50 * SEC && order.for_ns <= 2 * HOUR);
		node_stop(0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(maintenance) {
	const struct CMUnitTest tests[] = {
		TEST(order_reaches_all_and_ends_by_itself_on_all),
		TEST(second_order_replaces_reason_and_end),
		TEST(order_survives_restart_of_all_with_one_file),
		TEST(time_of_a_stop_counts_and_a_running_agent_corrects_it),
		TEST(orders_of_two_sides_end_as_one),
		TEST(agent_that_missed_a_notice_receives_the_repetition),
		TEST(hostile_orders_change_nothing),
		TEST(malformed_order_hides_no_other),
		TEST(order_of_no_member_replaces_none_and_is_replaced),
		TEST(order_that_the_core_refuses_is_not_stored),
		TEST(version_of_a_liar_is_not_kept),
		TEST(file_from_an_impossible_time_shortens_an_order_at_most_to_its_last_minute),
	};

	return cmocka_run_group_tests_name("maintenance", tests, NULL, NULL);
}
