// SPDX-License-Identifier: BSD-3-Clause
// An MPI job without any knowledge of Tocsin. The first argument selects what it does:
//   count      every kind of operation, a known number of each
//	  elsewhere  rank 2 waits for a message that is never sent
//	  messages   each rank sends to the next one, and nobody receives
//   self       rank 2 is busy in MPI_COMM_SELF
//	  order      rank 1 uses two communicators in the other order
//	  counts     rank 1 contributes nothing to a sum
//	  posted     rank 1 posts to two communicators in the other order, which is legal
//	  unwaited   rank 0 posts a sum, and does not wait for it as the others do
//	  requests   each rank waits for a message of the next one, which it has only asked for
// The optional second argument is a file: the ranks continue when it is removed. At the end rank 0
// prints a result.
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 10
#define COUNT 64
#define POSTED_MS 120000

static int rank, size;
static double given[COUNT], got[COUNT * 64];
static MPI_Comm twin, half;

static void hold(const char *file) {
	while (file != NULL && access(file, F_OK) == 0)
		(void)poll(NULL, 0, 10);
}

static void post_operations(void) {
	MPI_Request requests[4];
	double other[COUNT];

	MPI_Ibarrier(twin, &requests[0]);
	MPI_Iallreduce(given, other, COUNT, MPI_DOUBLE, MPI_SUM, twin, &requests[1]);
	MPI_Allreduce(given, got, COUNT, MPI_DOUBLE, MPI_MAX, twin);
	MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	for (int n = 0; n < ROUNDS; n++) {
		int to = (rank + 1) % size, from = (rank + size - 1) % size, flag = 0;

		MPI_Irecv(other, COUNT, MPI_DOUBLE, from, n, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(given, COUNT, MPI_DOUBLE, to, n, MPI_COMM_WORLD, &requests[1]);
		MPI_Ibcast(got, COUNT, MPI_DOUBLE, 0, twin, &requests[2]);
		requests[3] = MPI_REQUEST_NULL;
		while (!flag)
			MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
	}
}

static void repeat_operations(void) {
	MPI_Request requests[2];
	double other[COUNT];
	int to = (rank + 1) % size, from = (rank + size - 1) % size;

	MPI_Send_init(given, COUNT, MPI_DOUBLE, to, 7, MPI_COMM_WORLD, &requests[0]);
	MPI_Recv_init(other, COUNT, MPI_DOUBLE, from, 7, MPI_COMM_WORLD, &requests[1]);
	for (int n = 0; n < ROUNDS; n++) {
		int index, done = 0;

		MPI_Startall(2, requests);
		while (done < 2) {
			MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
			done++;
		}
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
}

static void count_operations(void) {
	MPI_Datatype pair;

	for (int n = 0; n < ROUNDS; n++) {
		MPI_Allreduce(given, got, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		MPI_Bcast(got, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		MPI_Gather(
			rank == 0 ? MPI_IN_PLACE : given, 1, MPI_DOUBLE, got, 1, MPI_DOUBLE, 0,
			MPI_COMM_WORLD
		);
		MPI_Allgather(
			MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, MPI_DOUBLE, MPI_COMM_WORLD
		);
		MPI_Barrier(half);
	}
	// The same bytes with another type: no rank deviates.
	MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
	MPI_Type_commit(&pair);
	MPI_Bcast(got, rank == 1 ? 1 : 2, rank == 1 ? pair : MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Type_free(&pair);
	post_operations();
	repeat_operations();
	MPI_Barrier(MPI_COMM_WORLD);
}

static void hang(const char *mode) {
	if (strcmp(mode, "elsewhere") == 0 && rank == 2)
		MPI_Recv(got, 1, MPI_DOUBLE, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (strcmp(mode, "messages") == 0)
		MPI_Ssend(got, 1, MPI_DOUBLE, (rank + 1) % size, 98, MPI_COMM_WORLD);
	while (strcmp(mode, "self") == 0 && rank == 2) {
		MPI_Barrier(MPI_COMM_SELF);
		(void)poll(NULL, 0, 1);
	}
	if (strcmp(mode, "order") == 0) {
		MPI_Barrier(rank == 1 ? twin : half);
		MPI_Barrier(rank == 1 ? half : twin);
	}
	if (strcmp(mode, "posted") == 0) {
		MPI_Request requests[2];

		MPI_Ibarrier(rank == 1 ? twin : half, &requests[0]);
		if (rank == 2)
			MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
		else
			(void)poll(NULL, 0, POSTED_MS);
		MPI_Ibarrier(rank == 1 ? half : twin, &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	if (strcmp(mode, "unwaited") == 0) {
		MPI_Request request;

		MPI_Iallreduce(given, got, COUNT, MPI_DOUBLE, MPI_SUM, twin, &request);
		if (rank == 0)
			(void)poll(NULL, 0, POSTED_MS);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	if (strcmp(mode, "requests") == 0) {
		MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

		MPI_Irecv(got, 1, MPI_DOUBLE, (rank + 1) % size, 97, MPI_COMM_WORLD, &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	// An operation without data completes at once.
	if (strcmp(mode, "counts") == 0)
		MPI_Allreduce(given, got, rank == 1 ? 0 : COUNT, MPI_DOUBLE, MPI_SUM, twin);
}

int main(int argc, char **argv) {
	const char *mode = argc > 1 ? argv[1] : "count";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int n = 0; n < COUNT; n++)
		given[n] = rank + n / 7.0;
	MPI_Comm_dup(MPI_COMM_WORLD, &twin);
	MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &half);
	count_operations();
	hang(mode);
	hold(argc > 2 ? argv[2] : NULL);
	MPI_Allreduce(given, got, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%a %a\n", got[0], got[COUNT - 1]);
	MPI_Comm_free(&twin);
	MPI_Comm_free(&half);
	MPI_Finalize();
	return 0;
}
