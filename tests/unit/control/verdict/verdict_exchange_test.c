// SPDX-License-Identifier: BSD-3-Clause
// Who tells what, and when: a few agents, each with its engine, that hear each other at once.
#include <lib/wire.h>
#include <ras/collective.h>
#include <support/cmocka.h>
#include <support/heap.h>
#include <verdict/engine.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS RAS_NS_PER_MS
#define SEC RAS_NS_PER_SEC
#define AGENTS 20
#define STEP_NS (10 * MS)

struct agent {
	struct net *net;
	struct verdict_engine *engine;
	struct observation_exchange *exchange;
	uint32_t index;
	bool deaf;
};

struct net {
	struct agent agents[AGENTS];
	uint64_t now_ns;
	uint64_t notices;
	size_t largest;
	struct heap heap;
};

static uint64_t id_of(uint32_t agent) {
	return agent + 1;
}

static void on_tell(void *ctx, const void *bytes, size_t size) {
	struct agent *agent = ctx;
	struct net *net = agent->net;

	net->notices++;
	net->largest = size > net->largest ? size : net->largest;
	assert_true(size > 0 && size <= RAS_NOTICE_BYTES_MAX);
	for (uint32_t n = 0; n < AGENTS; n++) {
		if (n != agent->index && !net->agents[n].deaf)
			assert_int_equal(
				observation_exchange_heard(
					net->agents[n].exchange, net->now_ns, id_of(agent->index),
					net->notices, bytes, size
				),
				0
			);
	}
}

// The net looks at everybody each step: it needs no wake-ups.
static void on_wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	(void)at_ns;
}

static struct net *net_create(void) {
	static const struct verdict_ops engine_ops = {.wake = on_wake};
	static const struct observation_exchange_ops exchange_ops = {
		.tell = on_tell, .wake = on_wake};
	struct net *net = calloc(1, sizeof(*net));
	struct ras_memory memory = HEAP_MEMORY(&net->heap);

	assert_non_null(net);
	net->now_ns = 1000 * SEC;
	for (uint32_t n = 0; n < AGENTS; n++) {
		struct agent *agent = &net->agents[n];
		struct verdict_config config = {.self = id_of(n)};

		agent->net = net;
		agent->index = n;
		assert_int_equal(
			verdict_engine_create(&config, &memory, &engine_ops, agent, &agent->engine),
			0
		);
		assert_int_equal(
			observation_exchange_create(
				agent->engine, id_of(n), n + 7, &memory, &exchange_ops, agent,
				&agent->exchange
			),
			0
		);
		for (uint32_t peer = 0; peer < AGENTS; peer++) {
			struct verdict_peer said = {
				.id = id_of(peer),
				.incarnation = ras_incarnation(1, 0),
				.state = RAS_ALIVE,
				.host = "",
				.leaf = "",
			};

			assert_int_equal(verdict_peer(agent->engine, net->now_ns, &said), 0);
		}
	}
	return net;
}

static void net_destroy(struct net *net) {
	for (uint32_t n = 0; n < AGENTS; n++) {
		observation_exchange_destroy(net->agents[n].exchange);
		verdict_engine_destroy(net->agents[n].engine);
	}
	free(net);
}

static void pass(struct net *net, uint64_t ns) {
	for (uint64_t passed_ns = 0; passed_ns < ns; passed_ns += STEP_NS) {
		net->now_ns += STEP_NS;
		for (uint32_t n = 0; n < AGENTS; n++) {
			observation_exchange_tick(net->agents[n].exchange, net->now_ns);
			verdict_tick(net->agents[n].engine, net->now_ns);
		}
	}
}

static struct observation make_observation(
	uint32_t observer, uint32_t subject, enum observation_kind kind, enum verdict_reach reach
) {
	return (struct observation){
		.observer = id_of(observer),
		.subject = id_of(subject),
		.incarnation = ras_incarnation(1, 0),
		.kind = kind,
		.responder = OBSERVATION_RESPONDER_HARDWARE,
		.reach = reach,
		.own_good = true,
		.device = "dev0",
		.peer_device = "dev0",
	};
}

static int see_reach(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
) {
	struct observation observation = make_observation(observer, subject, kind, reach);

	return observation_exchange_own(net->agents[observer].exchange, net->now_ns, &observation);
}

