// SPDX-License-Identifier: BSD-3-Clause
// The peers as reading threads see them: immutable versions, published by RCU.
//
// The control thread changes rows of the next version, which only it sees, and publishes it. Any
// RCU reader (<lib/rcu_thread.h>, online) reads the current version and looks up rows. That version
// and its rows stay unchanged until the reader's next quiescent state and may be freed after it.
//
// Slots are dense. A slot belongs to a peer while the peer is known, and may be reused later. A
// reader that keeps a slot over a quiescent state must keep the id with it. Versions share chunks
// of rows: publishing one change copies one chunk and the list of chunks. Adding or removing a peer
// also rebuilds the id index.
//
// Memory is bounded for any reader behaviour. Retired memory is counted. While it is more than half
// of the total, publishing fails and changes gather in the next version. At most four tables plus
// PEER_TABLE_WAITING_BYTES exist at once.
#pragma once

#include <lib/sockaddr.h>

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_TABLE_SLOTS_MAX 131072
#define PEER_TABLE_WAITING_BYTES (UINT64_C(1) << 20)
#define PEER_NAME_MAX 63
#define PEER_OBSERVERS_MAX 2

// Same values as in the overlay, whose types the data plane does not include; control asserts the
// equality.
enum peer_state {
	PEER_UNKNOWN,
	PEER_ALIVE,
	PEER_SUSPECT,
	PEER_UNREACHABLE,
	PEER_DEAD,
	PEER_LEFT,
};

// One peer. Fields for probes are in the first cache line, fields for display in the others.
struct peer_row {
	alignas(64) uint64_t id; // never 0
	uint64_t incarnation;
	uint64_t first_incarnation; // first incarnation of the present process
	struct sock_addr address;   // address where its overlay listens
	uint32_t slot;
	uint8_t state; // enum peer_state
	uint8_t cause; // enum ras_cause, for control and agent
	bool sole;     // declared dead by its only possible observer
	bool maint;
	bool ended;	     // it left or its process ended, so its memory is unreadable
	uint8_t name_length; // never 0
	uint8_t host_length;
	uint8_t observer_count;
	uint64_t observers[PEER_OBSERVERS_MAX]; // ids
	uint64_t since_ns;			// time since which the state holds
	char name[PEER_NAME_MAX + 1];		// terminated
	char host[PEER_NAME_MAX + 1];
};
static_assert(offsetof(struct peer_row, observers) <= 64, "what is hot is in one line");

// Facts about a whole version.
struct peer_view {
	uint64_t number; // number of the overlay's view; grows
	uint64_t digest;
	uint64_t at_ns;	    // time of publication
	uint32_t row_count; // filled in by peer_table_publish()
	uint32_t slots_max; // also filled in; all rows have lower slots
	uint32_t alive;	    // including this agent; suspect and unreachable peers count as alive
	uint32_t suspect;
	uint32_t unreachable;
	uint32_t dead;
	uint32_t left;
	bool joined;
	bool brake;
};

struct peer_table;    // one per agent
struct peer_snapshot; // one version of it

// Create a table and publish an empty version. Control thread, after rcu_reclaimer_start(). Returns
// -ENOMEM.
int peer_table_create(struct peer_table **ret_table);
// Destroy the table when no reader is left; waits for the reclaimer. Control thread, offline. NULL
// is fine.
struct peer_table *peer_table_destroy(struct peer_table *table);

// Copy a row to its slot in the next version. Control thread. Returns -EINVAL (slot, id 0, no name)
// or -ENOMEM; then nothing has changed.
int peer_table_set(struct peer_table *table, const struct peer_row *row);
// Clear a row. Returns 0 also if the slot is empty; -ENOMEM.
int peer_table_clear(struct peer_table *table, uint32_t slot);
// Return the row of the next version, or NULL; valid until the next call above.
const struct peer_row *peer_table_next_row(const struct peer_table *table, uint32_t slot);
// Publish the next version. Control thread, registered and online as call_rcu requires. Returns
// -EAGAIN (readers hold too much retired memory) or -ENOMEM. Then readers keep the current version,
// and the changes are kept for the next try.
int peer_table_publish(struct peer_table *table, const struct peer_view *view);

// Memory use; the values are not from one instant. Any thread.
struct peer_table_memory_use {
	uint64_t allocated_bytes; // total
	uint64_t waiting_bytes;	  // retired but not yet freed, included in the total
	uint64_t published;
	uint64_t refused; // publications refused with -EAGAIN
};
void peer_table_memory_use(
	const struct peer_table *table, struct peer_table_memory_use *ret_memory
);

// Functions for readers: hot, without locks, allocation or system calls. Results are valid until
// the next quiescent state.
const struct peer_snapshot *peer_table_snapshot(const struct peer_table *table);
const struct peer_view *peer_snapshot_view(const struct peer_snapshot *snapshot);
// Return the row in the slot, or NULL.
const struct peer_row *peer_snapshot_row(const struct peer_snapshot *snapshot, uint32_t slot);
// Return the row of a peer, or NULL if the peer is unknown.
const struct peer_row *peer_snapshot_find(const struct peer_snapshot *snapshot, uint64_t id);
