// SPDX-License-Identifier: BSD-3-Clause
// What other threads (HTTP) may know of this agent besides its peers: the view and every counter
// of one moment, published by RCU.
//
// A reader is registered and online (<lib/rcu_thread.h>) while it reads, and takes the peers
// from <dataplane/peer_table.h> in the same breath; both are valid until its next quiescent state.
#pragma once

#include <control/loop.h>
#include <control/transport.h>
#include <ras/ras.h>

#include <stdint.h>

// Retired ones that readers may hold up before publishing is refused.
#define SNAPSHOTS_WAITING_MAX 64

struct snapshot {
	uint64_t at_ns;
	uint64_t log_lost; // lines that could not be written
	struct ras_view view;
	struct ras_counters ras;
	struct loop_counters loop;
	struct transport_counters transport;
	uint64_t ras_bytes; // memory of the core
};

struct snapshots;

// The control thread. All zero is published. -ENOMEM.
int snapshots_create(struct snapshots **ret_snapshots);
// The control thread, offline, when no reader is left. NULL is fine.
struct snapshots *snapshots_destroy(struct snapshots *snapshots);

// The control thread, registered and online; takes a copy. -EAGAIN (a reader holds up what was
// before), -ENOMEM; then readers go on with the one that they have.
int snapshots_publish(struct snapshots *snapshots, const struct snapshot *snapshot);

// Readers.
const struct snapshot *snapshots_current(const struct snapshots *snapshots);
