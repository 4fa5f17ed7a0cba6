// SPDX-License-Identifier: BSD-3-Clause
// Table of pending requests: maps a request to the operation that it completes.
#include "follow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_FEWEST 256u
#define REQUESTS_MAX (1u << 22)

struct request {
	mpi_word handle; // 0: free slot
	struct followed *at;
	uint64_t serial;       // unique number of the request
	uint64_t place;	       // position in the communicator's window; 0: none
	struct signature told; // signature of a persistent collective request
	struct pair pair;      // of a send or receive
	struct dup dup;	       // communicator that the operation creates, if any
	uint8_t kind;
	bool is_collective, is_persistent, is_active;
	bool is_unwaited; // an active collective operation that the rank does not wait for yet
};

// Guards the variables below. Not taken if only one thread calls MPI at a time.
static pthread_mutex_t request_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct request *requests;
static uint32_t request_count, request_room;
static uint64_t last_serial;
static uint32_t unwaited_count; // requests with is_unwaited

static void lock_requests(void) {
	if (mpi_rules.is_threaded)
		pthread_mutex_lock(&request_mutex);
}

static void unlock_requests(void) {
	if (mpi_rules.is_threaded)
		pthread_mutex_unlock(&request_mutex);
}

static uint32_t home_slot(mpi_word handle) {
	return (uint32_t)(word_hash(handle) >> 32) & (request_room - 1);
}

static struct request *find_request(mpi_word handle) {
	if (request_count == 0)
		return NULL;
	for (uint32_t n = home_slot(handle);; n = (n + 1) & (request_room - 1)) {
		if (requests[n].handle == handle)
			return &requests[n];
		if (requests[n].handle == 0)
			return NULL;
	}
}

static struct request *find_free_slot(mpi_word handle) {
	uint32_t n = home_slot(handle);

	while (requests[n].handle != 0)
		n = (n + 1) & (request_room - 1);
	return &requests[n];
}

static bool ensure_capacity(void) {
	uint32_t room = request_room == 0 ? REQUESTS_FEWEST : request_room * 2;
	struct request *before = requests;
	uint32_t before_room = request_room;
	struct request *more;

	if (request_count * 2 < request_room)
		return true;
	more = room <= REQUESTS_MAX ? calloc(room, sizeof(*more)) : NULL;
	if (more == NULL)
		// keep free slots, so that searches end soon
		return request_count < request_room / 4 * 3;
	requests = more;
	request_room = room;
	for (uint32_t n = 0; n < before_room; n++)
		if (before[n].handle != 0)
			*find_free_slot(before[n].handle) = before[n];
	free(before);
	return true;
}

static void set_unwaited(struct request *request, bool is_unwaited) {
	unwaited_count += is_unwaited;
	unwaited_count -= request->is_unwaited;
	request->is_unwaited = is_unwaited;
}

// Remove a request. Later entries of the same probe sequence move up, so that searches still reach
// them.
static void remove_request(struct request *request) {
	uint32_t hole = (uint32_t)(request - requests);

	for (uint32_t n = (hole + 1) & (request_room - 1); requests[n].handle != 0;
	     n = (n + 1) & (request_room - 1)) {
		uint32_t home = home_slot(requests[n].handle);

		if (((n - home) & (request_room - 1)) < ((n - hole) & (request_room - 1)))
			continue;
		requests[hole] = requests[n];
		hole = n;
	}
	requests[hole].handle = 0;
	request_count--;
}

// Count the operation of the request as complete.
static void end_operation(const struct request *request) {
	if (request->is_collective)
		window_end(request->at, request->place);
	else
		pair_leave(request->at, request->kind);
}

// With one calling thread, a load and a store are cheaper than an atomic addition.
static void retain_comm(struct followed *at) {
	if (mpi_rules.is_threaded)
		atomic_fetch_add_explicit(&at->requests, 1, memory_order_relaxed);
	else
		atomic_store_explicit(
			&at->requests,
			atomic_load_explicit(&at->requests, memory_order_relaxed) + 1,
			memory_order_relaxed
		);
}

