// SPDX-License-Identifier: BSD-3-Clause
#include "control/verdict/engine/verdict_net.h"

#include <stdlib.h>

uint64_t id_of(uint32_t agent) {
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
				observation_exchange_receive(
					net->agents[n].exchange, net->now_ns, id_of(agent->index),
					net->notices, bytes, size
				),
				0
			);
	}
}

void on_wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	(void)at_ns;
}

struct net *net_create(void) {
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
			struct verdict_peer_update said = {
				.id = id_of(peer),
				.incarnation = ras_incarnation(1, 0),
				.state = RAS_ALIVE,
				.host = "",
				.leaf = "",
			};

			assert_int_equal(verdict_peer_update(agent->engine, net->now_ns, &said), 0);
		}
	}
	return net;
}

void net_destroy(struct net *net) {
	for (uint32_t n = 0; n < AGENTS; n++) {
		observation_exchange_destroy(net->agents[n].exchange);
		verdict_engine_destroy(net->agents[n].engine);
	}
	free(net);
}

void pass(struct net *net, uint64_t ns) {
	for (uint64_t passed_ns = 0; passed_ns < ns; passed_ns += STEP_NS) {
		net->now_ns += STEP_NS;
		for (uint32_t n = 0; n < AGENTS; n++) {
			observation_exchange_tick(net->agents[n].exchange, net->now_ns);
			verdict_tick(net->agents[n].engine, net->now_ns);
		}
	}
}

struct observation make_observation(
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

int see_reach(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
) {
	struct observation observation = make_observation(observer, subject, kind, reach);

	return observation_exchange_update(
		net->agents[observer].exchange, net->now_ns, &observation
	);
}

int see(struct net *net, uint32_t observer, uint32_t subject, enum observation_kind kind) {
	return see_reach(net, observer, subject, kind, VERDICT_REACH_ANSWERS);
}

enum verdict held(const struct net *net, uint32_t by, uint32_t subject) {
	struct verdict_view view;

	assert_int_equal(verdict_view_get(net->agents[by].engine, id_of(subject), &view), 0);
	return view.verdict;
}

uint64_t told(const struct net *net, uint32_t agent) {
	return observation_exchange_counters(net->agents[agent].exchange)->told;
}

uint64_t told_by_all(const struct net *net) {
	uint64_t sum = 0;

	for (uint32_t n = 0; n < AGENTS; n++)
		sum += told(net, n);
	return sum;
}
