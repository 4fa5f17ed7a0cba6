// SPDX-License-Identifier: BSD-3-Clause
// Decides what a polling thread does when it found nothing to do: poll again, yield, or sleep. The
// policy has no clock, thread or descriptor of its own: the loop passes its findings and the time.
//
// A wait lasts from the last progress to the next. Its price is the time spent spinning and
// yielding, without the time other threads ran, plus C for each block. C is the cost of one block
// and wake-up on this machine. In hindsight the optimum is min(length, C). Spinning for C before
// blocking never pays more than twice the optimum.
//
// The policy `adaptive` learns from past waits which spin budget would have been cheapest. It
// deviates from C only by what it has saved so far below twice the optimum. For any trace its total
// therefore stays within twice the optimum, plus 1/32 of it for yields.
//
// If the latest operations took about the same time (within C), `adaptive` may predict the next
// completion. It sleeps until somewhat before the usual end of the oldest operation, then polls
// until past that end. The lead is learnt: it grows after oversleeping and shrinks otherwise.
//
// `window` imitates the polling of Monarch's RDMA manager, for comparison. Its window begins with
// the first empty poll of a wait, and any progress resets it. Monarch has one window per batch of a
// caller instead. With nothing outstanding `window` blocks, because Monarch does not poll then.
//
// An object belongs to one thread and allocates no memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_NEVER UINT64_MAX
#define IDLE_YIELDS_MAX 64
#define IDLE_SLEEP_MAX_NS UINT64_C(10000000) // limit of growing back-offs
#define IDLE_WINDOW_SLEEP_NS UINT64_C(1000000)
// Requests and probes that are due within this time after a wake-up are handled with it.
#define IDLE_BATCH_WINDOW_NS UINT64_C(5000000)

enum idle_policy {
	IDLE_ADAPTIVE,
	IDLE_SPIN,   // always poll: for isolated cores
	IDLE_EVENT,  // always block
	IDLE_WINDOW, // yield within a window, then sleep 1 ms doubled up to 10 ms
	IDLE_POLICY_COUNT,
};

// Return "adaptive", "spin", "event" or "window".
const char *idle_policy_name(enum idle_policy policy);
// Returns -EINVAL for an unknown name.
int idle_policy_parse(const char *name, enum idle_policy *ret_policy);

enum idle_action {
	IDLE_POLL,  // poll again at once
	IDLE_YIELD, // sched_yield(), then poll
	IDLE_SLEEP, // sleep until until_ns, not interruptible
	// Arm the completion queue, poll once more, then block until until_ns, a completion event
	// or the doorbell.
	IDLE_WAIT,
};

struct idle_decision {
	enum idle_action action;
	uint64_t until_ns; // IDLE_NEVER: only an event or the doorbell ends the wait
};

struct idle_config {
	enum idle_policy policy;
	uint64_t block_ns;  // C
	uint64_t window_ns; // for IDLE_WINDOW; IDLE_NEVER: yield without limit
	bool foresees;	    // `adaptive` may sleep until just before a predicted completion
};

// Findings of the loop in its latest step.
struct idle_step_findings {
	uint64_t now_ns;
	uint64_t due_ns;  // next deadline or probe; IDLE_NEVER: none
	bool progress;	  // a completion, a request, or a posting
	bool outstanding; // operations are in flight
	bool events;	  // their completions can end a wait
	// Operations begun and ended in this step whose durations may predict others, roughly in
	// the order of their beginning. They count as progress.
	uint32_t begun, ended;
};

struct idle_account {
	uint64_t waits;	     // waits with operations in flight
	uint64_t blocks;     // blocks of all waits
	uint64_t paid_ns;    // total price of these waits
	uint64_t optimum_ns; // total optimum of these waits
};

#define IDLE_CANDIDATES 5  // budgets of 0, 1/4, 1/2, 3/4 and 1 C
#define IDLE_DURATIONS 16  // durations kept to predict the next
#define IDLE_STARTS_MAX 32 // operations in flight whose start is known

enum idle_phase {
	IDLE_PHASE_FRESH,     // progress was just made
	IDLE_PHASE_POLLING,   //
	IDLE_PHASE_PREDICTED, // slept until just before a predicted completion
	IDLE_PHASE_BLOCKED,   // blocked at least once in this wait
};

struct idle { // private
	struct idle_config config;
	// State of the present wait.
	enum idle_phase phase;
	enum idle_action last_action;
	bool outstanding;
	uint32_t yields;
	uint32_t wait_blocks; // blocks that count for the price
	uint64_t start_ns;
	uint64_t last_ns;
	uint64_t yield_start_ns;
	uint64_t block_start_ns;
	uint64_t sleep_ns; // next step of a growing back-off
	uint64_t spun_ns;
	// Knowledge from past waits.
	uint64_t budget_ns;
	uint64_t credit_ns; // savings below twice the optimum
	uint64_t costs_ns[IDLE_CANDIDATES];
	uint64_t times_ns[IDLE_DURATIONS];
	uint32_t time_count;
	uint64_t median_ns;
	uint64_t spread_ns;
	bool narrow;
	uint64_t lead_ns; // wake-up lead before the usual end
	bool kept_awake;  // a shorter lead would have slept in this wait
	// Operations in flight, oldest first, as a ring.
	uint64_t begun_ns[IDLE_STARTS_MAX];
	uint32_t begun_head;
	uint32_t begun_tail;
	// Operations beyond the ring; while there are any, nothing is predicted
	uint32_t starts_lost;
	struct idle_account books;
};

// block_ns must be at least 1.
void idle_init(struct idle *idle, const struct idle_config *config, uint64_t now_ns);

// Change the policy and keep account and C; block_ns is ignored. Hot.
void idle_set_config(struct idle *idle, const struct idle_config *config);

// Decide the next action; call after each step of the loop. The first call after a wait reports
// what ended it. Hot.
struct idle_decision idle_decide(struct idle *idle, const struct idle_step_findings *found);

static inline const struct idle_account *idle_account(const struct idle *idle) {
	return &idle->books;
}

// Return the present time `adaptive` spins before it blocks.
static inline uint64_t idle_budget_ns(const struct idle *idle) {
	return idle->budget_ns;
}

static inline bool idle_is_due_soon(uint64_t due_ns, uint64_t now_ns) {
	return due_ns <= now_ns || due_ns - now_ns <= IDLE_BATCH_WINDOW_NS;
}
