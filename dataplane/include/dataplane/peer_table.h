// SPDX-License-Identifier: BSD-3-Clause
// The peers as the threads that only read see them: immutable versions, published by RCU.
//
// The control thread writes: it sets and clears rows of the version to come, which nobody else
// sees, and publishes it. Any RCU reader (<lib/rcu_thread.h>, online) takes the present version
// and looks up rows in it; the version and all that was found in it stay as they are until the
// reader's next quiescent state, and are gone after it.
//
// A row's slot is dense, and is the peer's while it is known; later it may be another's, so who
// keeps a slot over a quiescent state keeps the id beside it. Rows lie in chunks that versions
// share: to publish one change copies one chunk and the list of chunks. A change of who is known
// rebuilds the index of ids as well.
//
// Memory is bounded whatever readers do: what waits for them to let go is counted, and while it
// is more than half of everything, publishing is refused and changes gather in the version to
// come. At most four tables and PEER_TABLE_WAITING_BYTES exist at once.
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

// As in the overlay, whose types the data plane does not see; control proves that they agree.
enum peer_state {
	PEER_UNKNOWN,
	PEER_ALIVE,
	PEER_SUSPECT,
	PEER_UNREACHABLE,
	PEER_DEAD,
	PEER_LEFT,
};

// What a probe needs is in the first line of the cache, what people read in the others.
struct peer_row {
	alignas(64) uint64_t id; // never 0
	uint64_t incarnation;
	uint64_t first_incarnation; // of this start of it
	struct sock_addr address;   // where its overlay listens
	uint32_t slot;
	uint8_t state; // enum peer_state
	uint8_t cause; // enum ras_cause, for control and agent
	bool sole;     // declared dead by its only possible observer
	bool maint;
	bool ended; // it left, or its process is gone: of this start nothing is left to be read
	uint8_t name_length; // never 0
	uint8_t host_length;
	uint8_t observer_count;
	uint64_t observers[PEER_OBSERVERS_MAX]; // ids
	uint64_t since_ns;			// in this state
	char name[PEER_NAME_MAX + 1];		// terminated
	char host[PEER_NAME_MAX + 1];
};
static_assert(offsetof(struct peer_row, observers) <= 64, "what is hot is in one line");

// The version as a whole.
struct peer_view {
	uint64_t number; // of the overlay's view; grows
	uint64_t digest;
	uint64_t at_ns;	    // when it was published
	uint32_t row_count; // filled in by peer_table_publish()
	uint32_t slots_max; // likewise: all rows are in slots below
	uint32_t alive;	    // ourselves included; suspect and unreachable count as alive
	uint32_t suspect;
	uint32_t unreachable;
	uint32_t dead;
	uint32_t left;
	bool joined;
	bool brake;
};

struct peer_table;    // one per agent
struct peer_snapshot; // one version of it

// The control thread, after rcu_reclaimer_start(). An empty version is published. -ENOMEM.
int peer_table_create(struct peer_table **ret_table);
// The control thread, offline, when no reader is left. Waits for the reclaimer. NULL is fine.
struct peer_table *peer_table_destroy(struct peer_table *table);

// The control thread: the version to come. A row is copied to the slot it names.
// -EINVAL (slot, id 0, no name), -ENOMEM; then nothing has changed.
int peer_table_set(struct peer_table *table, const struct peer_row *row);
// 0 also if there is no row in the slot; -ENOMEM.
int peer_table_clear(struct peer_table *table, uint32_t slot);
// The row as the version to come has it, NULL if there is none; valid until the next call above.
const struct peer_row *peer_table_newest(const struct peer_table *table, uint32_t slot);
// The control thread, registered and online as call_rcu wants it. Makes the version to come the
// present one. -EAGAIN (readers hold too much of what was before), -ENOMEM; then readers go on
// with the present version, and the changes are kept for the next try.
int peer_table_publish(struct peer_table *table, const struct peer_view *view);

// Any thread; figures of slightly different moments.
struct peer_table_memory {
	uint64_t allocated_bytes; // all of it
	uint64_t waiting_bytes;	  // of these, retired and not yet freed
	uint64_t published;
	uint64_t refused; // tries that ended in -EAGAIN
};
void peer_table_memory(const struct peer_table *table, struct peer_table_memory *ret_memory);

// Readers, hot: no lock, no memory, no system call. All are valid until the next quiescent state.
const struct peer_snapshot *peer_table_snapshot(const struct peer_table *table);
const struct peer_view *peer_snapshot_view(const struct peer_snapshot *snapshot);
// NULL if there is no row in the slot.
const struct peer_row *peer_snapshot_row(const struct peer_snapshot *snapshot, uint32_t slot);
// NULL if no such peer is known.
const struct peer_row *peer_snapshot_find(const struct peer_snapshot *snapshot, uint64_t id);
