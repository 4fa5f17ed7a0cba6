// SPDX-License-Identifier: BSD-3-Clause
// The engine thread advances a device while no caller does. It never spins or yields, but blocks
// until woken. A woken thread gets a processor soon, even if spinning threads occupy all of them.
//
// No wake-up is lost:
// - A. While a frame is there, the wire's wait() returns.
// - B. Work that callers leave is compared with engine_next_wake_ns under the device's lock, and
//   the bell is armed under it. Either callers see that the engine sleeps, or the engine sees their
//   work in nic_next_turn_ns().
// - C. A caller that arms a completion queue stores `left`, then loads `is_passive` and the bell.
//   The engine stores `is_passive`, arms the bell, then loads `left`. Both sides have sequentially
//   consistent fences in between, so one of them sees the other. The same holds for `stop`.
#include "engine/engine.h"

#include "engine/engine_rule.h"

#include <dataplane/doorbell.h>
#include <lib/error.h>
#include <lib/thread.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

// Retry interval when the wire is full and gives no time.
#define RETRY_NS UINT64_C(100000)
#define TICK_MS ((int)(NIC_LAZY_NS / 1000000))

struct engine {
	struct soft_nic *nic;
	pthread_t thread;
	struct doorbell bell;
	// Private to the engine thread.
	struct engine_rule rule;
	struct soft_wire *wire; // wire to sleep on, from the latest turn
	uint64_t next_wake_ns;
	bool woken, called; // events since the latest turn

	// Written by callers with the device's lock, read by the engine
	_Alignas(64) _Atomic uint64_t caller_turn_ns;
	_Atomic bool left;	 // set by callers, cleared by the engine
	_Atomic bool is_passive; // written by the engine, read by callers
	_Atomic bool stop;	 // written by engine_stop(), read by the engine
};

// Relaxed: the value only guides a guess. The end of the call counts, because a post on a socket
// takes microseconds.
void engine_note_caller_turn(struct engine *engine) {
	uint64_t now_ns = clock_now_ns(engine->nic->clock);

	atomic_store_explicit(&engine->caller_turn_ns, now_ns, memory_order_relaxed);
}

// Cancellation is disabled: a thread cancelled in write() would leave the bell marked as rung.
static void engine_ring(struct engine *engine) {
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	doorbell_ring(&engine->bell);
	pthread_setcancelstate(cancel_state, NULL);
}

void engine_note_cq_armed(struct engine *engine) {
	atomic_store_explicit(&engine->left, true, memory_order_relaxed);
	// Pairs with the fence in doorbell_arm().
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&engine->is_passive, memory_order_relaxed))
		engine_ring(engine);
}

void engine_note_work_left(struct engine *engine) {
	atomic_store_explicit(&engine->left, true, memory_order_relaxed);
	engine_ring(engine);
}

// Acquire pairs with the release in engine_stop().
static bool engine_must_stop(const struct engine *engine) {
	return atomic_load_explicit(&engine->stop, memory_order_acquire);
}

static void engine_apply_rule(struct engine *engine, uint64_t now_ns, bool found) {
	const struct engine_observation seen = {
		.now_ns = now_ns,
		.caller_turn_ns =
			atomic_load_explicit(&engine->caller_turn_ns, memory_order_relaxed),
		.found = found,
		.called = engine->called,
	};

	if (engine_rule_update(&engine->rule, &seen))
		atomic_store_explicit(&engine->is_passive, engine->rule.back, memory_order_relaxed);
	engine->woken = engine->called = false;
}

