// SPDX-License-Identifier: BSD-3-Clause
// Wrappers of calls that are more than one operation of one communicator.
#include "own.h"

#include <stdlib.h>

#define HANDLES_HERE 64 // requests of one call that are kept on the stack

int own_Init(call_2 *next, mpi_word argc, mpi_word argv) {
	int err = next(argc, argv);

	if (err == 0)
		begin_followed();
	return err;
}

int own_Init_thread(
	call_init_thread *next, mpi_word argc, mpi_word argv, int required, mpi_word provided
) {
	int err = next(argc, argv, required, provided);

	if (err == 0)
		begin_followed();
	return err;
}

// MPI_Finalize may wait for all ranks, so count it as an operation: ranks in other operations wait
// for this rank.
int own_Finalize(call_0 *next) {
	struct followed *world = is_begun() ? comm_hold(mpi_rules.world) : NULL;
	struct signature none = {.datatype = SIGNATURE_NO_TYPE, .root = -1};
	uint64_t place = 0;
	int err;

	if (world != NULL)
		place = collective_enter(world, TOCSIN_OTHER, none);
	err = next();
	if (world != NULL) {
		collective_leave(world, TOCSIN_OTHER, place);
		comm_release(world);
	}
	end_followed();
	return err;
}

int own_Abort(call_word_int *next, mpi_word comm, int error) {
	if (is_begun())
		comm_try_mark_all(TOCSIN_MARK_ABORTED);
	return next(comm, error);
}

// Only the ranks of the group call this function, so it is no operation of the parent.
int own_Comm_create_group(
	call_create_group *next, mpi_word comm, mpi_word group, int tag, mpi_word where
) {
	struct followed *at = comm_hold(comm);
	int err = next(comm, group, tag, where);

	if (at == NULL)
		return err;
	comm_made_by_group(at, err, where, (uint64_t)(uint32_t)tag + 1);
	comm_release(at);
	return err;
}

// The key is computed at the call, because children are numbered in call order.
static struct followed *
begin_idup(mpi_word comm, mpi_word where, struct dup *ret_dup, uint64_t *ret_place) {
	struct signature none = {.datatype = SIGNATURE_NO_TYPE, .root = -1};
	struct followed *at = comm_hold(comm);

	if (at == NULL)
		return NULL;
	*ret_dup = (struct dup){where, comm_twin_key(at)};
	*ret_place = collective_post(at, TOCSIN_OTHER, none);
	return at;
}

static void
end_idup(struct followed *at, int err, uint64_t place, mpi_word request, struct dup dup) {
	if (at == NULL)
		return;
	if (err == 0)
		request_dup(at, place, request, dup);
	else
		collective_posted(at, TOCSIN_OTHER, place, err, request);
}

int own_Comm_idup(call_3 *next, mpi_word comm, mpi_word where, mpi_word request) {
	struct dup dup = {0};
	uint64_t place = 0;
	struct followed *at = begin_idup(comm, where, &dup, &place);
	int err = next(comm, where, request);

	end_idup(at, err, place, request, dup);
	return err;
}

int own_Comm_idup_with_info(
	call_4 *next, mpi_word comm, mpi_word info, mpi_word where, mpi_word request
) {
	struct dup dup = {0};
	uint64_t place = 0;
	struct followed *at = begin_idup(comm, where, &dup, &place);
	int err = next(comm, info, where, request);

	end_idup(at, err, place, request, dup);
	return err;
}

static int free_comm(call_1 *next, mpi_word where) {
	struct followed *at = is_begun() && where != 0 ? comm_freeing(comm_read(where)) : NULL;
	int err = next(where);

	if (at != NULL)
		comm_freed(at, err);
	return err;
}

int own_Comm_free(call_1 *next, mpi_word comm) {
	return free_comm(next, comm);
}

int own_Comm_disconnect(call_1 *next, mpi_word comm) {
	return free_comm(next, comm);
}

// Count before the start: the operation may have completed when the call returns.
int own_Start(call_1 *next, mpi_word request) {
	mpi_word handle = is_begun() && request != 0 ? comm_read(request) : 0;
	int err;

	if (handle != 0)
		request_started(handle);
	err = next(request);
	if (err != 0 && handle != 0)
		request_done(request_hold(handle));
	return err;
}

int own_Startall(call_of_2 *next, int count, mpi_word requests) {
	if (is_begun() && requests != 0)
		for (int n = 0; n < count; n++)
			request_started(request_at(requests, n));
	return next(count, requests);
}

