// SPDX-License-Identifier: BSD-3-Clause
// Wrappers of calls that are more than one operation of one communicator.
#include "own.h"

#include <stdlib.h>

#define HANDLES_HERE 64 // requests of one call that are kept on the stack

int own_Init(call_2 *next, mpi_word argc, mpi_word argv) {
	int err = next(argc, argv);

	if (err == 0)
		follow_begin();
	return err;
}

int own_Init_thread(
	call_init_thread *next, mpi_word argc, mpi_word argv, int required, mpi_word provided
) {
	int err = next(argc, argv, required, provided);

	if (err == 0)
		follow_begin();
	return err;
}

// MPI_Finalize may wait for all ranks, so count it as an operation: ranks in other operations wait
// for this rank.
int own_Finalize(call_0 *next) {
	struct followed *world = follow_is_active() ? comm_hold(mpi_rules.world) : NULL;
	uint64_t place = 0;
	int err;

	if (world != NULL)
		place = collective_enter(world, TOCSIN_OTHER, signature_of_call(JOB_CALL_FINALIZE));
	err = next();
	if (world != NULL) {
		collective_leave(world, TOCSIN_OTHER, place);
		comm_release(world);
	}
	follow_end();
	return err;
}

int own_Abort(call_word_int *next, mpi_word comm, int error) {
	if (follow_is_active())
		comm_mark_all_aborted_if_unlocked(error);
	return next(comm, error);
}

// Only the members of the group call this function, so it is no operation of the parent. The
// library follows the new communicator from before the call. A member that never calls is therefore
// reported as missing.
int own_Comm_create_group(
	call_create_group *next, mpi_word comm, mpi_word group, int tag, mpi_word where
) {
	struct followed *at = comm_hold(comm), *made;
	int err;

	if (at == NULL)
		return next(comm, group, tag, where);
	made = comm_group_begin(at, group, (uint64_t)(uint32_t)tag + 1);
	comm_release(at);
	err = next(comm, group, tag, where);
	comm_group_end(made, err, where);
	return err;
}

// The key is computed at the call, because children are numbered in call order.
static struct followed *begin_idup(
	enum job_call call, mpi_word comm, mpi_word where, struct dup *ret_dup, uint64_t *ret_place
) {
	struct followed *at = comm_hold(comm);

	if (at == NULL)
		return NULL;
	*ret_dup = (struct dup){where, comm_duplicate_key(at)};
	*ret_place = collective_post(at, TOCSIN_OTHER, signature_of_call(call));
	return at;
}

static void
end_idup(struct followed *at, int err, uint64_t place, mpi_word request, struct dup dup) {
	if (at == NULL)
		return;
	if (err == 0)
		request_add_dup(at, place, request, dup);
	else
		collective_posted(at, TOCSIN_OTHER, place, err, request);
}

int own_Comm_idup(call_3 *next, mpi_word comm, mpi_word where, mpi_word request) {
	struct dup dup = {0};
	uint64_t place = 0;
	struct followed *at = begin_idup(JOB_CALL_COMM_IDUP, comm, where, &dup, &place);
	int err = next(comm, where, request);

	end_idup(at, err, place, request, dup);
	return err;
}

int own_Comm_idup_with_info(
	call_4 *next, mpi_word comm, mpi_word info, mpi_word where, mpi_word request
) {
	struct dup dup = {0};
	uint64_t place = 0;
	struct followed *at = begin_idup(JOB_CALL_COMM_IDUP_WITH_INFO, comm, where, &dup, &place);
	int err = next(comm, info, where, request);

	end_idup(at, err, place, request, dup);
	return err;
}

static int free_followed_comm(call_1 *next, mpi_word where) {
	struct followed *at =
		follow_is_active() && where != 0 ? comm_free_begin(comm_load_handle(where)) : NULL;
	int err = next(where);

	if (at != NULL)
		comm_free_end(at, err);
	return err;
}