// Of a lossy one from so many bytes on; of a good one such did not pass.
static int see_loss(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	uint32_t bytes
) {
	struct observation observation =
		make_observation(observer, subject, kind, VERDICT_REACH_ANSWERS);

	observation.lost_bytes = bytes;
	return observation_exchange_own(net->agents[observer].exchange, net->now_ns, &observation);
}

static int see(struct net *net, uint32_t observer, uint32_t subject, enum observation_kind kind) {
	return see_reach(net, observer, subject, kind, VERDICT_REACH_ANSWERS);
}

static enum verdict held(const struct net *net, uint32_t by, uint32_t subject) {
	struct verdict_view view;

	assert_int_equal(verdict_of(net->agents[by].engine, id_of(subject), &view), 0);
	return view.verdict;
}

static uint64_t told(const struct net *net, uint32_t agent) {
	return observation_exchange_counters(net->agents[agent].exchange)->told;
}

static uint64_t told_by_all(const struct net *net) {
	uint64_t sum = 0;

	for (uint32_t n = 0; n < AGENTS; n++)
		sum += told(net, n);
	return sum;
}

static void what_two_see_is_held_by_all(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_FABRIC_DOWN);
	see(net, 1, 5, OBSERVATION_GOOD);
	see(net, 2, 5, OBSERVATION_GOOD);
	pass(net, 7 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	net_destroy(net);
}

static void good_paths_are_told_when_they_are_asked_for_only(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 6; n < 9; n++)
		see(net, n, 5, OBSERVATION_GOOD);
	pass(net, 5 * SEC);
	assert_int_equal(told_by_all(net), 0);
	for (uint32_t n = 6; n < 9; n++)
		see(net, n, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 2 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	for (uint32_t n = 6; n < 9; n++) {
		assert_int_equal(told(net, n), 1);
		assert_int_equal(
			observation_exchange_counters(net->agents[n].exchange)->answered, 1
		);
	}
	net_destroy(net);
}

// Two of its paths are bad, by a spine that both cross. Nobody says that it is bad, so that nobody
// was asked; and those who read what it does not had only its word.
static void who_accuses_two_is_vouched_for_by_those_who_read_it(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 20; second++) {
		see(net, 0, 1, OBSERVATION_SILENT);
		see(net, 0, 2, OBSERVATION_SILENT);
		for (uint32_t n = 6; n < 9 && second % 10 == 0; n++) {
			see(net, n, 1, OBSERVATION_GOOD);
			see(net, n, 2, OBSERVATION_GOOD);
		}
		see(net, 10, 0, OBSERVATION_GOOD);
		pass(net, SEC);
		for (uint32_t n = 0; n < AGENTS; n++)
			assert_int_equal(held(net, n, 0), VERDICT_HEALTHY);
	}
	assert_in_range(told(net, 10), 1, 3);
	net_destroy(net);
}

static void one_alone_asks_nobody(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 6, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(told(net, 6), 0);
	net_destroy(net);
}

static void who_is_to_blame_itself_says_no_more_of_others(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 5, 5), VERDICT_FABRIC_DOWN);
	before = told(net, 5);
	for (uint32_t subject = 6; subject < 12; subject++)
		see(net, 5, subject, OBSERVATION_SILENT);
	pass(net, 5 * SEC);
	assert_int_equal(told(net, 5), before);
	net_destroy(net);
}

// Visitors, and who has a new path, read a lossy node as if it were well.
static void who_has_not_read_largely_is_not_asked_of_loss(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 6; n < 12; n++)
		see_loss(net, n, 5, OBSERVATION_GOOD, 4096);
	see_loss(net, 1, 5, OBSERVATION_LOSSY, 4096);
	see_loss(net, 2, 5, OBSERVATION_LOSSY, 4096);
	pass(net, 2 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_PATH_LOSSY);
	for (uint32_t n = 6; n < 12; n++)
		assert_int_equal(told(net, n), 0);
	// Now it has passed.
	for (uint32_t n = 6; n < 12; n++)
		see_loss(net, n, 5, OBSERVATION_GOOD, 0);
	pass(net, 8 * SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_HEALTHY);
	net_destroy(net);
}

static void an_answer_that_is_too_old_waits_for_the_next_look(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 6, 5, OBSERVATION_GOOD);
	pass(net, 3 * SEC);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 200 * MS);
	assert_int_equal(told(net, 6), 0);
	see(net, 6, 5, OBSERVATION_GOOD);
	pass(net, 200 * MS);
	assert_int_equal(told(net, 6), 1);
	net_destroy(net);
}

