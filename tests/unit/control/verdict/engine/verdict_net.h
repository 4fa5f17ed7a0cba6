// SPDX-License-Identifier: BSD-3-Clause
// A few agents, each with an engine and an exchange, whose messages arrive at once.
#pragma once

#include <ras/collective.h>
#include <support/cmocka.h>
#include <support/heap.h>
#include <verdict/engine.h>

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

uint64_t id_of(uint32_t agent);

// Create a net of agents that are all alive. Each step runs every agent, so wake-ups are not
// needed.
struct net *net_create(void);
void net_destroy(struct net *net);
void on_wake(void *ctx, uint64_t at_ns);
// Advance the time in steps.
void pass(struct net *net, uint64_t ns);

// Return a valid observation through "dev0" at both ends, of a hardware responder.
struct observation make_observation(
	uint32_t observer, uint32_t subject, enum observation_kind kind, enum verdict_reach reach
);
// Report an observation to the observer's own exchange, which sends it if it is due.
int see(struct net *net, uint32_t observer, uint32_t subject, enum observation_kind kind);
int see_reach(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
);

// Return the verdict that `by` holds, and the number of observations sent by an agent.
enum verdict held(const struct net *net, uint32_t by, uint32_t subject);
uint64_t told(const struct net *net, uint32_t agent);
uint64_t told_by_all(const struct net *net);
