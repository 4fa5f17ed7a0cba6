// SPDX-License-Identifier: BSD-3-Clause
// The programs of the corpus that use MPI, by name.
#pragma once

#include <mpi.h>

extern int rank, size; // of MPI_COMM_WORLD; set before a program is played

struct mpi_program {
	const char *name;
	void (*play)(void); // called by each rank after the first steps
};

// Programs that are healthy and odd, and programs that hang; the last entry has no name.
extern const struct mpi_program mpi_healthy[], mpi_hanging[];

// Sum one number over all ranks of MPI_COMM_WORLD, so many times.
void mpi_steps(int count);