static void what_is_bad_is_repeated_and_what_clears_is_told_twice(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	for (uint32_t second = 0; second < 35; second++) {
		see(net, 1, 5, OBSERVATION_SILENT);
		pass(net, SEC);
	}
	assert_int_equal(told(net, 1), 4);
	before = told(net, 1);
	for (uint32_t second = 0; second < 60; second++) {
		see(net, 1, 5, OBSERVATION_GOOD);
		pass(net, SEC);
	}
	assert_int_equal(told(net, 1), before + 2);
	net_destroy(net);
}

// Found: two halves of a cluster were told to forget each other and met again. What each had told
// of the other's silence was repeated, to those themselves too, and never taken back: all were
// node-down or mgmt-net-down to all for twenty seconds.
static void what_was_told_of_one_that_was_forgotten_is_not_told_again(void **state) {
	struct net *net = net_create();
	uint64_t before;

	(void)state;
	for (uint32_t by = 1; by <= 3; by++)
		assert_int_equal(see_reach(net, by, 0, OBSERVATION_NO_PAIR, VERDICT_REACH_NONE), 0);
	pass(net, SEC);
	before = told_by_all(net);
	assert_int_equal(before, 3);
	for (uint32_t n = 0; n < AGENTS; n++) {
		struct agent *agent = &net->agents[n];
		struct verdict_peer back = {
			.id = id_of(0),
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_ALIVE,
			.host = "",
			.leaf = "",
		};

		if (n == 0)
			continue; // it was cut off, and knows nothing of it
		verdict_forget(agent->engine, net->now_ns, id_of(0));
		observation_exchange_forget(agent->exchange, id_of(0));
		assert_int_equal(verdict_peer(agent->engine, net->now_ns, &back), 0);
	}
	pass(net, 60 * SEC);
	assert_int_equal(told_by_all(net), before);
	for (uint32_t by = 1; by < AGENTS; by++)
		assert_int_equal(held(net, by, 0), VERDICT_HEALTHY);
	net_destroy(net);
}

static void what_enough_said_is_not_said_again(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t n = 0; n < AGENTS; n++) {
		if (n != 5)
			see(net, n, 5, OBSERVATION_SILENT);
	}
	pass(net, SEC);
	// Some drew the same moment.
	assert_in_range(told_by_all(net), OBSERVATION_ENOUGH, OBSERVATION_ENOUGH + 4);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(held(net, n, 5), VERDICT_FABRIC_DOWN);
	net_destroy(net);
}

static void who_changes_its_mind_says_so_although_others_said_it(void **state) {
	struct net *net = net_create();

	(void)state;
	see(net, 9, 5, OBSERVATION_GOOD);
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, 300 * MS);
	assert_int_equal(told(net, 9), 1);
	pass(net, 2 * SEC);
	for (uint32_t n = 3; n < 7; n++)
		see(net, n, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 0, 5), VERDICT_FABRIC_DOWN); // its word was of before
	see(net, 9, 5, OBSERVATION_SILENT);
	pass(net, 300 * MS);
	assert_int_equal(told(net, 9), 2);
	net_destroy(net);
}

// That it loses reads says that it reads some: it speaks against what others said since.
static void who_lost_some_says_that_it_stands_although_others_said_it(void **state) {
	static const enum observation_kind later[] = {OBSERVATION_STANDING, OBSERVATION_SILENT};

	(void)state;
	for (size_t row = 0; row < sizeof(later) / sizeof(later[0]); row++) {
		struct net *net = net_create();

		see(net, 9, 5, OBSERVATION_LOSSY);
		pass(net, 300 * MS);
		assert_int_equal(told(net, 9), 1);
		for (uint32_t n = 1; n < 7; n++) {
			if (n != 5)
				see(net, n, 5, later[row]);
		}
		pass(net, SEC);
		see(net, 9, 5, later[row]);
		pass(net, 300 * MS);
		assert_int_equal(told(net, 9), 2);
		net_destroy(net);
	}
}