int own_Comm_free(call_1 *next, mpi_word comm) {
	return free_followed_comm(next, comm);
}

int own_Comm_disconnect(call_1 *next, mpi_word comm) {
	return free_followed_comm(next, comm);
}

// Count before the start: the operation may have completed when the call returns.
int own_Start(call_1 *next, mpi_word request) {
	mpi_word handle = follow_is_active() && request != 0 ? comm_load_handle(request) : 0;
	int err;

	if (handle != 0)
		request_started(handle);
	err = next(request);
	if (err != 0 && handle != 0)
		request_complete(request_hold(handle));
	return err;
}

int own_Startall(call_of_2 *next, int count, mpi_word requests) {
	if (follow_is_active() && requests != 0)
		for (int n = 0; n < count; n++)
			request_started(request_load_handle(requests, n));
	return next(count, requests);
}

static struct held hold_request(mpi_word request) {
	return request_hold(follow_is_active() && request != 0 ? comm_load_handle(request) : 0);
}

// The program's requests before the call, because MPI overwrites those that complete.
struct given {
	int count; // -1: not followed
	struct held *held;
	struct held here[HANDLES_HERE];
};

static void hold_given_requests(struct given *given, int count, mpi_word requests) {
	given->count = -1;
	given->held = given->here;
	if (!follow_is_active() || count <= 0 || requests == 0)
		return;
	if (count > HANDLES_HERE)
		given->held = malloc((size_t)count * sizeof(*given->held));
	if (given->held == NULL) {
		given->held = given->here;
		return;
	}
	given->count = count;
	for (int n = 0; n < count; n++)
		given->held[n] = request_hold(request_load_handle(requests, n));
}

static void free_given_requests(struct given *given) {
	if (given->held != given->here)
		free(given->held);
}

// After an error, MPI may leave all its outputs but the request handles undefined. A request whose
// handle MPI changed has completed.
static void complete_ended_requests(const struct given *given, int err, mpi_word requests) {
	for (int n = 0; n < given->count; n++)
		if (err == 0 || request_load_handle(requests, n) != given->held[n].handle)
			request_complete(given->held[n]);
}

static int load_int(mpi_word where, int n) {
	// NOLINTNEXTLINE(performance-no-int-to-ptr): the address comes from the program
	return ((const int *)where)[n];
}

static void complete_request_at(const struct given *given, mpi_word index) {
	int n = load_int(index, 0);

	if (n >= 0 && n < given->count)
		request_complete(given->held[n]);
}

static void complete_requests_at(const struct given *given, mpi_word done, mpi_word indices) {
	int count = load_int(done, 0);

	for (int n = 0; n < count && n < given->count; n++) {
		int index = load_int(indices, n);

		if (index >= 0 && index < given->count)
			request_complete(given->held[index]);
	}
}

// Publish a call that waits for requests. If a single request is open, a send or receive, the call
// is published in the communicator of the request, with the peer. Otherwise the requests may belong
// to several communicators, so the call is published in MPI_COMM_WORLD.
static struct followed *wait_enter(enum job_call call, const struct held *held, int count) {
	// With several threads no call is published, and another thread may end the request.
	bool names_peer =
		!mpi_rules.is_threaded && (call == JOB_CALL_WAIT || call == JOB_CALL_WAITALL);
	struct pair pair = {-1, -1};
	enum tocsin_kind kind = TOCSIN_OTHER;
	struct followed *at;

	if (count <= 0)
		return NULL;
	at = request_begin_wait(held, count, names_peer ? &pair : NULL, &kind);
	if (at == NULL) {
		at = comm_hold(mpi_rules.world);
		pair = (struct pair){-1, -1};
	} else if (call == JOB_CALL_WAIT) {
		call = kind == TOCSIN_SEND ? JOB_CALL_WAIT_SEND : JOB_CALL_WAIT_RECEIVE;
	} else {
		call = kind == TOCSIN_SEND ? JOB_CALL_WAITALL_SEND : JOB_CALL_WAITALL_RECEIVE;
	}
	if (at != NULL)
		call_enter(at, call, pair.peer, pair.tag);
	return at;
}

