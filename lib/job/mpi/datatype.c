// SPDX-License-Identifier: BSD-3-Clause
// The built-in datatypes of MPI, and the sizes of all other datatypes.
#include "follow.h"

#include <stddef.h>

#define MPICH_BUILTIN 0x4c000000u // 0x4cNNSSTT: SS is the size in bytes
#define MPICH_BUILTIN_MASK 0xff000000u

// NCCL's numbers, which the agent prints as names.
enum {
	INT8 = 0,
	UINT8 = 1,
	INT32 = 2,
	UINT32 = 3,
	INT64 = 4,
	UINT64 = 5,
	FLOAT32 = 7,
	FLOAT64 = 8,
};

struct datatype datatypes[DATATYPE_PLACES];

static const struct {
	const char *openmpi; // name of the variable
	uint32_t mpich;
	uint8_t datatype, size;
} known[] = {
	{"ompi_mpi_char", 0x4c000101, INT8, 1},
	{"ompi_mpi_signed_char", 0x4c000118, INT8, 1},
	{"ompi_mpi_unsigned_char", 0x4c000102, UINT8, 1},
	{"ompi_mpi_byte", 0x4c00010d, SIGNATURE_BYTES, 1},
	{"ompi_mpi_packed", 0x4c00010f, SIGNATURE_BYTES, 1},
	{"ompi_mpi_int8_t", 0x4c000137, INT8, 1},
	{"ompi_mpi_uint8_t", 0x4c00013b, UINT8, 1},
	{"ompi_mpi_short", 0x4c000203, SIGNATURE_BYTES, 2},
	{"ompi_mpi_unsigned_short", 0x4c000204, SIGNATURE_BYTES, 2},
	{"ompi_mpi_int", 0x4c000405, INT32, 4},
	{"ompi_mpi_unsigned", 0x4c000406, UINT32, 4},
	{"ompi_mpi_int32_t", 0x4c000439, INT32, 4},
	{"ompi_mpi_uint32_t", 0x4c00043d, UINT32, 4},
	{"ompi_mpi_integer", 0x4c00041b, INT32, 4},
	{"ompi_mpi_integer4", 0x4c000430, INT32, 4},
	{"ompi_mpi_logical", 0x4c00041d, SIGNATURE_BYTES, 4},
	{"ompi_mpi_long", 0x4c000807, INT64, 8},
	{"ompi_mpi_unsigned_long", 0x4c000808, UINT64, 8},
	{"ompi_mpi_long_long_int", 0x4c000809, INT64, 8},
	{"ompi_mpi_unsigned_long_long", 0x4c000819, UINT64, 8},
	{"ompi_mpi_int64_t", 0x4c00083a, INT64, 8},
	{"ompi_mpi_uint64_t", 0x4c00083e, UINT64, 8},
	{"ompi_mpi_integer8", 0x4c000831, INT64, 8},
	{"ompi_mpi_float", 0x4c00040a, FLOAT32, 4},
	{"ompi_mpi_real", 0x4c00041c, FLOAT32, 4},
	{"ompi_mpi_real4", 0x4c000427, FLOAT32, 4},
	{"ompi_mpi_double", 0x4c00080b, FLOAT64, 8},
	{"ompi_mpi_dblprec", 0x4c00081f, FLOAT64, 8},
	{"ompi_mpi_real8", 0x4c000829, FLOAT64, 8},
};
#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))
_Static_assert(KNOWN_COUNT * 2 < DATATYPE_PLACES, "a place is always free");

void datatypes_init(void) {
	for (size_t n = 0; n < KNOWN_COUNT; n++) {
		mpi_word handle = mpi_rules.ints ? known[n].mpich
						 : (mpi_word)call_find_variable(known[n].openmpi);

		uint64_t at = word_hash(handle) >> 40;

		if (handle == 0)
			continue;
		while (datatypes[at % DATATYPE_PLACES].handle != 0 &&
		       datatypes[at % DATATYPE_PLACES].handle != handle)
			at++;
		datatypes[at % DATATYPE_PLACES] =
			(struct datatype){handle, known[n].datatype, known[n].size};
	}
}

// Describe a datatype that is not in the table: made by the program, or rare.
struct datatype datatype_find_slow(mpi_word handle) {
	uint32_t number = (uint32_t)handle;

	if (mpi_rules.ints && (number & MPICH_BUILTIN_MASK) == MPICH_BUILTIN)
		return (struct datatype){handle, SIGNATURE_BYTES, (uint8_t)(number >> 8)};
	return (struct datatype){handle, SIGNATURE_BYTES, 0};
}

uint64_t datatype_bytes(mpi_word handle) {
	static int (*_Atomic ask)(mpi_word, int *); // relaxed: every thread finds the same function
	int (*found)(mpi_word, int *) = atomic_load_explicit(&ask, memory_order_relaxed);
	int size = 0;

	if ((handle & mpi_rules.mask) == mpi_rules.datatype_null)
		return 0;
	if (found == NULL) {
		found = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Type_size");
		atomic_store_explicit(&ask, found, memory_order_relaxed);
	}
	return found != NULL && found(handle, &size) == 0 && size > 0 ? (uint64_t)size : 0;
}
