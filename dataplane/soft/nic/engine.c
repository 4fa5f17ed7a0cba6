// SPDX-License-Identifier: BSD-3-Clause
// The thread that moves a device on while no caller does. It never spins and never yields: it
// blocks until it is woken, which gets it a processor soon even where all of them are taken by
// threads that spin.
//
// No wake is lost:
//  A. A frame makes the wire's wait() return for as long as it is there.
//  B. What callers leave is compared with engine_looks_ns under the device's lock, and the bell is
//     armed under it: they see that the engine sleeps, or it sees in nic_due() what they left.
//  C. Who arms a completion queue stores `left`, then loads `is_back` and the bell; the engine
//     stores `is_back`, arms the bell, then loads `left`, with sequentially consistent fences
//     between. One of them sees the other. The same holds for `stop`.
#include "nic/engine_rule.h"
#include "nic/nic.h"

#include <dataplane/doorbell.h>
#include <lib/error.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

// When the wire took no more and does not say when it will.
#define RETRY_NS UINT64_C(100000)
#define TICK_MS ((int)(NIC_LAZY_NS / 1000000))

struct engine {
	struct soft_nic *nic;
	pthread_t thread;
	struct doorbell bell;
	// The thread's own.
	struct engine_rule rule;
	struct soft_wire *wire; // to sleep on: as it was in the latest turn
	uint64_t looks_ns;
	bool woken, called; // since the latest turn

	_Alignas(64) _Atomic uint64_t drove_ns; // callers, with the device's lock: w; engine: r
	_Atomic bool left;			// callers: set; engine: takes it
	_Atomic bool is_back;			// engine: w; callers: r
	_Atomic bool stop;			// engine_stop(): w; engine: r
};

// Relaxed: a number for a guess. Its end counts: a post on a socket takes microseconds.
void engine_caller_drove(struct engine *engine) {
	uint64_t now_ns = clock_now_ns(engine->nic->clock);

	atomic_store_explicit(&engine->drove_ns, now_ns, memory_order_relaxed);
}

// Its write() is where a caller that was cancelled would end, with the bell taken for rung.
static void engine_ring(struct engine *engine) {
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	doorbell_ring(&engine->bell);
	pthread_setcancelstate(cancel_state, NULL);
}

void engine_caller_arms(struct engine *engine) {
	atomic_store_explicit(&engine->left, true, memory_order_relaxed);
	// Pairs with the one in doorbell_arm().
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&engine->is_back, memory_order_relaxed))
		engine_ring(engine);
}

void engine_callers_leave(struct engine *engine) {
	atomic_store_explicit(&engine->left, true, memory_order_relaxed);
	engine_ring(engine);
}

// Acquire pairs with the release in engine_stop().
static bool must_stop(const struct engine *engine) {
	return atomic_load_explicit(&engine->stop, memory_order_acquire);
}

static void engine_observe(struct engine *engine, uint64_t now_ns, bool found) {
	const struct engine_look seen = {
		.now_ns = now_ns,
		.drove_ns = atomic_load_explicit(&engine->drove_ns, memory_order_relaxed),
		.found = found,
		.called = engine->called,
	};

	if (engine_rule_look(&engine->rule, &seen))
		atomic_store_explicit(&engine->is_back, engine->rule.back, memory_order_relaxed);
	engine->woken = engine->called = false;
}

static void count_wake(struct soft_nic *nic, bool found) {
	counter_add(&nic->counters.engine_wakes, 1);
	if (found)
		counter_add(&nic->counters.engine_useful, 1);
}

// With the lock: whatever callers leave from now on, they compare with this.
static void prepare_sleep(struct engine *engine) {
	struct soft_nic *nic = engine->nic;
	uint64_t due_ns = nic_due(nic);

	if (due_ns <= nic->now_ns)
		due_ns = nic->now_ns + RETRY_NS;
	engine->looks_ns = due_ns;
	engine->wire = nic->wire; // faults may wrap it meanwhile
	if (!engine->rule.back)
		nic->engine_looks_ns = due_ns;
	doorbell_arm(&engine->bell);
}

// True if anything moved: there may be more. Else the engine may sleep.
static bool engine_turn(struct engine *engine) {
	struct soft_nic *nic = engine->nic;
	bool moved;

	nic_lock(nic);
	nic->engine_looks_ns = 0;
	moved = nic_turn(nic, false);
	if (engine->woken) {
		count_wake(nic, moved);
		// From where the turn began: a caller that spins has waited for its end.
		engine_observe(engine, nic->now_ns, moved);
	}
	if (!moved)
		prepare_sleep(engine);
	nic_unlock(nic);
	return moved;
}

static bool is_asked(const struct engine *engine) {
	return must_stop(engine) || atomic_load_explicit(&engine->left, memory_order_relaxed);
}

static bool was_called(struct engine *engine) {
	return atomic_exchange_explicit(&engine->left, false, memory_order_relaxed);
}

static void sleep_engaged(struct engine *engine) {
	struct soft_wire *wire = engine->wire;
	const struct clock *clock = engine->nic->clock;
	uint64_t now_ns = clock_now_ns(clock);

	if (!is_asked(engine) && now_ns < engine->looks_ns)
		wire->calls->wait(
			wire, engine->bell.fd,
			engine->looks_ns == NIC_NEVER ? NIC_NEVER : engine->looks_ns - now_ns
		);
	doorbell_disarm(&engine->bell);
	engine->called = was_called(engine) || clock_now_ns(clock) >= engine->looks_ns;
	engine->woken = true;
}

// Until callers poll no more; the device is not touched before.
static void sleep_back(struct engine *engine) {
	struct pollfd fd = {.fd = engine->bell.fd, .events = POLLIN};

	while (engine->rule.back && !must_stop(engine)) {
		doorbell_arm(&engine->bell);
		if (!is_asked(engine))
			(void)!poll(&fd, 1, TICK_MS);
		doorbell_disarm(&engine->bell);
		engine->called = was_called(engine);
		engine_observe(engine, clock_now_ns(engine->nic->clock), false);
	}
}

static void *engine_run(void *arg) {
	struct engine *engine = arg;

	prctl(PR_SET_TIMERSLACK, 1); // timers of requests are as short as 10 us
	while (!must_stop(engine)) {
		if (engine_turn(engine))
			continue;
		if (engine->rule.back)
			sleep_back(engine);
		else
			sleep_engaged(engine);
	}
	return NULL;
}

// The program's signals are for its own threads.
static int start_thread(struct engine *engine) {
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&engine->thread, NULL, engine_run, engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int engine_start(struct soft_nic *nic, struct engine **ret_engine) {
	struct engine *engine = aligned_alloc(64, sizeof(*engine));
	char name[16];
	int err;

	if (engine == NULL)
		return -ENOMEM;
	*engine = (struct engine){.nic = nic};
	err = doorbell_init(&engine->bell);
	if (err == 0)
		err = start_thread(engine);
	if (err != 0) {
		doorbell_fini(&engine->bell);
		free(engine);
		return err;
	}
	snprintf(name, sizeof(name), "tocsin-%.8s", nic->config.name);
	pthread_setname_np(engine->thread, name);
	*ret_engine = engine;
	return 0;
}

struct engine *engine_stop(struct engine *engine) {
	if (engine == NULL)
		return NULL;
	// Release pairs with the acquire in must_stop().
	atomic_store_explicit(&engine->stop, true, memory_order_release);
	doorbell_ring(&engine->bell);
	pthread_join(engine->thread, NULL);
	doorbell_fini(&engine->bell);
	free(engine);
	return NULL;
}
