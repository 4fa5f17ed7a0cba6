// SPDX-License-Identifier: BSD-3-Clause
// Programs of MPI that hang, each by one mistake.
#include "behaviours.h"
#include "mpi_program.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define BIG 500000 // doubles: no library sends so many before the receiver is there

static double given[BIG], got[BIG];

static void receive_one(int from, int tag) {
	MPI_Recv(got, 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Rank 1 receives what rank 2 never sends.
static void receive_from_nobody(void) {
	behaviour_mark();
	if (rank == 1)
		receive_one(2, 10);
	MPI_Barrier(MPI_COMM_WORLD);
}

// Ranks 0 and 1 both receive before they send.
static void receive_first(void) {
	behaviour_mark();
	if (rank < 2) {
		receive_one(1 - rank, 11);
		MPI_Send(given, 1, MPI_DOUBLE, 1 - rank, 11, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

// Ranks 0 and 1 both send too much to be buffered.
static void send_first(void) {
	behaviour_mark();
	if (rank < 2) {
		MPI_Send(given, BIG, MPI_DOUBLE, 1 - rank, 12, MPI_COMM_WORLD);
		MPI_Recv(got, BIG, MPI_DOUBLE, 1 - rank, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 expects another tag than rank 0 sends.
static void receive_wrong_tag(void) {
	behaviour_mark();
	if (rank == 0)
		MPI_Send(given, 1, MPI_DOUBLE, 1, 13, MPI_COMM_WORLD);
	if (rank == 1)
		receive_one(0, 14);
	MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 expects rank 2 to be the root; it is rank 0.
static void broadcast_wrong_root(void) {
	behaviour_mark();
	MPI_Bcast(got, BIG, MPI_DOUBLE, rank == 1 ? 2 : 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 calls MPI_Barrier, all other ranks MPI_Allreduce.
static void call_other_collective(void) {
	behaviour_mark();
	if (rank == 1)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Allreduce(given, got, BIG, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// Rank 1 finalizes one step before all other ranks.
static void take_fewer_steps(void) {
	behaviour_mark();
	if (rank == 1) {
		MPI_Finalize();
		exit(0);
	}
}

static void abort_job(void) {
	behaviour_mark();
	if (rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
}

// Rank 1 tests a receive for ever.
static void test_for_ever(void) {
	MPI_Request request;
	int done = 0;

	behaviour_mark();
	if (rank != 1)
		return;
	MPI_Irecv(got, 1, MPI_DOUBLE, 0, 15, MPI_COMM_WORLD, &request);
	while (!done)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// Rank 1 does not take part in MPI_Comm_dup.
static void duplicate_without_rank_1(void) {
	MPI_Comm twin;

	behaviour_mark();
	if (rank == 1)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_Comm_dup(MPI_COMM_WORLD, &twin);
}

// Rank 1 does not take part in MPI_File_write_all.
static void write_file_without_rank_1(void) {
	const char *directory = getenv("TMPDIR");
	char path[4096];
	MPI_File file;

	snprintf(path, sizeof(path), "%s/file", directory != NULL ? directory : "/tmp");
	MPI_File_open(
		MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
		MPI_INFO_NULL, &file
	);
	behaviour_mark();
	if (rank == 1)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		MPI_File_write_all(file, given, 100, MPI_DOUBLE, MPI_STATUS_IGNORE);
}

// One of the two messages that rank 1 waits for is never sent.
static void wait_for_missing_message(void) {
	MPI_Request requests[2];

	behaviour_mark();
	if (rank == 0)
		MPI_Send(given, 1, MPI_DOUBLE, 1, 16, MPI_COMM_WORLD);
	if (rank != 1)
		return;
	MPI_Irecv(got, 1, MPI_DOUBLE, 0, 16, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(got + 1, 1, MPI_DOUBLE, 2, 16, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

// Rank 2, alone in the remote group, waits for a message instead of the barrier of both groups.
static void skip_intercomm_barrier(void) {
	MPI_Comm local, inter;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 17, &inter);
	behaviour_mark();
	if (rank == 2)
		receive_one(0, 18);
	MPI_Barrier(inter);
}

// Rank 1 waits for rank 2 in a communicator of both; rank 2 waits for rank 1 in the world.
static void wait_in_two_comms(void) {
	MPI_Comm pair;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &pair);
	behaviour_mark();
	if (rank == 1)
		MPI_Barrier(pair);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 2)
		MPI_Barrier(pair);
}

const struct mpi_program mpi_hanging[] = {
	{"recv-nobody", receive_from_nobody},
	{"recv-recv", receive_first},
	{"send-send", send_first},
	{"wrong-tag", receive_wrong_tag},
	{"wrong-root", broadcast_wrong_root},
	{"other-call", call_other_collective},
	{"fewer-steps", take_fewer_steps},
	{"aborts", abort_job},
	{"test-loop", test_for_ever},
	{"dup-missing", duplicate_without_rank_1},
	{"file-missing", write_file_without_rank_1},
	{"waitall", wait_for_missing_message},
	{"intercomm", skip_intercomm_barrier},
	{"sub-cycle", wait_in_two_comms},
	{NULL, NULL},
};