// Run one turn. Returns true if anything moved, so that there may be more; else the engine may
// sleep.
static bool engine_turn(struct engine *engine) {
	struct soft_nic *nic = engine->nic;
	bool moved;

	nic_lock(nic);
	nic->engine_next_wake_ns = 0;
	moved = nic_turn(nic, false);
	if (engine->woken) {
		counter_add(&nic->counters.engine_wakes, 1);
		if (moved)
			counter_add(&nic->counters.engine_useful, 1);
		// Use the start of the turn: a spinning caller has waited since then for the lock.
		engine_apply_rule(engine, nic->now_ns, moved);
	}

	// Prepare to sleep while the lock is held: callers compare later work with
	// engine_next_wake_ns.
	if (!moved) {
		uint64_t due_ns = nic_next_turn_ns(nic);

		if (due_ns <= nic->now_ns)
			due_ns = nic->now_ns + RETRY_NS;
		engine->next_wake_ns = due_ns;
		engine->wire = nic->wire; // faults may wrap the device's wire meanwhile
		if (!engine->rule.back)
			nic->engine_next_wake_ns = due_ns;
		doorbell_arm(&engine->bell);
	}
	nic_unlock(nic);
	return moved;
}

static bool engine_has_call(const struct engine *engine) {
	return engine_must_stop(engine) ||
	       atomic_load_explicit(&engine->left, memory_order_relaxed);
}

static bool engine_clear_call(struct engine *engine) {
	return atomic_exchange_explicit(&engine->left, false, memory_order_relaxed);
}

static void engine_sleep_active(struct engine *engine) {
	struct soft_wire *wire = engine->wire;
	const struct clock *clock = engine->nic->clock;
	uint64_t now_ns = clock_now_ns(clock);

	if (!engine_has_call(engine) && now_ns < engine->next_wake_ns)
		wire->calls->wait(
			wire, engine->bell.fd,
			engine->next_wake_ns == NIC_NEVER ? NIC_NEVER
							  : engine->next_wake_ns - now_ns
		);
	doorbell_disarm(&engine->bell);
	engine->called = engine_clear_call(engine) || clock_now_ns(clock) >= engine->next_wake_ns;
	engine->woken = true;
}

// Sleep while passive, until callers stop polling; the device is not touched before.
static void engine_sleep_passive(struct engine *engine) {
	struct pollfd fd = {.fd = engine->bell.fd, .events = POLLIN};

	while (engine->rule.back && !engine_must_stop(engine)) {
		doorbell_arm(&engine->bell);
		if (!engine_has_call(engine))
			(void)!poll(&fd, 1, TICK_MS);
		doorbell_disarm(&engine->bell);
		engine->called = engine_clear_call(engine);
		engine_apply_rule(engine, clock_now_ns(engine->nic->clock), false);
	}
}

static void *engine_run(void *arg) {
	struct engine *engine = arg;

	atomic_store_explicit(&engine->nic->engine_tid, gettid(), memory_order_relaxed);
	prctl(PR_SET_TIMERSLACK, 1); // timers of requests can be as short as 10 us
	while (!engine_must_stop(engine)) {
		if (engine_turn(engine))
			continue;
		if (engine->rule.back)
			engine_sleep_passive(engine);
		else
			engine_sleep_active(engine);
	}
	atomic_store_explicit(&engine->nic->engine_tid, 0, memory_order_relaxed);
	return NULL;
}

int engine_start(struct soft_nic *nic, struct engine **ret_engine) {
	struct engine *engine = aligned_alloc(64, sizeof(*engine));
	char name[16];
	int err;

	if (engine == NULL)
		return -ENOMEM;
	*engine = (struct engine){.nic = nic};
	err = doorbell_init(&engine->bell);
	snprintf(name, sizeof(name), "tocsin-%.8s", nic->config.name);
	if (err == 0)
		err = thread_start_masked(name, engine_run, engine, &engine->thread);
	if (err != 0) {
		doorbell_close(&engine->bell);
		free(engine);
		return err;
	}
	*ret_engine = engine;
	return 0;
}

struct engine *engine_stop(struct engine *engine) {
	if (engine == NULL)
		return NULL;
	// Release pairs with the acquire in engine_must_stop().
	atomic_store_explicit(&engine->stop, true, memory_order_release);
	doorbell_ring(&engine->bell);
	pthread_join(engine->thread, NULL);
	doorbell_close(&engine->bell);
	free(engine);
	return NULL;
}
