// SPDX-License-Identifier: BSD-3-Clause
// Cost of libtocsin-mpi.so per MPI operation. The program runs itself without and with the library,
// alternating, on an MPI library that does nothing.
// Usage: tocsin-bridges-mpi [--json] LIBRARY
// --json-rest is for tocsin-bridges-bench, and completes its JSON object.
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS 200000u
#define ROUNDS 15u
#define TURNS 5u
#define ROWS 5u

typedef uintptr_t word;
extern char ompi_mpi_comm_world[1], ompi_mpi_double[1];
int MPI_Init(word argc, word argv);
int MPI_Barrier(word comm);
int MPI_Allreduce(word from, word to, int count, word type, word operation, word comm);
int MPI_Bcast(word buffer, int count, word type, int root, word comm);
int MPI_Send(word buffer, int count, word type, int to, int tag, word comm);
int MPI_Isend(word buffer, int count, word type, int to, int tag, word comm, word *request);
int MPI_Wait(word *request, word status);

static const char *const names[ROWS] = {
	"MPI_Barrier", "MPI_Allreduce", "MPI_Bcast", "MPI_Send", "MPI_Isend and MPI_Wait",
};

static int operation_call(uint32_t row) {
	word world = (word)ompi_mpi_comm_world, type = (word)ompi_mpi_double, request;

	switch (row) {
	case 0:
		return MPI_Barrier(world);
	case 1:
		return MPI_Allreduce(1, 2, 64, type, 3, world);
	case 2:
		return MPI_Bcast(1, 64, type, 0, world);
	case 3:
		return MPI_Send(1, 64, type, 0, 7, world);
	default:
		return MPI_Isend(1, 64, type, 0, 7, world, &request) + MPI_Wait(&request, 0);
	}
}

static double quickest_ns(uint32_t row) {
	double quickest = 1e9;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct timespec from, to;
		double ns;
		int sum = 0;

		clock_gettime(CLOCK_MONOTONIC, &from);
		for (uint32_t n = 0; n < OPERATIONS; n++)
			sum += operation_call(row);
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
		if (sum == 0 && ns / OPERATIONS < quickest)
			quickest = ns / OPERATIONS;
	}
	return quickest;
}

// Write the times to standard output in binary form.
static int measure_here(void) {
	double ns[ROWS];

	if (MPI_Init(0, 0) != 0)
		return 1;
	for (uint32_t row = 0; row < ROWS; row++)
		ns[row] = quickest_ns(row);
	return write(STDOUT_FILENO, ns, sizeof(ns)) != (ssize_t)sizeof(ns);
}

static void __attribute__((noreturn)) exec_measurer(const char *library, int out) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	if (setenv("LD_PRELOAD", library, 1) == 0 && dup2(out, STDOUT_FILENO) >= 0)
		execl("/proc/self/exe", "tocsin-bridges-mpi", "--here", (char *)NULL);
	_exit(1);
}

// Run this program in a child, and keep the lower times. Returns false if it does not run.
static bool measure_in_child(const char *library, double ret_ns[static ROWS]) {
	double ns[ROWS];
	int ends[2];
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		exec_measurer(library, ends[1]);
	close(ends[1]);
	got = pid < 0 ? -1 : read(ends[0], ns, sizeof(ns));
	close(ends[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	for (uint32_t row = 0; got == (ssize_t)sizeof(ns) && row < ROWS; row++)
		if (ret_ns[row] == 0 || ns[row] < ret_ns[row])
			ret_ns[row] = ns[row];
	return got == (ssize_t)sizeof(ns);
}

static void print_rows(
	bool json, const char *begin, const double bare[static ROWS], const double with[static ROWS]
) {
	for (uint32_t row = 0; row < ROWS; row++) {
		if (json)
			printf("%s  {\"name\": \"%s\", \"bare_ns\": %.1f, \"library_ns\": %.1f}",
			       row == 0 ? begin : ",\n", names[row], bare[row], with[row]);
		else
			printf("%-40s %-16s %8.1f %8.1f %8.1f\n", names[row], "", bare[row],
			       with[row], with[row] - bare[row]);
	}
	if (json)
		printf("\n]}\n");
}

int main(int argc, char **argv) {
	bool rest = argc > 1 && strcmp(argv[1], "--json-rest") == 0;
	bool json = rest || (argc > 1 && strcmp(argv[1], "--json") == 0);
	double bare[ROWS] = {0}, with[ROWS] = {0};

	if (argc == 2 && strcmp(argv[1], "--here") == 0)
		return measure_here();
	if (argc != 2 + json) {
		fprintf(stderr, "usage: tocsin-bridges-mpi [--json] LIBRARY\n");
		return 2;
	}
	for (uint32_t turn = 0; turn < TURNS; turn++)
		if (!measure_in_child("", bare) || !measure_in_child(argv[1 + json], with))
			return 1;
	if (!json)
		printf("%-40s %-16s %8s %8s %8s\n", "ns an operation", "", "bare", "library",
		       "more");
	print_rows(json, rest ? "\"bridges_mpi\": [\n" : "{\"bridges_mpi\": [\n", bare, with);
	return 0;
}
