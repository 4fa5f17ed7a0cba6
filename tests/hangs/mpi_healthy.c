// SPDX-License-Identifier: BSD-3-Clause
// Programs of MPI that are healthy and odd. Each ends after about behaviour_seconds().
#include "behaviours.h"
#include "mpi_program.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG 500000 // doubles: no library sends so many before the receiver is there
#define CHURN_MS 50

static double given[BIG], got[BIG];

// Rank 1 computes between MPI_Iallreduce and MPI_Wait; all other ranks wait at once.
static void wait_late(void) {
	MPI_Request request;

	behaviour_mark();
	MPI_Iallreduce(given, got, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
	if (rank == 1)
		behaviour_compute(behaviour_seconds());
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *thread_steps(void *context) {
	MPI_Comm comm = *(MPI_Comm *)context;
	double sum, value = 1, end = MPI_Wtime() + behaviour_seconds();
	int pause = rank == 1 ? 40 : 1, more;

	do {
		MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
		(void)poll(NULL, 0, pause);
		more = MPI_Wtime() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, comm);
	} while (more);
	return NULL;
}

// Two threads, each with its own communicator; rank 1 is slow.
static void run_two_threads(void) {
	MPI_Comm comms[2];
	pthread_t ids[2];

	for (int n = 0; n < 2; n++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
	behaviour_mark();
	for (int n = 0; n < 2; n++)
		pthread_create(&ids[n], NULL, thread_steps, &comms[n]);
	for (int n = 0; n < 2; n++)
		pthread_join(ids[n], NULL);
	for (int n = 0; n < 2; n++)
		MPI_Comm_free(&comms[n]);
}

// All ranks write one file together; rank 0 prepares each piece slowly.
static void write_file_views(void) {
	double end = MPI_Wtime() + behaviour_seconds();
	const char *directory = getenv("TMPDIR");
	char path[4096];
	MPI_File file;
	int more = 1;

	snprintf(path, sizeof(path), "%s/views", directory != NULL ? directory : "/tmp");
	MPI_File_open(
		MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
		MPI_INFO_NULL, &file
	);
	behaviour_mark();
	while (more) {
		if (rank == 0)
			behaviour_compute(3);
		MPI_File_write_at_all(
			file, rank * (MPI_Offset)sizeof(given), given, BIG, MPI_DOUBLE,
			MPI_STATUS_IGNORE
		);
		MPI_File_sync(file);
		more = MPI_Wtime() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	MPI_File_close(&file);
}

// The spawned world computes while its parents wait in a broadcast over both worlds.
static void spawn_world(void) {
	MPI_Comm parent, inter, merged;
	int number = 0;

	MPI_Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL) {
		char *words[] = {"spawn", NULL};

		behaviour_mark();
		MPI_Comm_spawn(
			getenv("CORPUS_PROGRAM"), words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			&inter, MPI_ERRCODES_IGNORE
		);
	} else {
		inter = parent;
		behaviour_compute(behaviour_seconds());
	}
	MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
	MPI_Bcast(&number, 1, MPI_INT, 0, merged);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
}

// Rank 0 gives out two long tasks to each worker, and takes the results as they arrive.
static void run_farm(void) {
	int task = 0, last = 2;
	MPI_Status status;

	behaviour_mark();
	if (rank != 0) {
		for (int n = 0; n < last; n++) {
			MPI_Recv(&task, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			behaviour_compute(behaviour_seconds() / 2.0);
			MPI_Send(&task, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
		}
		return;
	}
	for (int to = 1; to < size; to++)
		MPI_Send(&task, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
	for (int n = 0; n < last * (size - 1); n++) {
		MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
		if (n < (last - 1) * (size - 1))
			MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD);
	}
}

// Ranks 0 and 2 write to a window of rank 1, which computes and takes no part.
static void lock_passive_target(void) {
	MPI_Win window;
	double *base, value = 1;

	// Not MPI_Win_create(): Debian's Open MPI refuses it on one node.
	MPI_Win_allocate(
		(MPI_Aint)size * 8, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window
	);
	behaviour_mark();
	if (rank == 1)
		behaviour_compute(behaviour_seconds());
	if (rank != 1) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
		MPI_Put(&value, 1, MPI_DOUBLE, 1, rank, 1, MPI_DOUBLE, window);
		MPI_Win_unlock(1, window);
	}
	MPI_Win_free(&window);
}

// Dynamic sparse exchange: probe for messages until a nonblocking barrier ends.
static void exchange_sparsely(void) {
	MPI_Request sent, barrier = MPI_REQUEST_NULL;
	int done = 0, all_sent, found, value = rank;
	MPI_Status status;

	behaviour_mark();
	if (rank == 1)
		behaviour_compute(behaviour_seconds());
	MPI_Issend(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &sent);
	while (!done) {
		MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &found, &status);
		if (found)
			MPI_Recv(
				&value, 1, MPI_INT, status.MPI_SOURCE, 3, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE
			);
		MPI_Test(&sent, &all_sent, MPI_STATUS_IGNORE);
		if (all_sent && barrier == MPI_REQUEST_NULL)
			MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
		else if (barrier != MPI_REQUEST_NULL)
			MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
	}
}

// Communicators of two, one and all ranks are made, used and freed.
static void churn_comms(void) {
	double end = MPI_Wtime() + behaviour_seconds();
	int more = 1;

	behaviour_mark();
	while (more) {
		MPI_Comm half, twin;

		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
		MPI_Comm_dup(half, &twin);
		MPI_Barrier(twin);
		MPI_Barrier(MPI_COMM_SELF);
		MPI_Comm_free(&half);
		MPI_Comm_free(&twin);
		(void)poll(NULL, 0, CHURN_MS);
		more = MPI_Wtime() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

// Rank 1 has nothing to do and finalizes; the others work on without it.
static void finalize_early(void) {
	double end = MPI_Wtime() + behaviour_seconds(), value = 1, sum;
	MPI_Comm rest;
	int more = 1;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &rest);
	behaviour_mark();
	while (rank != 1 && more) {
		MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, rest);
		behaviour_compute(0.01);
		more = MPI_Wtime() < end;
		MPI_Bcast(&more, 1, MPI_INT, 0, rest);
	}
	MPI_Comm_free(&rest);
	if (rank == 0)
		printf("whole\n");
	MPI_Finalize();
	fflush(NULL);
	_exit(0); // the caller would take further steps
}

// Rank 0 sends much to rank 1, which computes first.
static void send_big(void) {
	behaviour_mark();
	if (rank == 0)
		MPI_Send(given, BIG, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD);
	if (rank == 1) {
		behaviour_compute(behaviour_seconds());
		MPI_Recv(got, BIG, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

const struct mpi_program mpi_healthy[] = {
	{"late-wait", wait_late},
	{"two-threads", run_two_threads},
	{"mpi-io", write_file_views},
	{"spawn", spawn_world},
	{"farm", run_farm},
	{"passive", lock_passive_target},
	{"sparse", exchange_sparsely},
	{"churn", churn_comms},
	{"early", finalize_early},
	{"big-send", send_big},
	{NULL, NULL},
};
