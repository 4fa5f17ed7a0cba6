// SPDX-License-Identifier: BSD-3-Clause
// Interposed between libtocsin-mpi.so and MPI, to cause rare events. The variable BETWEEN selects
// the event.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MPI_Request between_request = MPI_REQUEST_NULL;
int between_same; // the request has the same handle as the previous one
static int translated;

static bool is_asked(const char *what) {
	const char *asked = getenv("BETWEEN");

	return asked != NULL && strcmp(asked, what) == 0;
}

// Count the ranks of groups that are translated.
int PMPI_Group_translate_ranks(MPI_Group a, int count, const int *ranks, MPI_Group b, int *found) {
	int (*next)(MPI_Group, int, const int *, MPI_Group, int *) =
		(int (*)(MPI_Group, int, const int *, MPI_Group, int *)
		)dlsym(RTLD_NEXT, "PMPI_Group_translate_ranks");

	translated += count;
	return next(a, count, ranks, b, found);
}

int between_translated(void) {
	return translated;
}

// Start another operation before MPI_Wait returns, as another thread may do. It mostly gets the
// same request handle.
int PMPI_Wait(MPI_Request *request, MPI_Status *status) {
	int (*next)(MPI_Request *, MPI_Status *) =
		(int (*)(MPI_Request *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Wait");
	MPI_Request before = *request;
	int err = next(request, status);

	if (err == MPI_SUCCESS && is_asked("wait") && between_request == MPI_REQUEST_NULL) {
		MPI_Ibarrier(MPI_COMM_WORLD, &between_request);
		between_same = before == between_request;
	}
	return err;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
	return PMPI_Wait(request, status);
}

// Raise a signal while a communicator is being entered.
int PMPI_Comm_size(MPI_Comm comm, int *size) {
	int (*next)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))dlsym(RTLD_NEXT, "PMPI_Comm_size");

	if (is_asked("size") && comm != MPI_COMM_WORLD)
		raise(SIGUSR1);
	return next(comm, size);
}
