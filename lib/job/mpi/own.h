// SPDX-License-Identifier: BSD-3-Clause
// Wrappers of calls that are more than one operation of a communicator. `next` is MPI's own
// function.
#pragma once

#include "calls.h"
#include "follow.h"

typedef int call_0(void);
typedef int call_1(mpi_word);
typedef int call_2(mpi_word, mpi_word);
typedef int call_3(mpi_word, mpi_word, mpi_word);
typedef int call_word_int(mpi_word, int);
typedef int call_init_thread(mpi_word, mpi_word, int, mpi_word);
typedef int call_create_group(mpi_word, mpi_word, int, mpi_word);
typedef int call_of_2(int, mpi_word);
typedef int call_of_3(int, mpi_word, mpi_word);
typedef int call_of_4(int, mpi_word, mpi_word, mpi_word);
typedef int call_of_5(int, mpi_word, mpi_word, mpi_word, mpi_word);

int own_Init(call_2 *next, mpi_word argc, mpi_word argv);
int own_Init_thread(
	call_init_thread *next, mpi_word argc, mpi_word argv, int required, mpi_word provided
);
int own_Finalize(call_0 *next);
int own_Abort(call_word_int *next, mpi_word comm, int error);
int own_Comm_create_group(
	call_create_group *next, mpi_word comm, mpi_word group, int tag, mpi_word where
);
int own_Comm_idup(call_3 *next, mpi_word comm, mpi_word where, mpi_word request);
typedef int call_4(mpi_word, mpi_word, mpi_word, mpi_word);
int own_Comm_idup_with_info(
	call_4 *next, mpi_word comm, mpi_word info, mpi_word where, mpi_word request
);
int own_Comm_free(call_1 *next, mpi_word comm);
int own_Comm_disconnect(call_1 *next, mpi_word comm);
int own_Start(call_1 *next, mpi_word request);
int own_Startall(call_of_2 *next, int count, mpi_word requests);
int own_Wait(call_2 *next, mpi_word request, mpi_word status);
int own_Waitall(call_of_3 *next, int count, mpi_word requests, mpi_word statuses);
int own_Waitany(call_of_4 *next, int count, mpi_word requests, mpi_word index, mpi_word status);
int own_Waitsome(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word done,
	mpi_word indices,
	mpi_word statuses
);
int own_Test(call_3 *next, mpi_word request, mpi_word flag, mpi_word status);
int own_Testall(call_of_4 *next, int count, mpi_word requests, mpi_word flag, mpi_word statuses);
int own_Testany(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word index,
	mpi_word flag,
	mpi_word status
);
int own_Testsome(
	call_of_5 *next,
	int count,
	mpi_word requests,
	mpi_word done,
	mpi_word indices,
	mpi_word statuses
);
int own_Request_free(call_1 *next, mpi_word request);
