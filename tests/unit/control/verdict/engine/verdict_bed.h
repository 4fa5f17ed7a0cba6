// SPDX-License-Identifier: BSD-3-Clause
// One engine with a simulated cluster and a clock set by the test.
//
// Agent n of `count` has the id n + 1; the engine belongs to agent 0. Each agent has its own
// host, unless a test places it elsewhere.
#pragma once

#include <support/cmocka.h>
#include <support/heap.h>
#include <verdict/engine.h>

#define MS RAS_NS_PER_MS
#define SEC RAS_NS_PER_SEC
#define BED_CHANGES_MAX 4096

struct bed {
	struct verdict_engine *engine;
	struct ras_memory memory;
	uint64_t now_ns;
	uint64_t wake_ns;
	uint32_t count;
	struct heap heap;
	struct verdict_change last;
	enum verdict last_now;
	uint32_t changes;
	uint64_t quiet;	  // bit set of agents whose overlay link is silent
	uint32_t ripened; // number of repeated notifications with the advice that was held back
};

// Create an engine whose agents are all alive.
struct bed *bed_create(uint32_t count);
struct bed *bed_create_with(uint32_t count, const struct verdict_config *config);
// Create an engine without peers, whose allocations can be made to fail.
struct bed *bed_create_bare(const struct verdict_config *config);
void bed_destroy(struct bed *bed);

static inline uint64_t bed_id(uint32_t agent) {
	return agent + 1;
}

// Advance the time; the engine is called when it asked for it.
void bed_pass(struct bed *bed, uint64_t ns);

struct verdict_peer_update bed_peer(uint32_t agent, enum ras_state state, enum ras_cause cause);
int bed_state(struct bed *bed, uint32_t agent, enum ras_state state, enum ras_cause cause);
int bed_place(struct bed *bed, uint32_t agent, const char *host, const char *leaf);

// Return a valid observation through "dev0" at both ends, of a hardware responder.
struct observation bed_observation(uint32_t observer, uint32_t subject, enum observation_kind kind);
int bed_see(struct bed *bed, uint32_t observer, uint32_t subject, enum observation_kind kind);
int bed_see_reach(
	struct bed *bed,
	uint32_t observer,
	uint32_t subject,
	enum observation_kind kind,
	enum verdict_reach reach
);
// Report the observation of agents 1 and 2.
void bed_see_two(struct bed *bed, uint32_t subject, enum observation_kind kind);
int bed_say(struct bed *bed, uint32_t agent, enum verdict verdict, const char *reason);

struct verdict_view bed_view(const struct bed *bed, uint32_t agent);
// Check the verdict; a failure prints the actual one. `reason` may be NULL.
void bed_expect_at(
	const struct bed *bed,
	uint32_t agent,
	enum verdict verdict,
	const char *reason,
	const char *file,
	int line
);
#define bed_expect(bed, agent, verdict, reason) \
	bed_expect_at(bed, agent, verdict, reason, __FILE__, __LINE__)

// Create eight agents; two observers cannot read number 5 over the fabric.
struct bed *bed_with_fabric_down(void);
