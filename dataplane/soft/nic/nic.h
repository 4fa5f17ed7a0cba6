// SPDX-License-Identifier: BSD-3-Clause
// One software device: its lock and its parts. engine/engine.h has the turn that advances it.
//
// One lock guards the device and all its objects. Each caller (post, poll, modify, the engine)
// holds it for the whole call and may drive the wire with it. Functions of nic, transport and
// engine expect the lock to be held unless they say otherwise. With the lock held there are no
// callbacks and no waits. The only system calls are those of the wire and writes to eventfds.
#pragma once

#include "nic/wire.h"
#include "nic/yield_rule.h"

#include <lib/clock.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/types.h>

#define NIC_QPS_MAX 16384 // a queue pair's number contains a 14-bit index
#define NIC_QP_INDEX_BITS 14
#define NIC_NEVER UINT64_MAX
#define NIC_RANDOM_BATCH 32
// Longest time that an acknowledgement may wait for a caller's turn
#define NIC_LAZY_NS UINT64_C(1000000)

struct soft_qp;
struct soft_mr;
struct soft_context;
struct engine;
struct port_watch;
TAILQ_HEAD(qp_list, soft_qp);

// Registered regions by key: 32 random bits, the same as lkey and rkey.
struct region_table {
	struct soft_mr **places; // open addressing; a power of two of slots
	uint32_t capacity, count;
};

// Numbers of objects, limited to what query_device promises (verbs_limits.h).
struct nic_count {
	uint32_t pds, mrs, cqs, srqs;
};

struct soft_nic {
	// Serialises opening and closing of the device; taken before `lock`
	pthread_mutex_t life;
	pthread_mutex_t lock;
	int cancel_state;     // cancellation state of the lock's holder before it locked
	pthread_cond_t acked; // signalled when an event is acknowledged
	struct soft_config config;
	struct nic_count count;
	uint32_t contexts;	       // open contexts; the wire exists while there are any
	struct soft_context *opened;   // contexts that receive events
	struct port_watch *port_watch; // NULL: no kernel interface is followed
	enum nic_port port;
	enum nic_port wire_port; // latest state that the wire reported
	struct soft_wire *wire;
	const struct clock *clock;
	struct engine *engine;	  // NULL: a test drives the device
	_Atomic pid_t engine_tid; // thread of the engine; 0: none runs
	// Time on the device's clock when the engine wakes by itself at the latest. The engine
	// writes it under the lock before it sleeps. 0: the engine is awake, or was rung.
	uint64_t engine_next_wake_ns;
	struct soft_qp **qps; // by index; NULL if free
	uint16_t *qp_salts;   // by index: upper bits of the latest number
	// qp_next: where the search for a free index begins
	uint32_t qp_capacity, qp_count, qp_next;
	struct region_table regions;
	// Queue pairs with something to send: acknowledgements, responses, requests
	struct qp_list ready;
	struct qp_list lazy;  // queue pairs whose acknowledgement may wait for a caller's next turn
	struct qp_list timed; // queue pairs with a timer
	uint64_t due_ns;      // lower bound of the earliest timer
	uint32_t timers_postponed; // consecutive turns that handled frames and postponed due timers
	uint64_t now_ns;	   // start of the present turn
	struct yield_rule yield;
	uint8_t *out; // frame begun by output_begin()
	uint32_t out_size;
	bool wire_full;	 // the wire accepted no more frames in the present turn
	bool cq_overran; // a completion queue overflowed; the turn ends its queue pairs
	uint64_t random; // state of nic_random()
	bool random_kernel;
	uint64_t random_pool[NIC_RANDOM_BATCH];
	uint32_t random_left;
	char reason[SOFT_REASON_MAX + 1];
	// Written under the lock, read by any thread: relaxed atomics
	struct soft_counters counters;
};

// Wait for the lock. Its holder usually releases it after a few system calls, sooner than a thread
// could sleep and wake. So the caller spins for that long before it blocks.
void nic_lock_contended(struct soft_nic *nic);

// Lock the device, with thread cancellation disabled. System calls of the wire are cancellation
// points, and programs cancel polling threads. A thread cancelled there would keep the lock.
static inline void nic_lock(struct soft_nic *nic) {
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (pthread_mutex_trylock(&nic->lock) != 0)
		nic_lock_contended(nic);
	nic->cancel_state = state;
}
static inline bool nic_trylock(struct soft_nic *nic) {
	if (pthread_mutex_trylock(&nic->lock) != 0)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &nic->cancel_state);
	return true;
}
static inline void nic_unlock(struct soft_nic *nic) {
	int state = nic->cancel_state;

	pthread_mutex_unlock(&nic->lock);
	pthread_setcancelstate(state, NULL);
}
// Wait until an event is acknowledged; the lock is released meanwhile.
static inline void nic_wait_acked(struct soft_nic *nic) {
	int state = nic->cancel_state;

	pthread_cond_wait(&nic->acked, &nic->lock);
	nic->cancel_state = state;
}

// Add to a counter. Only the lock's holder writes, so load and store need no lock prefix. Relaxed
// order is enough, because readers use only the number itself.
static inline void counter_add(uint64_t *counter, uint64_t by) {
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

// Initialise an added device. nic_fini() requires that no context is open.
void nic_init(struct soft_nic *nic, const struct soft_config *config);
void nic_fini(struct soft_nic *nic);

// Return a random number: the kernel's, or reproducible if the configuration has a seed.
uint64_t nic_random(struct soft_nic *nic);
