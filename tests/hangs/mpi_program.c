// SPDX-License-Identifier: BSD-3-Clause
// One program of the corpus that uses MPI and knows nothing of Tocsin.
//
//   mpi_program NAME
//
// All ranks take a few steps together, run the program or the behaviour of that name, and take a
// few more. Only rank 1 runs the behaviour. At the end rank 0 prints "whole".
#include "mpi_program.h"

#include "behaviours.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define STEPS 20
#define STEP_MS 10

int rank, size;

void mpi_steps(int count) {
	double given = rank, got;

	for (int n = 0; n < count; n++) {
		MPI_Allreduce(&given, &got, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		(void)poll(NULL, 0, STEP_MS);
	}
}

static const struct mpi_program *
program_find(const struct mpi_program *programs, const char *name) {
	while (programs->name != NULL && strcmp(programs->name, name) != 0)
		programs++;
	return programs->name != NULL ? programs : NULL;
}

int main(int argc, char **argv) {
	const char *name = argc > 1 ? argv[1] : "";
	const struct mpi_program *program = program_find(mpi_healthy, name);
	int level = MPI_THREAD_SINGLE, err = 0;

	if (program == NULL)
		program = program_find(mpi_hanging, name);
	if (strcmp(name, "two-threads") == 0)
		level = MPI_THREAD_MULTIPLE;
	MPI_Init_thread(&argc, &argv, level, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	mpi_steps(STEPS);
	if (program != NULL)
		program->play();
	else if (rank == 1)
		err = behaviour_run(name);
	if (err != 0)
		fprintf(stderr, "mpi_program: no program or behaviour is called \"%s\"\n", name);
	mpi_steps(STEPS);
	if (rank == 0)
		printf("whole\n");
	MPI_Finalize();
	return err != 0;
}
