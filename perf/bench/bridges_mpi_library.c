// SPDX-License-Identifier: BSD-3-Clause
// Stub of Open MPI's library: a world of one rank, whose operations return at once. So the time of
// an operation is the cost of the library in front of it.
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef uintptr_t word;

extern char ompi_mpi_comm_world[1], ompi_mpi_comm_self[1], ompi_mpi_comm_null[1],
	ompi_request_null[1], ompi_mpi_datatype_null[1], ompi_mpi_double[1];
EXPORT char ompi_mpi_comm_world[1], ompi_mpi_comm_self[1], ompi_mpi_comm_null[1],
	ompi_request_null[1], ompi_mpi_datatype_null[1], ompi_mpi_double[1];

#define DEFINE(name, parameters)                                      \
	EXPORT int P##name parameters;                                \
	EXPORT int name parameters __attribute__((alias("P" #name))); \
	int P##name parameters

DEFINE(MPI_Init, (word argc, word argv)) {
	return argc == 1 && argv == 1;
}

DEFINE(MPI_Query_thread, (int *ret_level)) {
	*ret_level = 0;
	return 0;
}

DEFINE(MPI_Comm_rank, (word comm, int *ret_rank)) {
	*ret_rank = 0;
	return comm == 0;
}

DEFINE(MPI_Comm_size, (word comm, int *ret_size)) {
	*ret_size = 1;
	return comm == 0;
}

DEFINE(MPI_Comm_test_inter, (word comm, int *ret_is_inter)) {
	*ret_is_inter = 0;
	return comm == 0;
}

DEFINE(MPI_Comm_group, (word comm, word *ret_group)) {
	*ret_group = comm;
	return comm == 0;
}

DEFINE(MPI_Group_free, (word * group)) {
	*group = 0;
	return 0;
}

DEFINE(MPI_Group_size, (word group, int *ret_size)) {
	*ret_size = 1;
	return group == 0;
}

DEFINE(MPI_Group_translate_ranks, (word group, int count, const int *ranks, word to, int *ret)) {
	memcpy(ret, ranks, (size_t)count * sizeof(*ret));
	return group == to;
}

DEFINE(MPI_Comm_get_name, (word comm, char *ret_name, int *ret_length)) {
	memcpy(ret_name, "MPI_COMM_WORLD", 15);
	*ret_length = 14;
	return comm == 0;
}

DEFINE(MPI_Barrier, (word comm)) {
	return comm == 0;
}

DEFINE(MPI_Allreduce, (word from, word to, int count, word type, word operation, word comm)) {
	return from == to && count == 0 && type == operation && comm == 0;
}

DEFINE(MPI_Bcast, (word buffer, int count, word type, int root, word comm)) {
	return buffer == 0 && count == root && type == comm;
}

DEFINE(MPI_Send, (word buffer, int count, word type, int to, int tag, word comm)) {
	return buffer == 0 && count == to && tag == 0 && type == comm;
}

// Return a different request in each call. MPI fixes the seven parameters.
// NOLINTNEXTLINE(readability-function-size)
DEFINE(MPI_Isend, (word buffer, int count, word type, int to, int tag, word comm, word *request)) {
	static uint32_t next;

	*request = 0x10000u + 64u * (next++ % 1024u);
	return buffer == 0 && count == to && tag == 0 && type == comm;
}

DEFINE(MPI_Wait, (word * request, word status)) {
	*request = (word)ompi_request_null;
	return status == 1;
}
