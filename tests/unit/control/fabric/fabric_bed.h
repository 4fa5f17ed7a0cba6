// SPDX-License-Identifier: BSD-3-Clause
// Fabrics of up to seven agents in one process: real keepers, one real loop, lanes and probers on
// programmable devices. Overlay and workers are fake. Each agent has one worker per device, whose
// rings and steps belong to the bed, on the test's thread.
//
// The bed advances the clock by a millisecond a turn. The clock stands still while a keeper or
// the reclaimer is busy, so no result depends on real time.
#pragma once

#include "control/fabric/played_overlay.h"
#include "fabric/inside.h"

#include <dataplane/worker.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>
#include <support/rcu_group.h>

#define BED_AGENTS_MAX PLAYED_MAX
#define BED_DEVICES_MAX PLAYED_DEVICES_MAX
#define BED_RING 64 // records of a fake worker's rings
#define BED_PASS_NS RAS_NS_PER_MS
// Default probe settings of an agent.
#define BED_PROBES .interval_ns = RAS_NS_PER_SEC, .packets = 100, .bytes = 512 * 1024

// Fake of the worker of <dataplane/worker.h>.
struct worker {
	struct worker_record requests[BED_RING], events[BED_RING];
	uint32_t request_count, event_count;
	uint32_t room;	    // room for requests; a test may shrink it
	uint32_t polls_max; // limit of polls; a test may shrink it
	bool halted;	    // takes no requests and makes no steps
	bool hangs;	    // its sign reports a hang, but it keeps running
	struct worker_poll polls[WORKER_POLLS_MAX];
	uint32_t poll_count;
	struct prober *prober;
};

struct bed_agent {
	struct overlay *overlay;
	struct path_table *paths;
	struct worker workers[BED_DEVICES_MAX];
	struct fake_device *fakes[BED_DEVICES_MAX];
	struct fabric_config config;
	struct fabric *fabric;
	bool stopped;
};

struct bed {
	struct clock clock;
	struct loop *loop;
	struct bed_agent agents[BED_AGENTS_MAX];
	uint32_t agent_count, device_count;
	bool left_behind; // not freed, since a device may still access it
	bool gpus_hang;	  // GPU calls hang; the clock advances anyway
};

extern struct bed bed;

// Create agents n0, n1, ... with devices rdma0, ... without links and without a fabric.
void bed_open(uint32_t agents, uint32_t devices);
void bed_start(uint32_t agent);
// Start agents 0 and 1. Returns once each has a pair with the other one and with itself.
void bed_start_both(void);
// Stop all agents and check that nothing leaked and no rule was broken.
void bed_close(void);
// cmocka fixtures: two linked agents with one device each.
int bed_pair_open(void **state);
int bed_pair_close(void **state);
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, bed_pair_open, bed_pair_close)

void bed_link(uint32_t a, uint32_t b, bool linked);
// Set how `observer` sees `agent` from now on, and notify it by an event.
void bed_say(uint32_t observer, uint32_t agent, enum ras_state state);
uint64_t bed_id(uint32_t agent);

// Make one turn: loop, messages, workers. The clock advances only if all are idle.
void bed_turn(void);
// Make one turn. Fails the test with the condition if the limit is reached.
void bed_turn_until(uint32_t turns, const char *condition);
// Make turns until the condition holds; fails after too many.
#define bed_until(condition)                                      \
	for (uint32_t bed_turns_ = 0; !(condition); bed_turns_++) \
	bed_turn_until(bed_turns_, #condition)
// Advance the clock by this time, even if some are busy.
void bed_pass(uint64_t ns);
// Turn until keepers, workers and the reclaimer are idle.
void bed_settle(void);

// Find the pair of an agent's first device with the first device of the peer, or with itself.
bool bed_find_pair(uint32_t agent, uint32_t peer, struct fabric_pair_view *ret_view);
bool bed_is_ready(uint32_t agent, uint32_t peer);
struct fabric_pair *bed_fabric_pair(uint32_t agent, uint32_t peer);
struct ibv_qp *bed_qp(uint32_t agent, uint32_t peer);
enum fabric_device_state bed_device(uint32_t agent);

void bed_stop(uint32_t agent);
// Destroy the fabric, as the agent does at its end.
void bed_destroy(uint32_t agent);

struct bed_ping {
	struct fabric_ping *ping;
	struct fabric_ping_result result;
	uint32_t ended;
	uint64_t count;	 // of the latency histogram
	uint64_t sum_ns; // sum of the individual times, if they were kept
};
struct fabric_ping_request bed_ping_request(uint32_t peer);
int bed_ping(uint32_t agent, const struct fabric_ping_request *request, struct bed_ping *ping);
// Let agent 0 wait for its first read of agent 1: the pair answers no more.
void bed_ping_held(struct bed_ping *ping);

// Fail the nth allocation of the fabric and of the pairing from now on; 0: none.
void bed_fail_allocation(uint32_t nth);
bool bed_allocation_failed(void);

// Hook before each driver call.
void bed_call(void *ctx, enum fake_call call);
// Let a call of this kind hang in its keeper until it is released. FAKE_CALL_COUNT: none.
void bed_hang(enum fake_call call);
bool bed_hangs(void); // a call hangs now
void bed_let_go(void);
// Let the nth call of the keeper of agent 0's first device hang, of any kind.
void bed_hang_nth(uint32_t nth);
// Lose the device before that call; 0: no more.
void bed_lose_nth(uint32_t nth);
bool bed_lost(void); // that call was reached
// Wait until the keepers of destroyed fabrics have ended; hanging calls must have been released.
void bed_wait_left_behind(void);
