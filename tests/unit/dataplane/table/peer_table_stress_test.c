// SPDX-License-Identifier: BSD-3-Clause
// The peer table under load: polling readers, sleeping readers, and a publisher that runs as fast
// as possible. Threads end after a count, never after a time. All fields of a row derive from its
// incarnation, so a reader detects a half-written or freed row.
#include <dataplane/peer_table.h>
#include <lib/clock.h>
#include <lib/must.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROWS 10000
#define PUBLISHES 5000
#define READERS 3
#define SLEEPERS 3

struct scene {
	struct peer_table *table;
	_Atomic bool over;	   // publisher: writes, others: read
	_Atomic uint64_t reads;	   // readers: read and write
	_Atomic uint64_t oddities; // number of inconsistent rows
	_Atomic uint64_t sleeps;
};

static uint64_t id_of(uint32_t slot) {
	return (slot + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct peer_row row_of(uint32_t slot, uint64_t incarnation) {
	struct peer_row row = {
		.id = id_of(slot),
		.incarnation = incarnation,
		.since_ns = ~incarnation,
		.slot = slot,
		.state = (uint8_t)(incarnation % 2 == 0 ? PEER_ALIVE : PEER_SUSPECT),
		.observers = {incarnation, ~incarnation},
	};

	row.name_length = (uint8_t)snprintf(row.name, sizeof(row.name), "n%u", slot);
	return row;
}

static bool row_fits(const struct peer_row *row, uint32_t slot) {
	return row->id == id_of(slot) && row->slot == slot && row->since_ns == ~row->incarnation &&
	       row->observers[0] == row->incarnation && row->observers[1] == ~row->incarnation &&
	       row->state == (row->incarnation % 2 == 0 ? PEER_ALIVE : PEER_SUSPECT);
}

// Read a few rows of one version by slot and id. The version must not go back.
static void look(struct scene *scene, uint32_t *draw, uint64_t *number) {
	const struct peer_snapshot *snapshot = peer_table_snapshot(scene->table);
	bool odd = peer_snapshot_view(snapshot)->number < *number;

	*number = peer_snapshot_view(snapshot)->number;
	for (int n = 0; n < 8; n++) {
		uint32_t slot = (*draw = *draw * 1664525 + 1013904223) % ROWS;
		const struct peer_row *row = peer_snapshot_row(snapshot, slot);

		// Every eighth peer is removed and added again.
		if (row == NULL)
			odd |= slot % 8 != 0 || peer_snapshot_find(snapshot, id_of(slot)) != NULL;
		else
			odd |= !row_fits(row, slot) ||
			       peer_snapshot_find(snapshot, id_of(slot)) != row;
	}
	atomic_fetch_add(&scene->reads, 1);
	atomic_fetch_add(&scene->oddities, odd);
}

static void *reader_run(void *argument) {
	struct scene *scene = argument;
	uint32_t draw = 1;
	uint64_t number = 0;

	must(rcu_thread_register("reader", clock_monotonic_ns()) == 0);
	while (!atomic_load(&scene->over)) {
		look(scene, &draw, &number);
		rcu_thread_quiescent(clock_monotonic_ns());
	}
	rcu_thread_unregister();
	return NULL;
}

// Stay offline most of the time, like the HTTP thread and blocked workers.
static void *sleeper_run(void *argument) {
	struct scene *scene = argument;
	uint32_t draw = 2;
	uint64_t number = 0;

	must(rcu_thread_register("sleeper", clock_monotonic_ns()) == 0);
	while (!atomic_load(&scene->over)) {
		rcu_thread_offline();
		atomic_fetch_add(&scene->sleeps, 1);
		sched_yield();
		rcu_thread_online(clock_monotonic_ns());
		look(scene, &draw, &number);
	}
	rcu_thread_unregister();
	return NULL;
}

static void fill(struct peer_table *table) {
	struct peer_view view = {.number = 1};

	for (uint32_t slot = 0; slot < ROWS; slot++) {
		struct peer_row row = row_of(slot, 0);

		assert_int_equal(peer_table_set(table, &row), 0);
	}
	assert_int_equal(peer_table_publish(table, &view), 0);
}

static void change(struct peer_table *table, uint32_t n) {
	struct peer_row row;
	uint32_t slot;

	for (uint32_t k = 0; k < 4; k++) {
		slot = (n * 2654435761U + k * 97) % ROWS;
		row = row_of(slot, n);
		assert_int_equal(peer_table_set(table, &row), 0);
	}
	slot = n * 8 % ROWS;
	if (n % 16 == 0)
		assert_int_equal(peer_table_clear(table, slot), 0);
}

struct tally {
	uint64_t allocated_bytes_max;
	uint64_t refused;
	uint64_t live_bytes;
};

// Publish as fast as readers allow. If readers hold too much memory, wait for them.
static struct tally publish_much(struct scene *scene) {
	struct peer_table_memory_use memory;
	struct tally tally = {0};

	peer_table_memory_use(scene->table, &memory);
	tally.live_bytes = memory.allocated_bytes - memory.waiting_bytes;
	for (uint32_t n = 0; n < PUBLISHES; n++) {
		struct peer_view view = {.number = 2 + n};

		change(scene->table, n);
		while (peer_table_publish(scene->table, &view) == -EAGAIN) {
			tally.refused++;
			rcu_thread_offline();
			sched_yield();
			rcu_thread_online(clock_monotonic_ns());
		}
		rcu_thread_quiescent(clock_monotonic_ns());
		peer_table_memory_use(scene->table, &memory);
		if (memory.allocated_bytes > tally.allocated_bytes_max)
			tally.allocated_bytes_max = memory.allocated_bytes;
	}
	return tally;
}

static void fast_publisher_is_bounded_in_memory_and_no_reader_sees_a_torn_row(void **state) {
	pthread_t threads[READERS + SLEEPERS];
	struct scene scene = {0};
	struct rcu_thread_stall stall;
	struct tally tally;

	(void)state;
	assert_int_equal(peer_table_create(&scene.table), 0);
	rcu_thread_online(clock_monotonic_ns());
	fill(scene.table);
	for (int n = 0; n < READERS + SLEEPERS; n++)
		assert_int_equal(
			pthread_create(
				&threads[n], NULL, n < READERS ? reader_run : sleeper_run, &scene
			),
			0
		);
	tally = publish_much(&scene);
	atomic_store(&scene.over, true);
	rcu_thread_offline();
	for (int n = 0; n < READERS + SLEEPERS; n++)
		pthread_join(threads[n], NULL);

	print_message(
		"# %u publishes, %lu refused, %lu looks, %lu sleeps, live %lu KiB, at most %lu KiB\n",
		PUBLISHES, (unsigned long)tally.refused, (unsigned long)atomic_load(&scene.reads),
		(unsigned long)atomic_load(&scene.sleeps), (unsigned long)tally.live_bytes >> 10,
		(unsigned long)tally.allocated_bytes_max >> 10
	);
	assert_int_equal(atomic_load(&scene.oddities), 0);
	assert_true(atomic_load(&scene.reads) > 0);
	assert_true(tally.allocated_bytes_max <= 4 * tally.live_bytes + PEER_TABLE_WAITING_BYTES);
	assert_false(rcu_thread_find_stalled(1, clock_monotonic_ns(), &stall));
	assert_null(peer_table_destroy(scene.table));
}

struct stuck {
	sem_t online;
	sem_t release;
};

// A worker that sleeps without having gone offline.
static void *stuck_run(void *argument) {
	struct stuck *stuck = argument;

	must(rcu_thread_register("worker-stuck", clock_monotonic_ns()) == 0);
	sem_post(&stuck->online);
	while (sem_wait(&stuck->release) != 0)
		;
	rcu_thread_unregister();
	return NULL;
}

static void wait_until_nothing_waits(struct peer_table *table) {
	struct peer_table_memory_use memory;

	rcu_reclaimer_drain();
	peer_table_memory_use(table, &memory);
	assert_int_equal(memory.waiting_bytes, 0);
}

static void reader_that_stalls_grace_periods_is_named_and_all_goes_on_after_it(void **state) {
	struct rcu_thread_stall stall;
	struct peer_view view = {.number = 1};
	struct scene scene = {0};
	struct stuck stuck;
	pthread_t thread;
	uint64_t now_ns;
	int err = 0;

	(void)state;
	sem_init(&stuck.online, 0, 0);
	sem_init(&stuck.release, 0, 0);
	assert_int_equal(peer_table_create(&scene.table), 0);
	rcu_thread_online(clock_monotonic_ns());
	fill(scene.table);
	assert_int_equal(pthread_create(&thread, NULL, stuck_run, &stuck), 0);
	rcu_thread_offline();
	while (sem_wait(&stuck.online) != 0)
		;
	rcu_thread_online(clock_monotonic_ns());
	for (uint32_t n = 0; err == 0; n++) {
		change(scene.table, n);
		err = peer_table_publish(scene.table, &view);
		rcu_thread_quiescent(clock_monotonic_ns());
	}
	assert_int_equal(err, -EAGAIN);
	now_ns = clock_monotonic_ns();
	rcu_thread_quiescent(now_ns);
	assert_true(rcu_thread_find_stalled(1, now_ns, &stall));
	assert_string_equal(stall.name, "worker-stuck");

	sem_post(&stuck.release);
	rcu_thread_offline();
	pthread_join(thread, NULL);
	wait_until_nothing_waits(scene.table);
	rcu_thread_online(clock_monotonic_ns());
	assert_int_equal(peer_table_publish(scene.table, &view), 0);
	rcu_thread_offline();
	assert_null(peer_table_destroy(scene.table));
	sem_destroy(&stuck.online);
	sem_destroy(&stuck.release);
}

UNIT_GROUP(peer_table_stress) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fast_publisher_is_bounded_in_memory_and_no_reader_sees_a_torn_row),
		cmocka_unit_test(reader_that_stalls_grace_periods_is_named_and_all_goes_on_after_it
		),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("publisher", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests_name("peer_table_stress", tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
