// SPDX-License-Identifier: BSD-3-Clause
// The control thread's one event loop: an epoll, a timerfd, and work put off to the end of a turn.
//
// A turn is: wait, take the time once, events, what was deferred, timers. Events come before
// timers, so that a loop that was itself held up hears what lies waiting before it judges
// anybody by a clock. No handler may block.
//
// Work in a turn is bounded, and the overlay comes first: all its ready sources are served in
// each turn, of those of clients at most LOOP_CLIENTS_PER_TURN. A handler reads or writes a
// bounded amount (LOOP_STEP_BYTES_MAX is the rule) and is called again in the next turn, so a
// flood of clients costs the overlay one bounded step and no more.
//
// Sources, timers and jobs are embedded in their owners, who keep them until removed; all are
// for the loop's thread. Any of them may be added, changed or removed from inside any handler,
// also one that is ready in the same turn: it is not called any more.
#pragma once

#include <lib/clock.h>

#include <stdbool.h>
#include <stdint.h>

struct loop;

#define LOOP_CLIENTS_PER_TURN 16
#define LOOP_STEP_BYTES_MAX 65536
#define LOOP_LONGEST_NS UINT64_C(60000000000) // what was longest is told for so long, to twice that

enum loop_rank {
	LOOP_OVERLAY, // who is thought to be alive depends on it
	LOOP_CLIENTS, // everybody else
	LOOP_RANK_COUNT,
};

struct loop_source {
	int fd;
	uint32_t events; // EPOLLIN, EPOLLOUT; level-triggered. Errors and hang-ups come unasked
	enum loop_rank rank;
	void (*ready)(struct loop_source *source, uint32_t events);
	struct loop *loop; // private, as the rest; NULL: not added
	uint32_t slot;
};

struct loop_timer {
	void (*expired)(struct loop_timer *timer, uint64_t now_ns);
	uint64_t at_ns; // private, as the rest
	uint32_t place; // in the heap, from 1; 0: not set
};

struct loop_job {
	void (*run)(struct loop_job *job);
	struct loop_job *next; // private, as the rest
	bool queued;
};

// `clock` outlives the loop; sleeping is on CLOCK_MONOTONIC, so it is that one or a test's: no
// timer ends the sleep of a loop on a fake clock. -ENOMEM, or what epoll and timerfd say.
int loop_create(const struct clock *clock, struct loop **ret_loop);
// What is still added or set is forgotten and not touched.
struct loop *loop_destroy(struct loop *loop);

// 0, or what epoll_ctl() says: -ENOMEM, -ENOSPC (too many watches), -EPERM (a plain file).
int loop_add(struct loop *loop, struct loop_source *source);
// Which events it waits for from now on; 0 for none but errors.
void loop_want(struct loop_source *source, uint32_t events);
// Before its descriptor is closed. Nothing happens to one that was never added.
void loop_remove(struct loop_source *source);

// Once, at at_ns on the loop's clock (UINT64_MAX: never); replaces what was set before. One that
// is set again to a time that has come waits for the next turn. 0 or -ENOMEM.
int loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer);

// Once, after the events of this turn, however often it is asked for; from inside a job or a
// timer: of the next turn, which then does not wait.
void loop_defer(struct loop *loop, struct loop_job *job);
void loop_undefer(struct loop *loop, struct loop_job *job);

// The time of this turn. It does not move while a handler runs.
uint64_t loop_now_ns(const struct loop *loop);
// The clock itself, where the time within a turn counts.
uint64_t loop_clock_ns(const struct loop *loop);

// Turns until loop_stop(). -errno of epoll_wait().
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
// One turn, which waits for at most timeout_ms (-1: as long as it takes). For tests.
int loop_turn(struct loop *loop, int timeout_ms);

// Written by the loop's thread, copied by it for others.
struct loop_counters {
	uint64_t turns;
	uint64_t events;
	uint64_t timers;
	uint64_t busy_ns;		// in handlers
	uint64_t turn_longest_ns;	// of the last minute or two
	uint64_t timer_late_longest_ns; // between at_ns and its handler, likewise
	uint64_t clients_full;		// turns with as many clients as allowed: others may wait
};

const struct loop_counters *loop_counters(const struct loop *loop);
