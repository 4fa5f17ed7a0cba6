// SPDX-License-Identifier: BSD-3-Clause
// A few agents, each with its engine and exchange, that hear each other at once.
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

// All alive. The net looks at everybody each step: it needs no wake-ups.
struct net *net_create(void);
void net_destroy(struct net *net);
void on_wake(void *ctx, uint64_t at_ns);
// Time passes, in steps.
void pass(struct net *net, uint64_t ns);

// Sound, through "dev0" at both ends, of a hardware responder.
struct observation make_observation(
	uint32_t observer, uint32_t subject, enum observation_kind kind, enum verdict_reach reach
);
// What the observer's own exchange takes, and tells if it is due.
int see(struct net *net, uint32_t observer, uint32_t subject, enum observation_kind kind);
int see_reach(
	struct net *net,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
);

// The verdict that `by` holds; observations that an agent has told so far.
enum verdict held(const struct net *net, uint32_t by, uint32_t subject);
uint64_t told(const struct net *net, uint32_t agent);
uint64_t told_by_all(const struct net *net);
