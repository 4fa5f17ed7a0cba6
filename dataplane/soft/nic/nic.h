// SPDX-License-Identifier: BSD-3-Clause
// One software device: its lock, what it is made of, and the turn that moves it on.
//
// One lock guards the device and every object on it: whoever calls into it (post, poll, modify,
// the engine) holds the lock for the call and may drive the wire with it. Functions of this
// directory that take a struct of it expect the lock to be held, unless they say otherwise.
// No callback, no wait and no call to the system is made with it but those of the wire and writes
// to eventfds. Entry points of verbs end with nic_leave().
#pragma once

#include "nic/wire.h"
#include "nic/yield_rule.h"

#include <lib/clock.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#define NIC_QPS_MAX 16384 // an index of 14 bits in the queue pair's number
#define NIC_QP_INDEX_BITS 14
#define NIC_NEVER UINT64_MAX
#define NIC_RANDOM_BATCH 32
#define NIC_LAZY_NS UINT64_C(1000000) // that long an acknowledgement may wait for a caller's turn

struct soft_qp;
struct soft_mr;
struct soft_context;
struct engine;
struct port_watch;
TAILQ_HEAD(qp_list, soft_qp);

// Remote and local keys are the same, 32 random bits each, found by hashing.
struct region_table {
	struct soft_mr **places; // open addressing; a power of two of them
	uint32_t capacity, count;
};

// What there is of each kind, against what query_device promises (verbs_limits.h).
struct nic_count {
	uint32_t pds, mrs, cqs, srqs;
};

struct soft_nic {
	pthread_mutex_t life; // nic_up() and nic_down() one after the other; taken before `lock`
	pthread_mutex_t lock;
	int cancel_state;     // of the thread that has the lock, before it
	pthread_cond_t acked; // some event was acknowledged
	struct soft_config config;
	struct nic_count count;
	uint32_t contexts;	       // open ones; the wire lives while there are any
	struct soft_context *opened;   // those that are told of events
	struct port_watch *port_watch; // NULL: no interface of the kernel's is followed
	enum nic_port port;
	enum nic_port wire_port; // what the wire said last
	struct soft_wire *wire;
	const struct clock *clock;
	struct engine *engine; // NULL: a test drives it
	// When the engine looks by itself at the latest, of the device's clock; it writes it, with
	// the lock, before it sleeps. 0: it is awake, or was rung.
	uint64_t engine_looks_ns;
	struct soft_qp **qps;			 // by index; NULL if free
	uint16_t *qp_salts;			 // by index: upper bits of the latest number
	uint32_t qp_capacity, qp_count, qp_next; // where to look for a free index
	struct region_table regions;
	struct qp_list ready; // have something to send: acknowledgements, responses, requests
	struct qp_list lazy;  // owe an acknowledgement that may wait for a caller's next turn
	struct qp_list timed; // have a time at which something falls due
	uint64_t due_ns;      // no timer falls due before; may be too early
	uint32_t put_off;     // turns in a row whose frames went before timers that are due
	uint64_t now_ns;      // of the present turn
	struct yield_rule yield;
	uint8_t *out; // the frame that output_begin() began
	uint32_t out_size;
	bool wire_full;	 // took no more in the present turn
	bool overran;	 // a completion found no room since nic_overrun()
	uint64_t random; // state of nic_random()
	bool random_kernel;
	uint64_t random_pool[NIC_RANDOM_BATCH];
	uint32_t random_left;
	char reason[SOFT_HOLDER_MAX + 1];
	struct soft_counters counters; // written with the lock, read by anybody: relaxed atomics
};

// Who has it lets go after a few calls to the system as a rule, sooner than one could sleep and be
// woken: it is waited for as long as that before the thread blocks.
void nic_lock_contended(struct soft_nic *nic);

// The wires' calls to the system are where a thread may be cancelled; programs cancel threads that
// poll, and one that ended here would keep the lock.
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
// Until some event was acknowledged, without the lock.
static inline void nic_wait_acked(struct soft_nic *nic) {
	int state = nic->cancel_state;

	pthread_cond_wait(&nic->acked, &nic->lock);
	nic->cancel_state = state;
}

// The one writer holds the lock: load and store need no lock prefix. Relaxed: a reader wants the
// number, nothing that was done with it.
static inline void counter_add(uint64_t *counter, uint64_t by) {
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

// Of a device that was added; fini: no context is open any more.
void nic_init(struct soft_nic *nic, const struct soft_config *config);
void nic_fini(struct soft_nic *nic);

uint64_t nic_random(struct soft_nic *nic);

// One turn: frames that came (at most one batch), timers, then what there is to send within a
// budget, and the wire's flush. True if a frame came or something was sent: call again soon.
// defer_acks: acknowledgements may wait for the next turn, where data to send may go before them.
bool nic_turn(struct soft_nic *nic, bool defer_acks);

// Queue pairs whose completions are lost go to ERR: they would work on, and nobody would know.
void nic_overrun(struct soft_nic *nic);

// What is ready is sent, and nothing is received: for a caller that has just posted.
void nic_push(struct soft_nic *nic);

// When the next turn is due if nothing comes: now (0) if something waits to be sent.
uint64_t nic_due(const struct soft_nic *nic);

// Unlocks, and rings the engine if what is left falls due before it looks by itself.
void nic_leave(struct soft_nic *nic);

// One frame as the wire gave it: checked, and handed to its queue pair. (nic_frame.c)
void nic_frame(struct soft_nic *nic, const struct wire_frame *frame);

// The first context brings the wire up and starts the engine; the last one stops both. These two
// take the lock themselves, and nic_down() waits for the engine without it.
int nic_set_faults(struct soft_nic *nic, const struct soft_faults *faults);
int nic_up(struct soft_nic *nic);
void nic_down(struct soft_nic *nic);

// Of the interface under the wire; without the lock. Contexts are told if it is another state than
// before: PORT_ACTIVE, PORT_ERR, DEVICE_FATAL. Nothing comes after GONE.
void nic_port_tell(struct soft_nic *nic, enum nic_port port);
// The same with the lock, of what the wire has seen.
void nic_port_told(struct soft_nic *nic, enum nic_port port);

// The device's engine: a thread that moves it on while no caller does. (engine.c)
//
// It is engaged (sleeps in the wire's wait(), wakes with each frame) or stands back (sleeps on its
// doorbell and a tick of NIC_LAZY_NS) while callers poll and take the frames themselves: it would
// only be woken in vain by each. It stands back after wakes in vain, and is engaged again when a
// tick finds that callers poll no more, or when one goes to sleep. (engine_rule.h)
// Engaged, it sets engine_looks_ns before each sleep. While it stands back that is 0: a timer or a
// packet that callers leave is seen to by their next poll, or at the tick that finds them gone.
int engine_start(struct soft_nic *nic, struct engine **ret_engine);
struct engine *engine_stop(struct engine *engine); // without the lock; NULL is fine
// A caller drove a turn or posted: cheap, called at the end of each. With the lock.
void engine_caller_drove(struct engine *engine);
// A caller arms its completion queue, and will sleep: an engine that stands back is engaged.
void engine_caller_arms(struct engine *engine);
// Callers left work (a timer, something to send) behind that the engine must see to: it looks at
// once.
void engine_callers_leave(struct engine *engine);
