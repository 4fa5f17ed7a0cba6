// SPDX-License-Identifier: BSD-3-Clause
// Tests of the engine's thread on a simulated device. Its pending work is a number, its wire an
// eventfd. No test depends on time: a lost wake hangs the test.
#include "engine/engine.h"

#include <lib/scoped.h>
#include <support/cmocka.h>

#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 3000
#define CALLERS 3

static struct {
	struct soft_nic nic;
	struct soft_wire wire;
	struct clock clock;
	struct engine *engine;
	int frames; // eventfd; each unit is one frame
	// Protected by the lock of the device.
	uint32_t left;	 // pending work of callers
	uint64_t due_ns; // due time of that work
	bool full;	 // the wire accepts none of it
	uint32_t done, frames_done;
	pthread_cond_t moved;
	atomic_bool callers_are_first; // callers take each frame before the engine
	sem_t sleeps, stands_back;     // posted at each begin of a sleep or of standing back
} world;

static bool take_frame(void) {
	uint64_t count;

	return read(world.frames, &count, sizeof(count)) == sizeof(count);
}

// Functions of the device that the engine calls.

bool nic_turn(struct soft_nic *nic, bool defer_acks) {
	bool moved = false;

	assert_false(defer_acks);
	nic->now_ns = clock_now_ns(nic->clock);
	if (take_frame()) {
		world.frames_done++;
		moved = true;
	}
	if (world.left > 0 && !world.full && world.due_ns <= nic->now_ns) {
		world.done += world.left;
		world.left = 0;
		moved = true;
	}
	if (moved)
		pthread_cond_broadcast(&world.moved);
	return moved;
}

uint64_t nic_next_turn_ns(const struct soft_nic *nic) {
	(void)nic;
	return world.left > 0 ? world.due_ns : NIC_NEVER;
}

static void fake_wait(struct soft_wire *wire, int doorbell, uint64_t timeout_ns) {
	struct pollfd fds[] = {{world.frames, POLLIN, 0}, {doorbell, POLLIN, 0}};
	const struct timespec timeout = {
		(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};

	(void)wire;
	sem_post(&world.sleeps);
	(void)!ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
	if (atomic_load(&world.callers_are_first))
		take_frame();
}

// Ticks never come here, so only calls end the engine's standing back. The linker prefers this
// definition to libc's.
int poll(struct pollfd *fds, nfds_t count, int timeout) {
	(void)timeout;
	sem_post(&world.stands_back);
	return ppoll(fds, count, NULL, NULL);
}

static const struct wire_calls fake_calls = {.name = "fake", .wait = fake_wait};

static int begin(void **state) {
	(void)state;
	memset(&world, 0, sizeof(world));
	clock_init_monotonic(&world.clock);
	world.frames = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	world.wire.calls = &fake_calls;
	world.nic.wire = &world.wire;
	world.nic.clock = &world.clock;
	pthread_mutex_init(&world.nic.lock, NULL);
	pthread_cond_init(&world.moved, NULL);
	sem_init(&world.sleeps, 0, 0);
	sem_init(&world.stands_back, 0, 0);
	snprintf(world.nic.config.name, sizeof(world.nic.config.name), "soft0");
	return engine_start(&world.nic, &world.engine);
}

static int end(void **state) {
	(void)state;
	engine_stop(world.engine);
	close(world.frames);
	return 0;
}

static void send_frame(void) {
	const uint64_t one = 1;

	assert_int_equal(write(world.frames, &one, sizeof(one)), sizeof(one));
}

static void await(const uint32_t *count, uint32_t value) {
	while ((int32_t)(*count - value) < 0)
		pthread_cond_wait(&world.moved, &world.nic.lock);
}

// Leave work like nic_unlock_and_ring(). Call with the lock held; returns with it released.
static void leave(uint64_t due_ns) {
	bool ring = due_ns < world.nic.engine_next_wake_ns;

	world.due_ns = due_ns;
	world.left++;
	if (ring)
		world.nic.engine_next_wake_ns = 0;
	nic_unlock(&world.nic);
	if (ring)
		engine_note_work_left(world.engine);
}

static void stand_back(void) {
	atomic_store(&world.callers_are_first, true);
	while (sem_trywait(&world.stands_back) != 0) {
		nic_lock(&world.nic);
		world.nic.now_ns = clock_now_ns(world.nic.clock);
		engine_note_caller_turn(world.engine);
		nic_unlock(&world.nic);
		send_frame();
		sched_yield();
	}
	while (take_frame())
		;
	atomic_store(&world.callers_are_first, false);
}

static void engine_is_named_after_its_device(void **state) {
	char path[300], name[32] = "";
	struct dirent *entry;
	scoped_dir DIR *dir = NULL;
	bool found = false;

	(void)state;
	sem_wait(&world.sleeps);
	dir = opendir("/proc/self/task");
	assert_non_null(dir);
	while (!found && (entry = readdir(dir)) != NULL) {
		scoped_file FILE *file = NULL;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		found = file != NULL && fgets(name, sizeof(name), file) != NULL &&
			strcmp(name, "tocsin-soft0\n") == 0;
	}
	assert_true(found);
}

static void engine_takes_a_frame_that_nobody_polls_for(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		send_frame();
		nic_lock(&world.nic);
		await(&world.frames_done, n);
		nic_unlock(&world.nic);
	}
	assert_true(world.nic.counters.engine_wakes >= 1);
	assert_true(world.nic.counters.engine_useful <= world.nic.counters.engine_wakes);
}