static void wait_leave(struct followed *at) {
	if (at == NULL)
		return;
	call_leave(at);
	comm_release(at);
}

// A rank that tests a request polls for its completion, so it waits for the operation.
static void test_enter(const struct held *held, int count) {
	if (count > 0)
		(void)request_begin_wait(held, count, NULL, NULL);
}

int own_Wait(call_2 *next, mpi_word request, mpi_word status) {
	struct held held = hold_request(request);
	struct followed *at = wait_enter(JOB_CALL_WAIT, &held, held.handle != 0);
	int err = next(request, status);

	wait_leave(at);
	if (held.handle != 0 && (err == 0 || comm_load_handle(request) != held.handle))
		request_complete(held);
	return err;
}

int own_Waitall(call_of_3 *next, int count, mpi_word requests, mpi_word statuses) {
	struct followed *at;
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	at = wait_enter(JOB_CALL_WAITALL, given.held, given.count);
	err = next(count, requests, statuses);
	wait_leave(at);
	complete_ended_requests(&given, err, requests);
	free_given_requests(&given);
	return err;
}

int own_Waitany(call_of_4 *next, int count, mpi_word requests, mpi_word index, mpi_word status) {
	struct followed *at;
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	at = wait_enter(JOB_CALL_WAITANY, given.held, given.count);
	err = next(count, requests, index, status);
	wait_leave(at);
	if (given.count > 0 && err == 0)
		complete_request_at(&given, index);
	else
		complete_ended_requests(&given, err, requests);
	free_given_requests(&given);
	return err;
}

int own_Waitsome(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word done,
	mpi_word indices,
	mpi_word statuses
) {
	struct followed *at;
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	at = wait_enter(JOB_CALL_WAITSOME, given.held, given.count);
	err = next(count, requests, done, indices, statuses);
	wait_leave(at);
	if (given.count > 0 && err == 0)
		complete_requests_at(&given, done, indices);
	else
		complete_ended_requests(&given, err, requests);
	free_given_requests(&given);
	return err;
}

int own_Test(call_3 *next, mpi_word request, mpi_word flag, mpi_word status) {
	struct held held = hold_request(request);
	int err;

	test_enter(&held, held.handle != 0);
	err = next(request, flag, status);

	if (held.handle != 0 &&
	    (err == 0 ? load_int(flag, 0) != 0 : comm_load_handle(request) != held.handle))
		request_complete(held);
	return err;
}

int own_Testall(call_of_4 *next, int count, mpi_word requests, mpi_word flag, mpi_word statuses) {
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	test_enter(given.held, given.count);
	err = next(count, requests, flag, statuses);
	if (given.count > 0 && (err != 0 || load_int(flag, 0) != 0))
		complete_ended_requests(&given, err, requests);
	free_given_requests(&given);
	return err;
}

int own_Testany(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word index,
	mpi_word flag,
	mpi_word status
) {
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	test_enter(given.held, given.count);
	err = next(count, requests, index, flag, status);
	if (err != 0)
		complete_ended_requests(&given, err, requests);
	else if (given.count > 0 && load_int(flag, 0) != 0)
		complete_request_at(&given, index);
	free_given_requests(&given);
	return err;
}

int own_Testsome(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word done,
	mpi_word indices,
	mpi_word statuses
) {
	struct given given;
	int err;

	hold_given_requests(&given, count, requests);
	test_enter(given.held, given.count);
	err = next(count, requests, done, indices, statuses);
	if (given.count > 0 && err == 0)
		complete_requests_at(&given, done, indices);
	else
		complete_ended_requests(&given, err, requests);
	free_given_requests(&given);
	return err;
}

int own_Request_free(call_1 *next, mpi_word request) {
	struct held held = hold_request(request);
	int err = next(request);

	if (err == 0)
		request_free(held);
	return err;
}
