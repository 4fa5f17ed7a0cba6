// SPDX-License-Identifier: BSD-3-Clause
// The functions of MPI that this library stands before.
//
// One build serves Open MPI, whose handles are pointers, and MPICH (with Intel's, Cray's and
// MVAPICH's MPI), whose handles are ints: every argument that is no number is passed on as the
// whole word that came, and looked at by the rules of whichever MPI is there. That needs a calling
// convention that gives each argument a register or a place of eight bytes, as x86-64, aarch64,
// ppc64le and riscv64 have it.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t mpi_word; // an address or a handle
_Static_assert(sizeof(mpi_word) == 8, "a handle of either MPI fits in an argument");

#define CALLER __builtin_return_address(0)

struct call {
	const char *name; // "PMPI_Send"
	// MPI's own. Stored with release when `outer` is known, loaded with acquire.
	void *_Atomic next;
	// Of another tool that stands between us and MPI, and calls PMPI_Send in turn; else NULL.
	void *outer;
};

extern struct call mpi_calls[];
extern const unsigned int mpi_call_count;

// call.c: finds them; `caller` is where the program called from.
void *call_find(unsigned int number, const void *caller);
// What the library has whose function was found first, or those have that it needs; NULL: nothing.
void *call_beside(const char *name);
// A function of MPI's that is not followed; NULL: there is none.
void *call_other(const char *name);
// A variable of MPI's.
void *call_data(const char *name);
// How many libraries of MPI are loaded.
unsigned int call_libraries(void);

static inline void *call_next(unsigned int number, const void *caller) {
	void *next = atomic_load_explicit(&mpi_calls[number].next, memory_order_acquire);

	return __builtin_expect(next != NULL, 1) ? next : call_find(number, caller);
}

// Another tool is to be called with what the program gave: it is counted when that calls PMPI.
static inline void *call_outer(unsigned int number, const void *caller) {
	(void)call_next(number, caller);
	return mpi_calls[number].outer;
}