static void a_pulse_that_outlives_its_agent_is_told_again_although_enough_told_it(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 5; second++) {
		for (uint32_t n = 0; n < AGENTS; n++) {
			if (n != 5)
				see_reach(net, n, 5, OBSERVATION_GOOD, VERDICT_REACH_NONE);
		}
		pass(net, SEC);
	}
	for (uint32_t n = 0; n < AGENTS; n++) {
		struct verdict_peer dead = {
			.id = id_of(5),
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_DEAD,
			.cause = RAS_CAUSE_SILENT,
			.observer_count = 2,
			.observers = {id_of(1), id_of(2)},
			.host = "",
			.leaf = "",
		};

		assert_int_equal(verdict_peer(net->agents[n].engine, net->now_ns, &dead), 0);
		assert_int_equal(held(net, n, 5), VERDICT_MGMT_NET_DOWN);
	}
	net_destroy(net);
}

static void nobody_tells_more_than_its_budget(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 4; second++) {
		uint64_t before = told(net, 1);

		for (uint32_t subject = 2; subject < AGENTS; subject++)
			see(net, 1, subject, OBSERVATION_SILENT);
		pass(net, SEC);
		assert_true(told(net, 1) - before <= 2 * OBSERVATION_BUDGET);
	}
	assert_true(observation_exchange_counters(net->agents[1].exchange)->held_by_budget > 0);
	assert_true(told(net, 1) <= 5 * OBSERVATION_BUDGET);
	net_destroy(net);
}

static void the_more_is_heard_the_less_everybody_tells(void **state) {
	static const enum observation_kind kinds[] = {
		OBSERVATION_SILENT, OBSERVATION_DEGRADED, OBSERVATION_LOSSY};
	struct net *net = net_create();
	uint64_t before = 0;

	(void)state;
	// All see all badly, and each second otherwise: without a limit, 380 a second.
	for (uint32_t second = 0; second < 12; second++) {
		for (uint32_t n = 0; n < AGENTS; n++) {
			for (uint32_t subject = 0; subject < AGENTS; subject++) {
				if (n != subject)
					see(net, n, subject, kinds[second % 3]);
			}
		}
		pass(net, SEC);
		if (second == 1)
			before = told_by_all(net);
	}
	assert_true(told_by_all(net) - before < 10 * AGENTS * OBSERVATION_BUDGET / 2);
	net_destroy(net);
}

static int say(struct net *net, uint32_t agent, enum verdict verdict) {
	struct statement statement = {
		.subject = id_of(agent),
		.verdict = verdict,
		.reason = "DeviceStuck",
		.evidence = "ibv_create_qp on dev0 hangs",
	};

	return observation_exchange_say(net->agents[agent].exchange, net->now_ns, &statement);
}

static void words_are_repeated_until_they_are_taken_back(void **state) {
	struct net *net = net_create();

	(void)state;
	net->agents[3].deaf = true;
	assert_int_equal(say(net, 1, VERDICT_DEVICE_STUCK), 0);
	pass(net, SEC);
	assert_int_equal(held(net, 2, 1), VERDICT_DEVICE_STUCK);
	assert_int_equal(held(net, 3, 1), VERDICT_HEALTHY);
	net->agents[3].deaf = false; // it hears a repetition
	pass(net, 60 * SEC);
	assert_int_equal(held(net, 3, 1), VERDICT_DEVICE_STUCK);
	assert_int_equal(held(net, 1, 1), VERDICT_DEVICE_STUCK);
	net->agents[3].deaf = true;
	assert_int_equal(say(net, 1, VERDICT_HEALTHY), 0);
	pass(net, 5 * SEC);
	net->agents[3].deaf = false; // and another
	pass(net, 16 * SEC);
	assert_int_equal(held(net, 2, 1), VERDICT_HEALTHY);
	assert_int_equal(held(net, 3, 1), VERDICT_HEALTHY);
	net_destroy(net);
}

static void hear_check(struct net *net, uint64_t number, enum verdict verdict, const char *reason) {
	struct statement statement = {.subject = id_of(6), .verdict = verdict};
	struct wire_writer writer;
	uint8_t bytes[512];

	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(statement_put(&writer, &statement), 0);
	assert_int_equal(
		observation_exchange_heard(
			net->agents[0].exchange, net->now_ns, id_of(6), number, bytes,
			wire_writer_used(&writer)
		),
		0
	);
}

