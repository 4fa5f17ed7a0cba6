// SPDX-License-Identifier: BSD-3-Clause
// Table of the MPI functions that this library wraps.
//
// One build serves Open MPI, whose handles are pointers, and MPICH, whose handles are ints. Intel
// MPI, Cray MPI and MVAPICH are like MPICH. Every argument that is no number is passed on as a
// whole word. The rules of the loaded MPI determine its meaning. This needs a calling convention
// that passes each argument in a register or a slot of eight bytes. The conventions of x86-64,
// aarch64, ppc64le and riscv64 do that.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t mpi_word; // an address or a handle
_Static_assert(sizeof(mpi_word) == 8, "a handle of either MPI fits in an argument");

#define CALLER __builtin_return_address(0)

struct call {
	const char *name; // "PMPI_Send"
	// MPI's own function. Stored with release after `outer`, loaded with acquire.
	void *_Atomic next;
	// MPI_Send of another tool between this library and MPI, which itself calls PMPI_Send; else
	// NULL.
	void *outer;
};

extern struct call mpi_calls[];
extern const unsigned int mpi_call_count;

// call.c: find a function and its tool; `caller` is the program's return address.
void *call_resolve(unsigned int number, const void *caller);
// Find a symbol in the library that provides the first function found, or in its dependencies.
// Returns NULL if there is none.
void *call_find_in_same_library(const char *name);
// Find an MPI function that is not wrapped. Returns NULL if there is none.
void *call_find_unwrapped(const char *name);
// Find a variable of MPI. Returns NULL if there is none.
void *call_find_variable(const char *name);
// Return how many MPI libraries are loaded.
unsigned int call_count_libraries(void);

static inline void *call_next(unsigned int number, const void *caller) {
	void *next = atomic_load_explicit(&mpi_calls[number].next, memory_order_acquire);

	return __builtin_expect(next != NULL, 1) ? next : call_resolve(number, caller);
}

// Return another tool's function, which must be called with the program's arguments. The operation
// is counted when the tool calls PMPI.
static inline void *call_outer(unsigned int number, const void *caller) {
	(void)call_next(number, caller);
	return mpi_calls[number].outer;
}
