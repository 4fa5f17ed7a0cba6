// SPDX-License-Identifier: BSD-3-Clause
// The verdict store of an agent. All parts that report the health of a node (client protocol, HTTP,
// feeds) read it here from memory.
//
// The store connects the pure engine (<verdict/engine.h>) to its sources. They are the overlay
// (peers, events, notices), the fabric (path observations), keepers (drivers that hang) and local
// checks (statements). Loop thread only; other threads read a copy in the snapshot
// (<control/snapshot.h>).
#pragma once

#include <control/loop.h>
#include <control/overlay.h>
#include <verdict/engine.h>
#include <verdict/grants.h>

struct health;

#define HEALTH_NOTICE (RAS_NOTICE_OWN_MIN + 0) // notice kind for observations
#define HEALTH_GRANTS (RAS_NOTICE_OWN_MIN + 1) // notice kind for grants

struct health_config {
	bool observes_only;   // advise no drain and no restart
	uint64_t confirm_ns;  // time before VERDICT_ADVICE_DRAIN_LATER becomes a drain; 0: 60 s
	const char *topology; // path of a file that names the leaf switch of each node; "": none
	uint64_t random_seed;
	// Limits as a percentage of the nodes that can be drained: drains in ten minutes, and nodes
	// out of service at the same time.
	uint32_t drain_rate_percent, drain_out_percent; // 0: 5 and 33
};

// Create the store. Returns 0, -ENOMEM, or -errno of the topology file with an explanation in
// ret_detail.
int health_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct health_config *config,
	char ret_detail[static 256],
	struct health **ret_health
);
struct health *health_destroy(struct health *health);

// Add evidence that this node collected: an observation of a peer, or a statement about this node.
void health_add_observation(struct health *health, const struct observation *observation);
// health_add_statement() returns 0, or the error of verdict_statement(), which it logs.
int health_add_statement(struct health *health, const struct statement *statement);
// Record how many polling threads of a peer hang, as read from its pulse page; 0: none any more.
// The number is not sent to other agents, because each of them can read the same page.
void health_set_hung_workers(struct health *health, uint64_t peer, uint32_t hung, uint32_t workers);

const struct verdict_engine *health_engine(const struct health *health);
// Return the bytes allocated for evidence, its exchange and verdicts.
size_t health_memory_used(const struct health *health);

// Return what a scheduler may do now: the verdict's advice after confirmation time, maintenance,
// brake, grants and [health] act.
enum verdict_advice health_advice(const struct health *health, const struct verdict_view *view);
// Return why the drain or restart that the verdict asks for is only a warning. Returns NULL if the
// verdict asks for neither, or if the advice is given.
const char *health_withheld_reason(const struct health *health, const struct verdict_view *view);
// Return the advice that the verdict asks for and that [health] act = no holds back: drain,
// restart, or VERDICT_ADVICE_NOTHING.
enum verdict_advice
health_suppressed_advice(const struct health *health, const struct verdict_view *view);
bool health_observes_only(const struct health *health);
// Return the node that grants drains, as this node sees it; 0: no node.
uint64_t health_granter(const struct health *health);
const struct grants_counters *health_grant_counters(const struct health *health);

// A subscriber to verdict changes, called after each change is applied. It may defer a job, but
// must not call back into the store.
struct health_listener {
	void (*changed)(struct health_listener *listener, const struct verdict_change *change);
	struct health_listener *next; // private
};
void health_listen(struct health *health, struct health_listener *listener);
void health_unlisten(struct health *health, struct health_listener *listener);
