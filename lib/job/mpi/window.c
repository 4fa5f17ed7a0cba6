// SPDX-License-Identifier: BSD-3-Clause
// Collective operations that complete out of order. Completion is reported as a count, which means
// all operations up to it. So an operation is counted once all operations before it have completed.
#include "follow.h"

#include <pthread.h>
#include <stdlib.h>

#define WINDOW_MAX 65536u // a power of two

struct window {
	uint64_t first; // position of the oldest operation; positions start at 1
	uint32_t count, room;
	uint32_t unwaited;  // operations in the window that were posted and are not waited for
	uint64_t published; // value of the last mark
	struct {
		uint8_t kind;
		bool is_done, is_unwaited;
	} operations[];
};

static pthread_mutex_t window_mutex = PTHREAD_MUTEX_INITIALIZER;

static bool grow_window(struct followed *at) {
	uint32_t room = at->window == NULL ? 16 : at->window->room * 2;
	struct window *window;

	if (room > WINDOW_MAX)
		return false;
	window = malloc(sizeof(*window) + room * sizeof(window->operations[0]));
	if (window == NULL)
		return false;
	window->first = at->window == NULL ? 1 : at->window->first;
	window->count = at->window == NULL ? 0 : at->window->count;
	window->room = room;
	window->unwaited = at->window == NULL ? 0 : at->window->unwaited;
	window->published = at->window == NULL ? 0 : at->window->published;
	for (uint64_t n = window->first; n < window->first + window->count; n++)
		window->operations[n % room] = at->window->operations[n % at->window->room];
	free(at->window);
	at->window = window;
	return true;
}

// Release: when collective_enter() sees no open operation, it also sees the counts made before.
static void publish_window(struct followed *at) {
	struct window *window = at->window;
	uint64_t value = 0;

	atomic_store_explicit(&at->window_count, window->count, memory_order_release);
	if (window->count > 0)
		value = tocsin_posted_value(
			window->unwaited,
			window->operations[window->first % window->room].is_unwaited
		);
	if (value == window->published)
		return;
	window->published = value;
	(void)tocsin_comm_mark(at->comm, TOCSIN_MARK_POSTED, value);
}

static uint64_t open_window_locked(struct followed *at, enum tocsin_kind kind, bool is_unwaited) {
	struct window *window = at->window;
	uint64_t place;

	if ((window == NULL || window->count == window->room) && !grow_window(at)) {
		// The window has no room, so completions can no longer be counted in order. Stop
		// reporting them.
		(void)tocsin_comm_mark(at->comm, TOCSIN_MARK_COMPLETED_FROM, UINT64_MAX);
		return 0;
	}
	window = at->window;
	place = window->first + window->count++;
	window->operations[place % window->room].kind = (uint8_t)kind;
	window->operations[place % window->room].is_done = false;
	window->operations[place % window->room].is_unwaited = is_unwaited;
	window->unwaited += is_unwaited;
	publish_window(at);
	return place;
}

uint64_t window_open(struct followed *at, enum tocsin_kind kind) {
	uint64_t place;

	pthread_mutex_lock(&window_mutex);
	place = open_window_locked(at, kind, true);
	pthread_mutex_unlock(&window_mutex);
	return place;
}

// Returns 0 if the last open operation has completed since the caller's check.
uint64_t window_add_if_open(struct followed *at, enum tocsin_kind kind) {
	uint64_t place = 0;

	pthread_mutex_lock(&window_mutex);
	if (at->window->count > 0)
		place = open_window_locked(at, kind, false);
	pthread_mutex_unlock(&window_mutex);
	return place;
}

static void begin_wait_locked(struct window *window, uint64_t place) {
	window->unwaited -= window->operations[place % window->room].is_unwaited;
	window->operations[place % window->room].is_unwaited = false;
}

void window_begin_wait(struct followed *at, uint64_t place) {
	if (place == 0)
		return;
	pthread_mutex_lock(&window_mutex);
	begin_wait_locked(at->window, place);
	publish_window(at);
	pthread_mutex_unlock(&window_mutex);
}

void window_end(struct followed *at, uint64_t place) {
	struct window *window;

	if (place == 0)
		return;
	pthread_mutex_lock(&window_mutex);
	window = at->window;
	begin_wait_locked(window, place);
	window->operations[place % window->room].is_done = true;
	while (window->count > 0 && window->operations[window->first % window->room].is_done) {
		tocsin_counter_completed(
			at->own, window->operations[window->first % window->room].kind
		);
		window->first++;
		window->count--;
	}
	publish_window(at);
	pthread_mutex_unlock(&window_mutex);
}