static struct held hold_one(mpi_word request) {
	return request_hold(is_begun() && request != 0 ? comm_read(request) : 0);
}

// The program's requests before the call, because MPI overwrites those that complete.
struct given {
	int count; // -1: not followed
	struct held *held;
	struct held here[HANDLES_HERE];
};

static void take_given(struct given *given, int count, mpi_word requests) {
	given->count = -1;
	given->held = given->here;
	if (!is_begun() || count <= 0 || requests == 0)
		return;
	if (count > HANDLES_HERE)
		given->held = malloc((size_t)count * sizeof(*given->held));
	if (given->held == NULL) {
		given->held = given->here;
		return;
	}
	given->count = count;
	for (int n = 0; n < count; n++)
		given->held[n] = request_hold(request_at(requests, n));
}

static void drop_given(struct given *given) {
	if (given->held != given->here)
		free(given->held);
}

// On an error, other outputs of MPI may be undefined. A request whose handle MPI changed has
// completed.
static void all_done(const struct given *given, int err, mpi_word requests) {
	for (int n = 0; n < given->count; n++)
		if (err == 0 || request_at(requests, n) != given->held[n].handle)
			request_done(given->held[n]);
}

static int int_at(mpi_word where, int n) {
	// NOLINTNEXTLINE(performance-no-int-to-ptr): the address comes from the program
	return ((const int *)where)[n];
}

static void one_done(const struct given *given, mpi_word index) {
	int n = int_at(index, 0);

	if (n >= 0 && n < given->count)
		request_done(given->held[n]);
}

static void some_done(const struct given *given, mpi_word done, mpi_word indices) {
	int count = int_at(done, 0);

	for (int n = 0; n < count && n < given->count; n++) {
		int index = int_at(indices, n);

		if (index >= 0 && index < given->count)
			request_done(given->held[index]);
	}
}

int own_Wait(call_2 *next, mpi_word request, mpi_word status) {
	struct held held = hold_one(request);
	int err = next(request, status);

	if (held.handle != 0 && (err == 0 || comm_read(request) != held.handle))
		request_done(held);
	return err;
}

int own_Waitall(call_of_3 *next, int count, mpi_word requests, mpi_word statuses) {
	struct given given;
	int err;

	take_given(&given, count, requests);
	err = next(count, requests, statuses);
	all_done(&given, err, requests);
	drop_given(&given);
	return err;
}

int own_Waitany(call_of_4 *next, int count, mpi_word requests, mpi_word index, mpi_word status) {
	struct given given;
	int err;

	take_given(&given, count, requests);
	err = next(count, requests, index, status);
	if (given.count > 0 && err == 0)
		one_done(&given, index);
	else
		all_done(&given, err, requests);
	drop_given(&given);
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
	struct given given;
	int err;

	take_given(&given, count, requests);
	err = next(count, requests, done, indices, statuses);
	if (given.count > 0 && err == 0)
		some_done(&given, done, indices);
	else
		all_done(&given, err, requests);
	drop_given(&given);
	return err;
}

int own_Test(call_3 *next, mpi_word request, mpi_word flag, mpi_word status) {
	struct held held = hold_one(request);
	int err = next(request, flag, status);

	if (held.handle != 0 &&
	    (err == 0 ? int_at(flag, 0) != 0 : comm_read(request) != held.handle))
		request_done(held);
	return err;
}

int own_Testall(call_of_4 *next, int count, mpi_word requests, mpi_word flag, mpi_word statuses) {
	struct given given;
	int err;

	take_given(&given, count, requests);
	err = next(count, requests, flag, statuses);
	if (given.count > 0 && (err != 0 || int_at(flag, 0) != 0))
		all_done(&given, err, requests);
	drop_given(&given);
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

	take_given(&given, count, requests);
	err = next(count, requests, index, flag, status);
	if (err != 0)
		all_done(&given, err, requests);
	else if (given.count > 0 && int_at(flag, 0) != 0)
		one_done(&given, index);
	drop_given(&given);
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

	take_given(&given, count, requests);
	err = next(count, requests, done, indices, statuses);
	if (given.count > 0 && err == 0)
		some_done(&given, done, indices);
	else
		all_done(&given, err, requests);
	drop_given(&given);
	return err;
}

int own_Request_free(call_1 *next, mpi_word request) {
	struct held held = hold_one(request);
	int err = next(request);

	if (err == 0)
		request_freed(held);
	return err;
}