// Release: when comm_sweep() sees 0 requests, it also sees our counts. After that the communicator
// may be destroyed, so only comm_freed_count tells whether a sweep is needed. Both variables are
// sequentially consistent: either we see that it was freed, or the freeing thread sees our end.
static void release_comm(struct followed *at) {
	uint32_t before;

	if (mpi_rules.is_threaded) {
		before = atomic_fetch_sub_explicit(&at->requests, 1, memory_order_seq_cst);
	} else {
		before = atomic_load_explicit(&at->requests, memory_order_relaxed);
		atomic_store_explicit(&at->requests, before - 1, memory_order_release);
	}
	if (before == 1 && atomic_load_explicit(&comm_freed_count, memory_order_seq_cst) != 0)
		comm_sweep();
}

// Return a slot for the request. Returns NULL if there is no room, or the request is null.
static struct request *add_request_locked(mpi_word handle) {
	struct request *request, old;

	if (handle == mpi_rules.request_null)
		return NULL;
	request = find_request(handle);
	if (request != NULL) {
		// MPI uses one handle for all requests that complete at once, so the previous
		// request has ended.
		set_unwaited(request, false);
		old = *request;
		if (old.is_active)
			end_operation(&old);
		release_comm(old.at);
		return request;
	}
	if (!ensure_capacity())
		return NULL;
	request = find_free_slot(handle);
	request_count++;
	return request;
}

// Without room the request is not tracked, so count the operation as complete at once.
static void add_request(mpi_word where, const struct request *given) {
	mpi_word handle = comm_load_handle(where);
	struct request *request;

	retain_comm(given->at);
	lock_requests();
	request = add_request_locked(handle);
	if (request != NULL) {
		*request = *given;
		request->handle = handle;
		request->serial = ++last_serial;
		set_unwaited(request, given->is_collective && given->is_active);
	}
	unlock_requests();
	if (request != NULL)
		return;
	if (given->is_active)
		end_operation(given);
	release_comm(given->at);
}

void collective_posted(
	struct followed *at, enum tocsin_kind kind, uint64_t place, int err, mpi_word where
) {
	const struct request request = {
		.at = at,
		.place = place,
		.kind = (uint8_t)kind,
		.is_collective = true,
		.is_active = true,
	};

	if (err == 0)
		add_request(where, &request);
	else
		window_end(at, place);
	comm_release(at);
}

void request_add_dup(struct followed *at, uint64_t place, mpi_word where, struct dup dup) {
	const struct request request = {
		.at = at,
		.place = place,
		.kind = TOCSIN_OTHER,
		.dup = dup,
		.is_collective = true,
		.is_active = true,
	};

	add_request(where, &request);
	comm_release(at);
}

// Same as add_request(), field by field, because this path must be fast.
void pair_posted(
	struct followed *at, enum tocsin_kind kind, struct pair pair, int err, mpi_word where
) {
	struct request *request = NULL;
	mpi_word handle;

	if (err == 0) {
		handle = comm_load_handle(where);
		lock_requests();
		request = add_request_locked(handle);
		if (request != NULL) {
			retain_comm(at);
			request->handle = handle;
			request->serial = ++last_serial;
			request->at = at;
			request->dup.key = 0;
			request->pair = pair;
			request->kind = (uint8_t)kind;
			request->is_collective = request->is_persistent = false;
			request->is_unwaited = false;
			request->is_active = true;
		}
		unlock_requests();
	}
	if (request == NULL)
		pair_leave(at, kind);
	comm_release(at);
}

void request_keep(
	mpi_word where, struct followed *at, enum tocsin_kind kind, struct signature told
) {
	const struct request request = {
		.at = at,
		.kind = (uint8_t)kind,
		.told = told,
		.is_collective = true,
		.is_persistent = true,
	};

	add_request(where, &request);
}

