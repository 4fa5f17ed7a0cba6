// SPDX-License-Identifier: BSD-3-Clause
// Publishes the overlay's peers: copies the core's table into <dataplane/peer_table.h> for readers.
//
// Peers that an event names are marked. Marked peers are read again at the next publication, at
// most once in PUBLISH_INTERVAL_NS. So a storm of changes costs one version per interval. A change
// without an event is found by a walk over all slots, PUBLISH_WALK_SLOTS at a time. A walk starts
// when the view differs from the one at the start of the previous walk.
//
// Control thread only. It is registered as an RCU reader (<lib/rcu_thread.h>) and is offline except
// while it publishes.
#pragma once

#include <dataplane/peer_table.h>
#include <ras/ras.h>

#include <stdint.h>

#define PUBLISH_INTERVAL_NS (50 * RAS_NS_PER_MS)
#define PUBLISH_WALK_SLOTS 1024

struct publish;

// Create the publisher and mark all peers. Core and table must outlive it. Returns 0 or -ENOMEM.
int publish_create(
	const struct ras *ras,
	struct peer_table *table,
	uint64_t now_ns,
	struct publish **ret_publish
);
struct publish *publish_destroy(struct publish *publish);

// Mark a peer that has changed or is gone. Unknown peers and 0 are ignored.
void publish_mark_peer(struct publish *publish, uint64_t peer);

// Publish the changes, if the interval has passed. A failure is logged, with the reader that causes
// it, and tried again. Returns the time of the next call; RAS_NEVER: after the next event. now_ns
// is the clock of all RCU readers.
uint64_t publish_changed_peers(struct publish *publish, uint64_t now_ns);
