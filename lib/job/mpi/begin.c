// SPDX-License-Identifier: BSD-3-Clause
// Begin and end of following: between MPI_Init and MPI_Finalize. Detects which MPI runs and
// identifies its world.
#include "follow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREAD_MULTIPLE 3 // MPI_THREAD_MULTIPLE of Open MPI and MPICH
#define ERROR_BYTES 96
#define MPICH_WORLD 0x44000000u
#define MPICH_SELF 0x44000001u
#define MPICH_COMM_NULL 0x04000000u
#define MPICH_REQUEST_NULL 0x2c000000u
#define MPICH_DATATYPE_NULL 0x0c000000u

enum life {
	LIFE_BEFORE,
	LIFE_ACTIVE,
	LIFE_OVER, // after MPI_Finalize, or if this process is not followed
};

// Stored with release once everything is detected, loaded with acquire by callers.
static _Atomic int life;
static pthread_mutex_t life_mutex = PTHREAD_MUTEX_INITIALIZER;

bool follow_is_active(void) {
	return atomic_load_explicit(&life, memory_order_acquire) == LIFE_ACTIVE;
}

static void detect_mpi_rules(void) {
	// Another MPI may be loaded besides the one that the program calls. So look in the library
	// that provides the program's functions. If that library has no PMPI_Init, it belongs to a
	// tool; then try the symbols of Open MPI.
	bool is_open_mpi = call_find_in_same_library("PMPI_Init") == NULL ||
			   call_find_in_same_library("ompi_mpi_comm_world") != NULL;
	mpi_word world = is_open_mpi ? (mpi_word)call_find_variable("ompi_mpi_comm_world") : 0;
	int (*query)(int *) = (int (*)(int *))call_find_unwrapped("PMPI_Query_thread");
	int level = 0;

	if (world != 0) {
		mpi_rules.ints = false;
		mpi_rules.mask = ~(mpi_word)0;
		mpi_rules.world = world;
		mpi_rules.self = (mpi_word)call_find_variable("ompi_mpi_comm_self");
		mpi_rules.comm_null = (mpi_word)call_find_variable("ompi_mpi_comm_null");
		mpi_rules.request_null = (mpi_word)call_find_variable("ompi_request_null");
		mpi_rules.datatype_null = (mpi_word)call_find_variable("ompi_mpi_datatype_null");
	} else {
		mpi_rules.ints = true;
		mpi_rules.mask = UINT32_MAX;
		mpi_rules.world = MPICH_WORLD;
		mpi_rules.self = MPICH_SELF;
		mpi_rules.comm_null = MPICH_COMM_NULL;
		mpi_rules.request_null = MPICH_REQUEST_NULL;
		mpi_rules.datatype_null = MPICH_DATATYPE_NULL;
	}
	mpi_rules.is_threaded = query == NULL || query(&level) != 0 || level >= THREAD_MULTIPLE;
	datatypes_init();
}

// Return the key that all ranks of the world share; 0 if there is none.
static uint64_t world_key(uint32_t size, char name[static WORLD_BYTES]) {
	uint64_t key = 0, hash = UINT64_C(0xcbf29ce484222325); // FNV-1a

	if (world_name(name)) {
		for (const char *at = name; *at != '\0'; at++)
			hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
		return (hash ^ hash >> 31) | 1;
	}
	name[0] = '\0';
	// A world of one rank may use any number. glibc 2.17 has no getrandom().
	if (size == 1 && syscall(SYS_getrandom, &key, sizeof(key), 0) == (long)sizeof(key))
		return key | 1;
	return 0;
}

static bool follow_world(void) {
	struct tocsin_job *job = NULL;
	char name[WORLD_BYTES], words[ERROR_BYTES];
	uint32_t size = 0;
	uint64_t key;
	int err;

	detect_mpi_rules();
	if (!comm_find_functions(&size))
		return false;
	if (call_count_libraries() > 1)
		note_once(
			NOTE_TWO_MPIS,
			"two libraries of MPI are loaded; the one that the program calls is "
			"followed"
		);
	key = world_key(size, name);
	if (key == 0) {
		note_once(
			NOTE_WORLD,
			"not followed: the launcher of these ranks gives their MPI_COMM_WORLD no "
			"name; set TOCSIN_MPI_WORLD=NAME on all ranks"
		);
		return false;
	}
	err = tocsin_job_open(NULL, &job);
	if (err != 0) {
		note_once(NOTE_JOB, "not followed: %s", strerror_r(-err, words, sizeof(words)));
		return false;
	}
	comm_follow_world(job, key);
	return true;
}

void follow_begin(void) {
	pthread_mutex_lock(&life_mutex);
	if (atomic_load_explicit(&life, memory_order_relaxed) == LIFE_BEFORE)
		atomic_store_explicit(
			&life, follow_world() ? LIFE_ACTIVE : LIFE_OVER, memory_order_release
		);
	pthread_mutex_unlock(&life_mutex);
}

bool follow_begin_late(void) {
	int (*initialized)(int *), (*finalized)(int *);
	int is_begun_now = 0, is_over = 0;

	if (atomic_load_explicit(&life, memory_order_acquire) == LIFE_OVER)
		return false;
	initialized = (int (*)(int *))call_find_unwrapped("PMPI_Initialized");
	finalized = (int (*)(int *))call_find_unwrapped("PMPI_Finalized");
	if (initialized == NULL || finalized == NULL || initialized(&is_begun_now) != 0 ||
	    finalized(&is_over) != 0 || is_begun_now == 0 || is_over != 0)
		return false;
	follow_begin();
	return follow_is_active();
}

void follow_end(void) {
	pthread_mutex_lock(&life_mutex);
	if (follow_is_active()) {
		comm_mark_all_finalized();
		comm_clear_table();
	}
	atomic_store_explicit(&life, LIFE_OVER, memory_order_release);
	pthread_mutex_unlock(&life_mutex);
}
