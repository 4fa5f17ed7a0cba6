// SPDX-License-Identifier: BSD-3-Clause
// The one store of verdicts in an agent. Everything that tells somebody outside how a node is (the
// client protocol, HTTP, feeds) reads it here, from memory, and asks nobody.
//
// Wires the pure engine (<verdict/engine.h>) to the overlay (peers, events, notices), the fabric
// (observations of paths), keepers (drivers that hang) and local checks (statements). All on the
// loop's thread; other threads see a copy in the snapshot (<control/snapshot.h>).
#pragma once

#include <control/loop.h>
#include <control/overlay.h>
#include <verdict/engine.h>
#include <verdict/grants.h>

struct health;

#define HEALTH_NOTICE (RAS_NOTICE_OWN_MIN + 0) // kind of the notices that carry observations
#define HEALTH_GRANTS (RAS_NOTICE_OWN_MIN + 1) // and of those that carry grants

struct health_config {
	uint64_t confirm_ns;  // before VERDICT_ADVICE_DRAIN_LATER becomes a drain; 0: 60 s
	const char *topology; // a file that names the leaf of each node; "": none
	uint64_t random_seed;
	// Of the nodes that may be drained: how many in ten minutes, and out of service at a time.
	uint32_t drain_rate_percent, drain_out_percent; // 0: 5, 33
};

// -ENOMEM, -errno of the topology file with what is wrong in words.
int health_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct health_config *config,
	char ret_detail[static 256],
	struct health **ret_health
);
struct health *health_destroy(struct health *health);

// Evidence of this node.
void health_observation(struct health *health, const struct observation *observation);
void health_say(struct health *health, const struct statement *statement);
// Of a peer, as its page was read: so many of its polling threads hang; 0: no more. Kept here
// alone: whoever reads it sees the same.
void health_hung(struct health *health, uint64_t peer, uint32_t hung, uint32_t workers);

const struct verdict_engine *health_engine(const struct health *health);
// Bytes allocated for evidence, its exchange and verdicts.
size_t health_memory_used(const struct health *health);

// Advice with the confirmation time applied, maintenance, brake and grants: what a scheduler may do
// now.
enum verdict_advice health_advice(const struct health *health, const struct verdict_view *view);
// Why a drain that the verdict asks for is only a warning; NULL: it asks for none, or has a grant.
const char *health_withheld(const struct health *health, const struct verdict_view *view);
// Who grants drains, as it looks from here; 0: nobody.
uint64_t health_granter(const struct health *health);
const struct grants_counters *health_grants(const struct health *health);

// Told of each change after it was applied; may defer, must not call back into the store.
struct health_listener {
	void (*changed)(struct health_listener *listener, const struct verdict_change *change);
	struct health_listener *next; // private
};
void health_listen(struct health *health, struct health_listener *listener);
void health_unlisten(struct health *health, struct health_listener *listener);
