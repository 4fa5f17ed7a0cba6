// SPDX-License-Identifier: BSD-3-Clause
// Reading and publishing of the peer table in one thread. The locks have no contention, which
// favours them. A look-up finds a row and reads one field.
#include "micro.h"
#include "probe/prober_impl.h"

#include <dataplane/peer_table.h>
#include <lib/clock.h>
#include <lib/must.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define ROWS 10000
#define NEAR 64
// Look-ups between two quiescent states, as in one turn of a worker.
#define QUIESCENT_INTERVAL 64

static struct peer_row rows[ROWS];
static struct peer_row rows_copy[ROWS];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static uint64_t slot_id(uint32_t slot) {
	return (slot + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill_row(uint32_t slot) {
	rows[slot] = (struct peer_row
	){.id = slot_id(slot),
	  .slot = slot,
	  .incarnation = slot,
	  .first_incarnation = slot,
	  .name_length = 1,
	  .name = "n"};
}

// Return the table; the first slice creates it, and it stays until the program exits.
static struct peer_table *table_get(void) {
	static struct peer_table *table;
	struct peer_view view = {.number = 1};

	if (table != NULL)
		return table;
	must(peer_table_create(&table) == 0);
	for (uint32_t slot = 0; slot < ROWS; slot++) {
		fill_row(slot);
		must(peer_table_set(table, &rows[slot]) == 0);
	}
	must(peer_table_publish(table, &view) == 0);
	return table;
}

// Return the next slot, such that all rows are visited and each is far from the previous one. The
// stride is coprime to ROWS, defeats the prefetcher and is cheap.
static uint32_t slot_after(uint32_t slot) {
	slot += 7919;
	return slot < ROWS ? slot : slot - ROWS;
}

static uint32_t slot_near(uint32_t slot) {
	return (slot + 1) % NEAR;
}

static inline uint64_t read_rows(uint64_t rounds, uint32_t (*next)(uint32_t slot)) {
	struct peer_table *table = table_get();
	uint64_t start_ns = clock_monotonic_ns();
	uint32_t slot = 0;

	for (uint64_t n = 0; n < rounds; n++) {
		const struct peer_row *row = peer_snapshot_row(peer_table_snapshot(table), slot);

		micro_keep(row->incarnation);
		slot = next(slot);
		if (n % QUIESCENT_INTERVAL == 0)
			rcu_thread_quiescent(start_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_rcu_row_near(uint64_t rounds) {
	return read_rows(rounds, slot_near);
}

uint64_t micro_rcu_row_any(uint64_t rounds) {
	return read_rows(rounds, slot_after);
}

// Measure the check of a path's peer before a probe; the worker already has the path's row.
uint64_t micro_rcu_probe(uint64_t rounds) {
	static struct path_row paths[NEAR];
	struct peer_table *table = table_get();
	uint64_t start_ns;
	uint32_t slot = 0;

	for (uint32_t n = 0; n < NEAR; n++)
		paths[n] = (struct path_row){.peer = slot_id(n), .incarnation = n, .peer_slot = n};
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		micro_keep(path_peer_has_ended(table, &paths[slot]));
		slot = slot_near(slot);
		if (n % QUIESCENT_INTERVAL == 0)
			rcu_thread_quiescent(start_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_rcu_find(uint64_t rounds) {
	struct peer_table *table = table_get();
	uint64_t start_ns = clock_monotonic_ns();
	uint32_t slot = 0;

	for (uint64_t n = 0; n < rounds; n++) {
		const struct peer_snapshot *snapshot = peer_table_snapshot(table);

		micro_keep(peer_snapshot_find(snapshot, slot_id(slot))->incarnation);
		slot = slot_after(slot);
		if (n % QUIESCENT_INTERVAL == 0)
			rcu_thread_quiescent(start_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_rcu_quiescent(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		rcu_thread_quiescent(n);
	return clock_monotonic_ns() - start_ns;
}

static inline uint64_t read_locked(uint64_t rounds, uint32_t (*next)(uint32_t slot)) {
	uint64_t start_ns;
	uint32_t slot = 0;

	table_get();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		pthread_rwlock_rdlock(&rwlock);
		micro_keep(rows[slot].incarnation);
		pthread_rwlock_unlock(&rwlock);
		slot = next(slot);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_rcu_rwlock(uint64_t rounds) {
	return read_locked(rounds, slot_near);
}

uint64_t micro_rcu_rwlock_any(uint64_t rounds) {
	return read_locked(rounds, slot_after);
}

uint64_t micro_rcu_spinlock(uint64_t rounds) {
	pthread_spinlock_t lock;
	uint64_t start_ns;

	table_get();
	must(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		pthread_spin_lock(&lock);
		micro_keep(rows[(uint32_t)n % NEAR].incarnation);
		pthread_spin_unlock(&lock);
	}
	return clock_monotonic_ns() - start_ns;
}

// Publish one change and return its duration. If too many old versions wait, reclaim them outside
// of the measured time.
static uint64_t publish_timed(struct peer_table *table, uint32_t slot, bool gone) {
	struct peer_view view = {.number = slot};
	uint64_t start_ns;
	int err;

	for (;;) {
		start_ns = clock_monotonic_ns();
		err = gone ? peer_table_clear(table, slot) : peer_table_set(table, &rows[slot]);
		must(err == 0);
		err = peer_table_publish(table, &view);
		if (err == 0)
			return clock_monotonic_ns() - start_ns;
		must(err == -EAGAIN);
		rcu_thread_offline();
		rcu_reclaimer_drain();
		rcu_thread_online(start_ns);
	}
}

// Publish many changes. With `members`, members leave and return alternately, and all are back at
// the end.
static uint64_t publish_many(uint64_t rounds, bool members) {
	struct peer_table *table = table_get();
	uint64_t total_ns = 0;
	uint32_t slot = 0;

	for (uint64_t n = 0; n < rounds; n++) {
		bool gone = members && n % 2 == 0;

		total_ns += publish_timed(table, slot, gone);
		rcu_thread_quiescent(n);
		if (!gone)
			slot = slot_after(slot);
	}
	if (members && rounds % 2 != 0)
		publish_timed(table, slot, false);
	return total_ns;
}

uint64_t micro_rcu_publish(uint64_t rounds) {
	return publish_many(rounds, false);
}

uint64_t micro_rcu_publish_join(uint64_t rounds) {
	return publish_many(rounds, true);
}

uint64_t micro_rcu_copy_table(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		memcpy(rows_copy, rows, sizeof(rows));
		micro_keep(rows_copy[n % ROWS].id);
	}
	return clock_monotonic_ns() - start_ns;
}
