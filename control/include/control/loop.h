// SPDX-License-Identifier: BSD-3-Clause
// The event loop of the control thread: one epoll, one timerfd, and deferred jobs.
//
// A turn waits, reads the clock once, then runs events, deferred jobs and timers, in this order.
// Events come before timers: a loop that was itself delayed first reads what has arrived, then
// judges peers by the clock. No handler may block.
//
// The work of a turn is bounded, and the overlay comes first. Each turn serves all ready overlay
// sources, and at most LOOP_CLIENTS_PER_TURN client sources. A handler reads or writes a bounded
// amount (as a rule LOOP_STEP_BYTES_MAX) and is called again in the next turn. So a flood of
// clients delays the overlay by one bounded step.
//
// Sources, timers and jobs are embedded in their owners, which keep them until removal. Loop thread
// only. Any handler may add, change or remove any of them. A source that is ready in the same turn
// and is removed is not called any more.
#pragma once

#include <lib/clock.h>

#include <stdbool.h>
#include <stdint.h>

struct loop;

#define LOOP_CLIENTS_PER_TURN 16
#define LOOP_STEP_BYTES_MAX 65536
// how long a maximum is shown, at least; at most twice as long
#define LOOP_LONGEST_NS UINT64_C(60000000000)

enum loop_rank {
	LOOP_OVERLAY, // failure detection depends on these sources
	LOOP_CLIENTS, // all other sources
	LOOP_RANK_COUNT,
};

struct loop_source {
	int fd;
	// EPOLLIN, EPOLLOUT; level-triggered. Errors and hang-ups are always reported
	uint32_t events;
	enum loop_rank rank;
	void (*ready)(struct loop_source *source, uint32_t events);
	struct loop *loop; // private from here on; NULL: not added
	uint32_t slot;
};

struct loop_timer {
	void (*expired)(struct loop_timer *timer, uint64_t now_ns);
	uint64_t at_ns; // private from here on
	uint32_t place; // heap index, from 1; 0: not set
};

struct loop_job {
	void (*run)(struct loop_job *job);
	struct loop_job *next; // private from here on
	bool queued;
};

// Create a loop. `clock` must outlive it. The loop sleeps on CLOCK_MONOTONIC, so `clock` must be
// that clock or a test's. With a fake clock, timers do not end the sleep. Returns 0, -ENOMEM, or
// the error of epoll or timerfd.
int loop_create(const struct clock *clock, struct loop **ret_loop);
// Destroy the loop. Sources, timers and jobs that are still registered are not touched.
struct loop *loop_destroy(struct loop *loop);

// Add a source. Returns 0, or the error of epoll_ctl(): -ENOMEM, -ENOSPC (too many watches), -EPERM
// (a plain file).
int loop_add(struct loop *loop, struct loop_source *source);
// Change the events that the source waits for; 0: errors only.
void loop_set_events(struct loop_source *source, uint32_t events);
// Remove a source. Call before its descriptor is closed. A source that was never added is ignored.
void loop_remove(struct loop_source *source);

// Set a one-shot timer to at_ns on the loop's clock (UINT64_MAX: never), replacing the previous
// time. A timer that is set again to a past time runs in the next turn. Returns 0 or -ENOMEM.
int loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer);

// Run a job once after the events of this turn, however often it is deferred. A job deferred by a
// job or a timer runs in the next turn, which then does not wait.
void loop_defer(struct loop *loop, struct loop_job *job);
void loop_undefer(struct loop *loop, struct loop_job *job);

// Return the time of this turn. It is constant while a handler runs.
uint64_t loop_now_ns(const struct loop *loop);
// Return the last time, before the events of this turn, at which no source was ready and unserved.
// A source that is ready now became ready after that time, if it is served at once.
uint64_t loop_all_served_ns(const struct loop *loop);
// Read the clock itself, where the time within a turn matters.
uint64_t loop_clock_ns(const struct loop *loop);

// Run turns until loop_stop(). Returns 0, or -errno of epoll_wait().
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
// Run one turn, which waits at most timeout_ms (-1: without limit). For tests.
int loop_turn(struct loop *loop, int timeout_ms);

// Written by the loop's thread, which copies the counters for other threads.
struct loop_counters {
	uint64_t turns;
	uint64_t events;
	uint64_t timers;
	uint64_t busy_ns;	  // time in handlers
	uint64_t turn_longest_ns; // in the last one to two minutes
	// between at_ns and the call of the handler, in the last one to two minutes
	uint64_t timer_late_longest_ns;
	// turns that reached the client limit, so that other clients may have waited
	uint64_t clients_full;
};

const struct loop_counters *loop_counters(const struct loop *loop);
