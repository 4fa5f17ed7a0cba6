// SPDX-License-Identifier: BSD-3-Clause
// Fabrics of up to seven agents in one process: real keepers, one real loop, lanes and probers on
// programmable devices. Overlay and workers are played: each agent has one worker per device, whose
// rings and steps are the bed's, on the test's thread.
//
// Time is turned by the bed, a millisecond a turn, and stands while a keeper or the reclaimer has
// something to do: nothing here depends on how long anything really takes.
#pragma once

#include "control/fabric/played_overlay.h"
#include "fabric/inside.h"

#include <dataplane/worker.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>
#include <support/rcu_group.h>

#define BED_AGENTS_MAX PLAYED_MAX
#define BED_DEVICES_MAX PLAYED_DEVICES_MAX
#define BED_RING 64 // records of a played worker's rings
#define BED_PASS_NS RAS_NS_PER_MS
// What an agent probes by if its configuration says nothing.
#define BED_PROBES .interval_ns = RAS_NS_PER_SEC, .packets = 100, .bytes = 512 * 1024

// What <dataplane/worker.h> calls a worker is this.
struct worker {
	struct worker_record requests[BED_RING], events[BED_RING];
	uint32_t request_count, event_count;
	uint32_t room;	    // of the requests, for a test to shrink
	uint32_t polls_max; // likewise
	bool halted;	    // takes no requests and makes no steps
	bool hangs;	    // as its sign says; it goes on all the same
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
	bool left_behind; // what a device may still reach
	bool gpus_hang;	  // time goes on all the same
};

extern struct bed bed;

// Agents n0, n1, ... with devices rdma0, ...: nobody has a link, no fabric is made yet.
void bed_open(uint32_t agents, uint32_t devices);
void bed_start(uint32_t agent);
// Agents 0 and 1, until they have pairs with each other and each with itself.
void bed_start_both(void);
// Stops what runs, checks that nothing is left and nothing was broken.
void bed_close(void);
// cmocka's, for two agents with one device each that have a link.
int bed_pair_open(void **state);
int bed_pair_close(void **state);
#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, bed_pair_open, bed_pair_close)

void bed_link(uint32_t a, uint32_t b, bool linked);
// How `observer` sees `agent` from now on; it is told so by an event.
void bed_say(uint32_t observer, uint32_t agent, enum ras_state state);
uint64_t bed_id(uint32_t agent);

// One turn: loop, messages, workers. The clock moves if nobody is at work.
void bed_turn(void);
// One turn, if there are any left: else the test fails with what never became true.
void bed_turn_until(uint32_t turns, const char *condition);
// Turns until it is so, or fails.
#define bed_until(condition)                                      \
	for (uint32_t bed_turns_ = 0; !(condition); bed_turns_++) \
	bed_turn_until(bed_turns_, #condition)
// So much time, whoever is at work.
void bed_pass(uint64_t ns);
// Until keepers, workers and the reclaimer have nothing to do.
void bed_settle(void);

// The pair of an agent's first device with the first device of another, or with itself.
bool bed_find_pair(uint32_t agent, uint32_t peer, struct fabric_pair_view *ret_view);
bool bed_is_ready(uint32_t agent, uint32_t peer);
struct fabric_pair *bed_fabric_pair(uint32_t agent, uint32_t peer);
struct ibv_qp *bed_qp(uint32_t agent, uint32_t peer);
enum fabric_device_state bed_device(uint32_t agent);

void bed_stop(uint32_t agent);
// Takes the fabric away, as the agent's end does.
void bed_destroy(uint32_t agent);

struct bed_ping {
	struct fabric_ping *ping;
	struct fabric_ping_result result;
	uint32_t ended;
	uint64_t count;	 // of the latency
	uint64_t sum_ns; // of its times, if they were kept
};
struct fabric_ping_request bed_ping_request(uint32_t peer);
int bed_ping(uint32_t agent, const struct fabric_ping_request *request, struct bed_ping *ping);
// Of agent 0, which waits for its first read of agent 1: the pair says nothing any more.
void bed_ping_held(struct bed_ping *ping);

// The nth allocation of the fabric and of the pairing from now on fails, 0: none does.
void bed_fail_allocation(uint32_t nth);
bool bed_allocation_failed(void);

// Before each call into a driver.
void bed_call(void *ctx, enum fake_call call);
// A call of this kind hangs in its keeper until it is let go. FAKE_CALL_COUNT: none does.
void bed_hang(enum fake_call call);
bool bed_hangs(void); // one does
void bed_let_go(void);
// Of the keeper of agent 0's first device the nth call from now on, of whatever kind.
void bed_hang_nth(uint32_t nth);
// The device is lost before that call; 0: not any more.
void bed_lose_nth(uint32_t nth);
bool bed_lost(void); // that call came
// Until the keepers of fabrics that are gone have ended: what hangs was let go.
void bed_wait_left_behind(void);