// A link that loses packets held the notice up for seconds.
static void a_word_that_was_taken_back_before_it_came_is_not_taken(void **state) {
	struct net *net = net_create();
	char reason[] = "CheckA";

	(void)state;
	hear_check(net, 2, VERDICT_HEALTHY, "DiskFull");
	hear_check(net, 1, VERDICT_CHECK_FAILED, "DiskFull");
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	hear_check(net, 3, VERDICT_CHECK_FAILED, "DiskFull"); // it fails again
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_FAILED);
	hear_check(net, 5, VERDICT_HEALTHY, "DiskFull");
	pass(net, 6 * SEC);
	hear_check(net, 4, VERDICT_CHECK_FAILED, "DiskFull");
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	// What was taken back keeps no place from what is said now.
	for (; reason[5] < 'A' + VERDICT_STATEMENTS_MAX; reason[5]++)
		hear_check(net, 6, VERDICT_CHECK_WARNING, reason);
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_WARNING);
	net_destroy(net);
}

static void a_word_in_anothers_name_is_dropped_and_counted(void **state) {
	struct net *net = net_create();
	struct wire_writer writer;
	uint8_t bytes[512];
	struct observation observation = {
		.observer = id_of(2),
		.subject = id_of(5),
		.kind = OBSERVATION_SILENT,
		.own_good = true,
	};
	struct statement statement = {
		.subject = id_of(6), .verdict = VERDICT_CHECK_FAILED, .reason = "DiskFull"};

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(observation_put(&writer, &observation), 0);
	assert_int_equal(statement_put(&writer, &statement), 0);
	assert_int_equal(
		observation_exchange_heard(
			net->agents[0].exchange, net->now_ns, id_of(9), 0, bytes,
			wire_writer_used(&writer)
		),
		0
	);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard_forged, 2);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard, 0);
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	net_destroy(net);
}

static void of_a_malformed_notice_what_came_before_is_taken(void **state) {
	struct net *net = net_create();
	struct wire_writer writer;
	uint8_t bytes[512];
	struct statement statement = {
		.subject = id_of(6), .verdict = VERDICT_CHECK_FAILED, .reason = "DiskFull"};

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(statement_put(&writer, &statement), 0);
	wire_put_u8(&writer, TOLD_OBSERVATION);
	wire_put_u16(&writer, 1000);
	assert_int_equal(
		observation_exchange_heard(
			net->agents[0].exchange, net->now_ns, id_of(6), 0, bytes,
			wire_writer_used(&writer)
		),
		-EBADMSG
	);
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_FAILED);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard_bad, 1);
	net_destroy(net);
}

static void without_memory_it_says_so_and_goes_on(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint64_t n = 1; n < 8; n++) {
		int err;

		net->heap.fails_at = net->heap.asked + n;
		err = see(net, 1, 5, OBSERVATION_SILENT);
		assert_true(err == 0 || err == -ENOMEM);
	}
	net->heap.fails_at = 0;
	see(net, 1, 5, OBSERVATION_SILENT);
	see(net, 2, 5, OBSERVATION_SILENT);
	pass(net, SEC);
	assert_int_equal(held(net, 0, 5), VERDICT_FABRIC_DOWN);
	net_destroy(net);
}

// What agent 0 says of subject `subject` through `device`.
static int
see_through(struct net *net, uint32_t subject, enum observation_kind kind, const char *device) {
	struct observation observation = {
		.observer = id_of(0),
		.subject = id_of(subject),
		.incarnation = ras_incarnation(1, 0),
		.kind = kind,
		.reach = VERDICT_REACH_ANSWERS,
		.own_good = true,
		.device = "dev0",
	};

	snprintf(observation.peer_device, sizeof(observation.peer_device), "%s", device);
	return observation_exchange_own(net->agents[0].exchange, net->now_ns, &observation);
}

#define PORTS 8

static void see_all_ports(struct net *net) {
	for (uint32_t n = 0; n < (AGENTS - 1) * PORTS; n++) {
		char port[2] = {(char)('0' + n % PORTS), '\0'};

		(void)see_through(net, 1 + n / PORTS, OBSERVATION_SILENT, port);
	}
}

