// SPDX-License-Identifier: BSD-3-Clause
// Publishes the overlay's peers: the core's table becomes <dataplane/peer_table.h> for readers.
//
// Peers that an event names are marked, and marked ones are read anew when it is time to publish:
// at most once in PUBLISH_INTERVAL_NS, so that a storm of changes costs one version each time. A
// change that no event tells is found by a walk over all slots, PUBLISH_WALK_SLOTS of them each
// time, which is begun whenever the view is not the one that the last walk began with.
//
// All on the control thread, which is registered as an RCU reader and offline
// (<lib/rcu_thread.h>): only the moment of publishing is online.
#pragma once

#include <dataplane/peer_table.h>
#include <ras/ras.h>

#include <stdint.h>

#define PUBLISH_INTERVAL_NS (50 * RAS_NS_PER_MS)
#define PUBLISH_WALK_SLOTS 1024

struct publish;

// Core and table outlive it. All peers are marked. -ENOMEM.
int publish_create(
	const struct ras *ras,
	struct peer_table *table,
	uint64_t now_ns,
	struct publish **ret_publish
);
struct publish *publish_destroy(struct publish *publish);

// Something about this peer has changed, or it is gone; unknown ones and 0 are ignored.
void publish_mark(struct publish *publish, uint64_t peer);

// Publishes what has changed if it is time to; what fails (logged, with the reader that stalls
// it) is tried again. Returns when to call it next, RAS_NEVER until the next event. now_ns is of
// the clock of all RCU readers.
uint64_t publish_dirty(struct publish *publish, uint64_t now_ns);