static void *leave_and_await(void *arg) {
	uint32_t value;

	(void)arg;
	for (uint32_t n = 0; n < ROUNDS; n++) {
		nic_lock(&world.nic);
		value = world.done + world.left + 1;
		leave(0);
		nic_lock(&world.nic);
		await(&world.done, value);
		nic_unlock(&world.nic);
	}
	return NULL;
}

static void work_that_callers_leave_is_never_forgotten(void **state) {
	pthread_t threads[CALLERS];

	(void)state;
	for (uint32_t n = 0; n < CALLERS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, leave_and_await, NULL), 0);
	for (uint32_t n = 0; n < CALLERS; n++)
		pthread_join(threads[n], NULL);
	assert_int_equal(world.done, CALLERS * ROUNDS);
}

static void timer_that_callers_leave_is_kept(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= 100; n++) {
		nic_lock(&world.nic);
		leave(clock_monotonic_ns() + 20000);
		nic_lock(&world.nic);
		await(&world.done, n);
		assert_true(world.nic.now_ns >= world.due_ns);
		nic_unlock(&world.nic);
	}
}

static void full_wire_is_tried_again_without_spinning(void **state) {
	(void)state;
	nic_lock(&world.nic);
	world.full = true;
	leave(0);
	while (sem_trywait(&world.sleeps) == 0)
		;
	for (uint32_t n = 0; n < 5; n++)
		sem_wait(&world.sleeps); // each round must sleep
	nic_lock(&world.nic);
	assert_int_equal(world.done, 0);
	world.full = false;
	await(&world.done, 1);
	nic_unlock(&world.nic);
}

// In each round the engine stands back. A caller arms the queue and sleeps until a frame comes.
static void armed_queue_is_served_by_an_engine_that_stood_back(void **state) {
	uint32_t before;

	(void)state;
	for (uint32_t n = 0; n < 200; n++) {
		stand_back();
		nic_lock(&world.nic);
		before = world.frames_done;
		nic_unlock(&world.nic);
		engine_note_cq_armed(world.engine);
		send_frame();
		nic_lock(&world.nic);
		await(&world.frames_done, before + 1);
		nic_unlock(&world.nic);
	}
}

static void engine_that_stands_back_is_woken_by_no_frame(void **state) {
	uint64_t wakes;

	(void)state;
	stand_back();
	nic_lock(&world.nic);
	wakes = world.nic.counters.engine_wakes;
	assert_int_equal(
		world.nic.engine_next_wake_ns, 0
	); // callers do not ring the doorbell either
	nic_unlock(&world.nic);
	for (uint32_t n = 0; n < 100; n++)
		send_frame();
	nic_lock(&world.nic);
	assert_int_equal(world.nic.counters.engine_wakes, wakes);
	nic_unlock(&world.nic);
}

static void stop_ends_it_wherever_it_sleeps(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 200; n++) {
		if (n % 3 == 1)
			sem_wait(&world.sleeps);
		if (n % 3 == 2)
			stand_back();
		world.engine = engine_stop(world.engine);
		assert_null(world.engine);
		while (sem_trywait(&world.sleeps) == 0 || sem_trywait(&world.stands_back) == 0)
			;
		assert_int_equal(engine_start(&world.nic, &world.engine), 0);
	}
	assert_null(engine_stop(NULL));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

UNIT_GROUP(soft_engine) {
	const struct CMUnitTest tests[] = {
		TEST(engine_is_named_after_its_device),
		TEST(engine_takes_a_frame_that_nobody_polls_for),
		TEST(work_that_callers_leave_is_never_forgotten),
		TEST(timer_that_callers_leave_is_kept),
		TEST(full_wire_is_tried_again_without_spinning),
		TEST(armed_queue_is_served_by_an_engine_that_stood_back),
		TEST(engine_that_stands_back_is_woken_by_no_frame),
		TEST(stop_ends_it_wherever_it_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
