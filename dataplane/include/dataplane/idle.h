// SPDX-License-Identifier: BSD-3-Clause
// What a thread that polls should do when there was nothing to do: the policy, with no clock, no
// thread and no descriptor of its own. The loop says what it found and what time it is, and is
// told to poll on, to yield, or to wait.
//
// One wait lasts from the last progress to the next. Its price is its spinning and yielding time,
// without what others had the processor, plus C for each time it blocked, C being what one
// block-and-wake costs on this machine; the optimum, known afterwards, is min(its length, C).
// Spinning for C and blocking then never pays more than twice the optimum. The policy `adaptive`
// learns from past waits which budget would have been the cheapest, and strays from C only by what
// it has saved below twice the optimum so far: whatever the trace, all of it together stays within
// twice the optimum and a thirty-second of it, which is for yields.
//
// Where the last operations took about the same time, within C, `adaptive` may foresee the next: it
// sleeps to somewhat before the oldest one under way usually ends, and polls from there to past the
// usual. How much before is learnt: more if it slept too long, less if it did not.
//
// `window` is the seed's. Its window begins with the first empty poll of a wait. Any progress ends
// the wait and so resets it, where the seed has one window for each caller's whole batch; with
// nothing under way it blocks, as the seed's caller does not poll then.
//
// For one thread. No memory but the struct.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_NEVER UINT64_MAX
#define IDLE_YIELDS_MAX 64
#define IDLE_SLEEP_MAX_NS UINT64_C(10000000) // of back-offs that grow
#define IDLE_WINDOW_SLEEP_NS UINT64_C(1000000)
// Requests and probes that are due within so much of a wake share it.
#define IDLE_SHARE_NS UINT64_C(5000000)

enum idle_policy {
	IDLE_ADAPTIVE,
	IDLE_SPIN,   // always poll: for isolated cores
	IDLE_EVENT,  // always block
	IDLE_WINDOW, // yield within a window, then sleep 1 ms doubled up to 10 ms
	IDLE_POLICY_COUNT,
};

// "adaptive", "spin", "event", "window".
const char *idle_policy_name(enum idle_policy policy);
// -EINVAL
int idle_policy_parse(const char *name, enum idle_policy *ret_policy);

enum idle_action {
	IDLE_POLL,  // poll again at once
	IDLE_YIELD, // sched_yield(), then poll
	IDLE_SLEEP, // until until_ns, whatever happens
	IDLE_WAIT, // until until_ns, a completion event or the doorbell: arm, poll once more, block
};

struct idle_decision {
	enum idle_action action;
	uint64_t until_ns; // IDLE_NEVER: only an event or the doorbell ends it
};

struct idle_config {
	enum idle_policy policy;
	uint64_t block_ns;  // C
	uint64_t window_ns; // of IDLE_WINDOW; IDLE_NEVER: it yields for ever
	bool foresees;	    // `adaptive` may sleep to just before a completion that it foresees
};

// What the loop found in its last step.
struct idle_found {
	uint64_t now_ns;
	uint64_t due_ns;  // next deadline or probe, IDLE_NEVER for none
	bool progress;	  // a completion, a request taken, anything posted
	bool outstanding; // operations are under way
	bool events;	  // whose completions can end a wait
	// Operations, in this step, whose times may foretell those of others; in about the order in
	// which they were begun. Such are progress.
	uint32_t begun, ended;
};

struct idle_books {
	uint64_t waits;	     // with operations under way
	uint64_t blocks;     // all of them
	uint64_t paid_ns;    // price of those waits
	uint64_t optimum_ns; // of those waits
};

#define IDLE_CANDIDATES 5 // budgets of 0, 1/4, 1/2, 3/4 and 1 C
#define IDLE_TIMES 16	  // operations that are looked at to foresee the next
#define IDLE_BEGUN 32	  // operations under way of which the beginning is known

enum idle_phase {
	IDLE_PHASE_FRESH,    // progress was just made
	IDLE_PHASE_POLLING,  //
	IDLE_PHASE_FORESEEN, // slept to just before a completion
	IDLE_PHASE_BLOCKED,  // at least once in this wait
};

struct idle { // private
	struct idle_config config;
	// The present wait.
	enum idle_phase phase;
	enum idle_action last_action;
	bool outstanding;
	uint32_t yields;
	uint32_t wait_blocks; // that are priced
	uint64_t start_ns;
	uint64_t last_ns;
	uint64_t yield_start_ns;
	uint64_t block_start_ns;
	uint64_t sleep_ns; // the next step of a growing back-off
	uint64_t spun_ns;
	// What past waits taught.
	uint64_t budget_ns;
	uint64_t credit_ns; // saved below twice the optimum
	uint64_t costs_ns[IDLE_CANDIDATES];
	uint64_t times_ns[IDLE_TIMES];
	uint32_t time_count;
	uint64_t median_ns;
	uint64_t spread_ns;
	bool narrow;
	uint64_t lead_ns; // awake so much before the usual end
	bool kept_awake;  // in this wait a shorter lead would have slept
	// Operations under way, the oldest in a ring.
	uint64_t begun_ns[IDLE_BEGUN];
	uint32_t begun_head;
	uint32_t begun_tail;
	uint32_t begun_lost; // were more; while there are such, nothing is foreseen
	struct idle_books books;
};

// block_ns is at least 1.
void idle_init(struct idle *idle, const struct idle_config *config, uint64_t now_ns);

// Hot: another policy from now on, with the books and C of before. block_ns is not looked at.
void idle_change(struct idle *idle, const struct idle_config *config);

// Hot: after each step of the loop. What is said first after a wait is what ended it.
struct idle_decision idle_next(struct idle *idle, const struct idle_found *found);

static inline const struct idle_books *idle_books(const struct idle *idle) {
	return &idle->books;
}

// What `adaptive` spins for before it blocks, at present.
static inline uint64_t idle_budget_ns(const struct idle *idle) {
	return idle->budget_ns;
}

static inline bool idle_is_due(uint64_t due_ns, uint64_t now_ns) {
	return due_ns <= now_ns || due_ns - now_ns <= IDLE_SHARE_NS;
}