// Ticks come as often as paths are due, which may be each millisecond.
static void who_hears_much_still_says_something(void **state) {
	struct net *net = net_create();
	uint8_t bytes[128];
	struct wire_writer writer;
	struct observation other = {
		.observer = id_of(13),
		.subject = id_of(18),
		.incarnation = ras_incarnation(1, 0),
		.kind = OBSERVATION_SILENT,
		.own_good = true,
	};
	uint64_t before = 0;
	size_t size = 0;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(observation_put(&writer, &other), 0);
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	for (uint32_t ms = 0; ms < 30000; ms++) {
		net->now_ns += MS;
		if (ms % 1000 == 0)
			see_all_ports(net);
		if (ms % 3 == 0)
			observation_exchange_heard(
				net->agents[0].exchange, net->now_ns, id_of(13), 0, bytes, size
			);
		observation_exchange_tick(net->agents[0].exchange, net->now_ns);
		if (ms == 10000)
			before = told(net, 0);
	}
	// A share of 16 / (16 + 333) of eight a second.
	assert_in_range(told(net, 0) - before, 4, 10);
	net_destroy(net);
}

static bool was_told[AGENTS][PORTS];

static void mark_told(void *ctx, const void *bytes, size_t size) {
	struct wire_reader reader;
	struct told told;

	(void)ctx;
	wire_reader_init(&reader, bytes, size);
	while (told_get(&reader, &told) == 0)
		was_told[told.observation.subject - 1][told.observation.peer_device[0] - '0'] =
			true;
}

static void of_more_paths_than_the_budget_each_has_its_turn(void **state) {
	static const struct observation_exchange_ops ops = {.tell = mark_told, .wake = on_wake};
	struct net *net = net_create();
	struct ras_memory memory = HEAP_MEMORY(&net->heap);

	(void)state;
	observation_exchange_destroy(net->agents[0].exchange);
	assert_int_equal(
		observation_exchange_create(
			net->agents[0].engine, id_of(0), 7, &memory, &ops, NULL,
			&net->agents[0].exchange
		),
		0
	);
	for (uint32_t second = 0; second < 60; second++) {
		see_all_ports(net);
		pass(net, SEC);
	}
	for (uint32_t n = 0; n < (AGENTS - 1) * PORTS; n++)
		assert_true(was_told[1 + n / PORTS][n % PORTS]);
	net_destroy(net);
}

// A name that somebody else chose may be one that no reader takes.
static void a_observation_that_cannot_be_told_keeps_no_other_back(void **state) {
	struct net *net = net_create();

	(void)state;
	assert_int_equal(see_through(net, 5, OBSERVATION_SILENT, "\n"), 0);
	assert_int_equal(see_through(net, 6, OBSERVATION_SILENT, "dev0"), 0);
	pass(net, SEC);
	assert_int_equal(told(net, 0), 1);
	net_destroy(net);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_two_see_is_held_by_all),
		cmocka_unit_test(good_paths_are_told_when_they_are_asked_for_only),
		cmocka_unit_test(who_accuses_two_is_vouched_for_by_those_who_read_it),
		cmocka_unit_test(one_alone_asks_nobody),
		cmocka_unit_test(who_is_to_blame_itself_says_no_more_of_others),
		cmocka_unit_test(who_has_not_read_largely_is_not_asked_of_loss),
		cmocka_unit_test(an_answer_that_is_too_old_waits_for_the_next_look),
		cmocka_unit_test(what_is_bad_is_repeated_and_what_clears_is_told_twice),
		cmocka_unit_test(what_was_told_of_one_that_was_forgotten_is_not_told_again),
		cmocka_unit_test(what_enough_said_is_not_said_again),
		cmocka_unit_test(who_changes_its_mind_says_so_although_others_said_it),
		cmocka_unit_test(who_lost_some_says_that_it_stands_although_others_said_it),
		cmocka_unit_test(
			a_pulse_that_outlives_its_agent_is_told_again_although_enough_told_it
		),
		cmocka_unit_test(nobody_tells_more_than_its_budget),
		cmocka_unit_test(the_more_is_heard_the_less_everybody_tells),
		cmocka_unit_test(words_are_repeated_until_they_are_taken_back),
		cmocka_unit_test(a_word_that_was_taken_back_before_it_came_is_not_taken),
		cmocka_unit_test(a_word_in_anothers_name_is_dropped_and_counted),
		cmocka_unit_test(of_a_malformed_notice_what_came_before_is_taken),
		cmocka_unit_test(who_hears_much_still_says_something),
		cmocka_unit_test(of_more_paths_than_the_budget_each_has_its_turn),
		cmocka_unit_test(a_observation_that_cannot_be_told_keeps_no_other_back),
		cmocka_unit_test(without_memory_it_says_so_and_goes_on),
	};

	return cmocka_run_group_tests_name("verdict_exchange", tests, NULL, NULL);
}