void request_keep_pair(
	mpi_word where, struct followed *at, enum tocsin_kind kind, struct pair pair
) {
	const struct request request = {
		.at = at,
		.kind = (uint8_t)kind,
		.pair = pair,
		.is_persistent = true,
	};

	add_request(where, &request);
}

mpi_word request_load_handle(mpi_word array, int64_t n) {
	return comm_load_handle(array + (mpi_word)n * (mpi_rules.ints ? 4 : 8));
}

void request_started(mpi_word handle) {
	struct request *request;

	lock_requests();
	request = find_request(handle);
	if (request != NULL && request->is_persistent && !request->is_active) {
		request->is_active = true;
		set_unwaited(request, request->is_collective);
		if (request->is_collective)
			request->place = collective_post(request->at, request->kind, request->told);
		else
			pair_enter(request->at, request->kind);
	}
	unlock_requests();
}

// End a collective or persistent request; called with request_mutex held, which is released.
static void end_other_request(struct request *request) {
	struct request ended;
	mpi_word made;

	set_unwaited(request, false);
	ended = *request;
	if (ended.is_persistent)
		request->is_active = false;
	else
		remove_request(request);
	unlock_requests();
	if (ended.dup.key != 0) {
		made = comm_load_handle(ended.dup.where);
		if (made != mpi_rules.comm_null)
			comm_add_followed(ended.dup.key, made);
	}
	end_operation(&ended);
	if (!ended.is_persistent)
		release_comm(ended.at);
}

struct held request_hold(mpi_word handle) {
	struct held held = {.handle = handle};
	const struct request *request;

	if (handle == 0 || !mpi_rules.is_threaded)
		return held;
	lock_requests();
	request = find_request(handle);
	if (request != NULL)
		held.serial = request->serial;
	else
		held.handle = 0;
	unlock_requests();
	return held;
}

static struct request *find_held(struct held held) {
	struct request *request = find_request(held.handle);

	if (request != NULL && mpi_rules.is_threaded && request->serial != held.serial)
		return NULL; // another request has the handle by now
	return request;
}

struct followed *request_begin_wait(
	const struct held *held, int count, struct pair *ret_pair, enum tocsin_kind *ret_kind
) {
	struct followed *at = NULL;
	uint32_t open = 0;

	lock_requests();
	// A list of many requests is searched only as far as the result depends on it.
	for (int n = 0; n < count && (unwaited_count > 0 || (ret_pair != NULL && open < 2)); n++) {
		struct request *request = held[n].handle != 0 ? find_held(held[n]) : NULL;

		// A request that is not followed may be the one that does not complete.
		if (request == NULL && held[n].handle != 0 &&
		    held[n].handle != mpi_rules.request_null)
			open += 2;
		if (request == NULL || !request->is_active)
			continue;
		open++;
		if (request->is_unwaited)
			window_begin_wait(request->at, request->place);
		set_unwaited(request, false);
		at = request->is_collective ? NULL : request->at;
		if (at != NULL && ret_pair != NULL) {
			*ret_pair = request->pair;
			*ret_kind = request->kind;
		}
	}
	unlock_requests();
	return open == 1 && ret_pair != NULL ? at : NULL;
}

void request_complete(struct held held) {
	struct request *request;
	enum tocsin_kind kind;
	struct followed *at;

	if (held.handle == 0)
		return;
	lock_requests();
	request = find_held(held);
	if (request == NULL || !request->is_active) {
		unlock_requests();
	} else if (request->is_collective || request->is_persistent) {
		end_other_request(request);
	} else {
		at = request->at;
		kind = request->kind;
		remove_request(request);
		unlock_requests();
		pair_leave(at, kind);
		release_comm(at);
	}
}

void request_free(struct held held) {
	struct request ended = {0};
	struct request *request;

	if (held.handle == 0)
		return;
	lock_requests();
	request = find_held(held);
	if (request != NULL) {
		set_unwaited(request, false);
		ended = *request;
		remove_request(request);
	}
	unlock_requests();
	if (ended.handle == 0)
		return;
	if (ended.is_active)
		end_operation(&ended);
	release_comm(ended.at);
}
