// SPDX-License-Identifier: BSD-3-Clause
// Identity of communicators, from MPI_COMM_WORLD on, and the table of followed communicators.
//
// MPI has no name of a communicator on which its ranks agree, so each rank computes the same key. A
// key combines the parent's key, the number of the creating call, and the first rank of the new
// communicator. All ranks of the parent make such calls in the same order. No two communicators of
// one call share their first rank. MPI_Comm_create_group is called only by the ranks of a group, in
// an order of their own. There the key combines the parent's key, the group, and how many
// communicators of that group the parent has. So all ranks compute equal keys without
// communication.
#include "follow.h"
#include "old_symbols.h"

#include <tocsin/job_socket.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIX UINT64_C(0xff51afd7ed558ccd)
#define FOLLOWED_MAX (COMM_PLACES / 2)
// A job of libtocsin has JOB_COMMS_MAX communicators, so more jobs are opened as they fill up.
#define JOBS_MAX (FOLLOWED_MAX / JOB_COMMS_MAX + 1)

struct mpi_rules mpi_rules = {.mask = ~(mpi_word)0};
struct comm_place comm_places[COMM_PLACES];

// Guards everything except what callers read without a lock. That is: keys and pointers of the
// table, and the counters of a communicator.
static pthread_mutex_t comm_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct followed *freed;	   // freed by the program, but still in use by some call or request
_Atomic uint32_t comm_freed_count; // length of the list `freed`
static uint32_t followed_count;

static struct {
	int (*rank)(mpi_word, int *);
	int (*size)(mpi_word, int *);
	int (*test_inter)(mpi_word, int *);
	int (*group)(mpi_word, mpi_word *);
	int (*group_free)(mpi_word *);
	int (*group_size)(mpi_word, int *);
	int (*group_rank)(mpi_word, int *);
	int (*translate)(mpi_word, int, const int *, mpi_word, int *);
	int (*name)(mpi_word, char *, int *);
} ask;
static struct tocsin_job *own_jobs[JOBS_MAX];
static uint32_t own_job_count;

static uint64_t mix_hash(uint64_t a, uint64_t b) {
	uint64_t mixed = (a ^ b) * MIX;

	mixed = (mixed ^ mixed >> 32) * MIX;
	return mixed ^ mixed >> 29;
}

static uint64_t hash_ranks(const int *ranks, int count, int world_size) {
	uint64_t hash = mix_hash((uint64_t)count, 1);

	for (int n = 0; n < count; n++) {
		if (ranks[n] < 0 || ranks[n] >= world_size)
			return 0;
		hash = mix_hash(hash, (uint64_t)ranks[n] + 1);
	}
	return hash | 1;
}

static uint64_t hash_group(mpi_word group, mpi_word world) {
	int count = 0, world_size = 0;
	uint64_t hash = 0;
	int *ranks;

	if (ask.group_size(group, &count) != 0 || ask.group_size(world, &world_size) != 0 ||
	    count <= 0)
		return 0;
	ranks = malloc(2 * (size_t)count * sizeof(*ranks));
	if (ranks == NULL)
		return 0;
	for (int n = 0; n < count; n++)
		ranks[n] = n;
	if (ask.translate(group, count, ranks, world, ranks + count) == 0)
		hash = hash_ranks(ranks + count, count, world_size);
	free(ranks);
	return hash;
}

// MPICH writes an int into the word.
static mpi_word open_comm_group(mpi_word handle) {
	mpi_word group = 0;

	return ask.group(handle, &group) == 0 ? group : 0;
}

// Return the world rank of the communicator's first rank, or -1 if it is in another world. One
// translation costs time proportional to the world, because Open MPI searches the group from its
// beginning.
static int find_leader_rank(mpi_word handle) {
	mpi_word group = open_comm_group(handle), world = open_comm_group(mpi_rules.world);
	const int first = 0;
	int leader = -1;

	if (group == 0 || world == 0 || ask.translate(group, 1, &first, world, &leader) != 0)
		leader = -1;
	if (group != 0)
		ask.group_free(&group);
	if (world != 0)
		ask.group_free(&world);
	return leader;
}

// Return the key for a new communicator. All ranks of the parent make the call, including those
// that get MPI_COMM_NULL.
static uint64_t next_child_key(struct followed *parent, mpi_word handle) {
	int leader = handle != mpi_rules.comm_null ? find_leader_rank(handle) : -1;
	uint64_t number;

	pthread_mutex_lock(&comm_mutex);
	number = ++parent->made;
	pthread_mutex_unlock(&comm_mutex);
	return leader >= 0 ? mix_hash(mix_hash(parent->key, number), (uint64_t)leader + 1) | 1 : 0;
}

uint64_t comm_duplicate_key(struct followed *parent) {
	return next_child_key(parent, parent->handle);
}

static uint64_t group_key(struct followed *parent, mpi_word group, uint64_t tag) {
	mpi_word world = open_comm_group(mpi_rules.world);
	uint64_t hash = world != 0 ? hash_group(group, world) : 0, key = 0;
	struct child *child;

	if (world != 0)
		ask.group_free(&world);
	if (hash == 0)
		return 0;
	hash = mix_hash(hash, tag);
	pthread_mutex_lock(&comm_mutex);
	child = parent->children;
	while (child != NULL && child->group != hash)
		child = child->next;
	if (child == NULL) {
		child = calloc(1, sizeof(*child));
		if (child != NULL) {
			child->group = hash;
			child->next = parent->children;
			parent->children = child;
		}
	}
	if (child != NULL)
		key = mix_hash(mix_hash(parent->key, hash), ++child->count) | 1;
	pthread_mutex_unlock(&comm_mutex);
	return key;
}

static void insert_followed(struct followed *at) {
	uint64_t n = word_hash(at->handle) >> 40;
	struct comm_place *place = &comm_places[n % COMM_PLACES];
	mpi_word key = atomic_load_explicit(&place->key, memory_order_relaxed);

	while (key != 0 && key != COMM_REMOVED) {
		place = &comm_places[++n % COMM_PLACES];
		key = atomic_load_explicit(&place->key, memory_order_relaxed);
	}
	atomic_store_explicit(&place->at, at, memory_order_relaxed);
	// Release, so that a reader that finds the key (comm_find) also finds the pointer.
	atomic_store_explicit(&place->key, at->handle, memory_order_release);
}

static struct comm_place *find_place(mpi_word key) {
	uint64_t n = word_hash(key) >> 40;

	for (uint32_t tries = 0; tries < COMM_PLACES; tries++, n++) {
		struct comm_place *place = &comm_places[n % COMM_PLACES];
		mpi_word found = atomic_load_explicit(&place->key, memory_order_relaxed);

		if (found == key)
			return place;
		if (found == 0)
			break;
	}
	return NULL;
}

// If the next slot is free, no search continues beyond this one. Then this slot and the removed
// slots before it become free again.
static void remove_place(struct comm_place *place) {
	size_t n = (size_t)(place - comm_places);
	const struct comm_place *next = &comm_places[(n + 1) % COMM_PLACES];

	// A search for an invalid handle (0 or COMM_REMOVED) may hit this slot; it finds NULL.
	atomic_store_explicit(&place->at, NULL, memory_order_relaxed);
	atomic_store_explicit(&place->key, COMM_REMOVED, memory_order_release);
	if (atomic_load_explicit(&next->key, memory_order_relaxed) != 0)
		return;
	while (atomic_load_explicit(&comm_places[n].key, memory_order_relaxed) == COMM_REMOVED) {
		atomic_store_explicit(&comm_places[n].key, 0, memory_order_release);
		n = (n + COMM_PLACES - 1) % COMM_PLACES;
	}
}

static void destroy_unused_locked(void) {
	struct followed **at = &freed;

	while (*at != NULL) {
		struct followed *one = *at;

		// Acquire pairs with comm_release(): the counts of the last user are visible.
		// `requests` and comm_freed_count are sequentially consistent: see release_comm()
		// in request.c.
		if (atomic_load_explicit(&one->users, memory_order_acquire) != 0 ||
		    atomic_load_explicit(&one->requests, memory_order_seq_cst) != 0) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		atomic_fetch_sub_explicit(&comm_freed_count, 1, memory_order_relaxed);
		tocsin_comm_unregister(one->comm);
		while (one->children != NULL) {
			struct child *child = one->children;

			one->children = child->next;
			free(child);
		}
		free(one->window);
		free(one);
	}
}

static void retire_comm_locked(mpi_word key) {
	struct comm_place *place = find_place(key);
	struct followed *at;

	if (place == NULL)
		return;
	at = atomic_load_explicit(&place->at, memory_order_relaxed);
	remove_place(place);
	followed_count--;
	at->next = freed;
	freed = at;
	atomic_fetch_add_explicit(&comm_freed_count, 1, memory_order_seq_cst);
}

static struct followed *find_followed(mpi_word key) {
	const struct comm_place *place = find_place(key);

	return place != NULL ? atomic_load_explicit(&place->at, memory_order_relaxed) : NULL;
}

struct followed *comm_free_begin(mpi_word handle) {
	struct followed *at;

	pthread_mutex_lock(&comm_mutex);
	at = find_followed(handle & mpi_rules.mask);
	if (at != NULL)
		atomic_fetch_add_explicit(&at->users, 1, memory_order_relaxed);
	pthread_mutex_unlock(&comm_mutex);
	return at;
}

void comm_free_end(struct followed *at, int err) {
	pthread_mutex_lock(&comm_mutex);
	if (err == 0 && find_followed(at->handle) == at)
		retire_comm_locked(at->handle);
	atomic_fetch_sub_explicit(&at->users, 1, memory_order_release);
	destroy_unused_locked();
	pthread_mutex_unlock(&comm_mutex);
}

void comm_sweep(void) {
	pthread_mutex_lock(&comm_mutex);
	destroy_unused_locked();
	pthread_mutex_unlock(&comm_mutex);
}

// Register the communicator in the first job that has room, or open another job.
static int register_in_jobs(const struct tocsin_comm_config *config, struct followed *at) {
	int err = -ENOSPC;

	for (uint32_t n = 0; err == -ENOSPC && n < JOBS_MAX; n++) {
		if (n == own_job_count) {
			err = tocsin_job_open(NULL, &own_jobs[n]);
			if (err != 0)
				return err;
			own_job_count++;
		}
		err = tocsin_comm_register(own_jobs[n], config, &at->comm);
		if (err == 0)
			err = tocsin_comm_counter(at->comm, &at->own);
		if (err != 0) {
			tocsin_comm_unregister(at->comm);
			at->comm = NULL;
		}
	}
	return err;
}

static void register_followed(struct followed *at, const char *name) {
	struct tocsin_comm_config config;
	char text[32] = "", words[96];
	int err;

	tocsin_comm_config_init(&config);
	config.comm_hash = at->key;
	config.size = at->size;
	config.rank = at->rank;
	// With several calling threads, a thread inside an operation does not hold the others.
	config.flags = mpi_rules.is_threaded ? 0 : TOCSIN_COMM_BLOCKS;
	memcpy(text, name, strnlen(name, sizeof(text) - 1));
	config.name = text;
	err = register_in_jobs(&config, at);
	if (err != 0)
		note_once(
			NOTE_MANY, "further communicators of this process are not followed: %s",
			strerror_r(-err, words, sizeof(words))
		);
}

static struct followed *create_followed(uint64_t key, int size, int rank, const char *name) {
	struct followed *at;

	if (followed_count == FOLLOWED_MAX) {
		note_once(
			NOTE_MANY,
			"this process has more than %u communicators; further ones are not "
			"followed",
			FOLLOWED_MAX
		);
		return NULL;
	}
	at = size > 0 && rank >= 0 ? calloc(1, sizeof(*at)) : NULL;
	if (at == NULL)
		return NULL;
	at->key = key;
	at->size = (uint32_t)size;
	at->rank = (uint32_t)rank;
	register_followed(at, name);
	return at;
}

static void add_followed_locked(struct followed *at, mpi_word handle) {
	// the end of the handle's previous communicator was not seen
	retire_comm_locked(handle & mpi_rules.mask);
	destroy_unused_locked();
	at->handle = handle & mpi_rules.mask;
	insert_followed(at);
	followed_count++;
}

static struct followed *follow_handle_locked(uint64_t key, mpi_word handle, const char *name) {
	struct followed *at;
	int size = 0, rank = 0;

	if (ask.size(handle, &size) != 0 || ask.rank(handle, &rank) != 0)
		return NULL;
	at = create_followed(key, size, rank, name);
	if (at != NULL)
		add_followed_locked(at, handle);
	return at;
}

void comm_add_followed(uint64_t key, mpi_word handle) {
	char name[512] = ""; // larger than MPI_MAX_OBJECT_NAME of either MPI
	int length = 0;

	if (ask.name == NULL || ask.name(handle, name, &length) != 0 || name[0] == '\0')
		snprintf(name, sizeof(name), "communicator");
	pthread_mutex_lock(&comm_mutex);
	(void)follow_handle_locked(key, handle, name);
	pthread_mutex_unlock(&comm_mutex);
}

mpi_word comm_load_handle(mpi_word where) {
	// NOLINTBEGIN(performance-no-int-to-ptr): the address comes from the program
	if (mpi_rules.ints)
		return *(const uint32_t *)where;
	return *(const mpi_word *)where;
	// NOLINTEND(performance-no-int-to-ptr)
}

static void follow_new_comm(mpi_word handle, uint64_t key) {
	int is_inter = 0;

	if (handle == mpi_rules.comm_null)
		return;
	if (ask.test_inter(handle, &is_inter) != 0 || is_inter != 0)
		note_once(NOTE_INTER, "intercommunicators are not followed");
	else if (key != 0)
		comm_add_followed(key, handle);
	else
		note_once(
			NOTE_OTHER_WORLD,
			"communicators with ranks of several worlds are not followed"
		);
}

void comm_made(struct followed *parent, int err, mpi_word where) {
	mpi_word handle;

	if (err != 0 || where == 0)
		return;
	handle = comm_load_handle(where);
	follow_new_comm(handle, next_child_key(parent, handle));
}

struct followed *comm_group_begin(struct followed *parent, mpi_word group, uint64_t tag) {
	uint64_t key = group_key(parent, group, tag);
	int size = 0, rank = -1;
	struct followed *at = NULL;

	if (key == 0 || ask.group_size(group, &size) != 0 || ask.group_rank(group, &rank) != 0)
		return NULL;
	pthread_mutex_lock(&comm_mutex);
	at = create_followed(key, size, rank, "communicator");
	pthread_mutex_unlock(&comm_mutex);
	if (at != NULL && at->comm != NULL)
		(void
		)collective_enter(at, TOCSIN_OTHER, signature_of_call(JOB_CALL_COMM_CREATE_GROUP));
	return at;
}

void comm_group_end(struct followed *at, int err, mpi_word where) {
	mpi_word handle = err == 0 && where != 0 ? comm_load_handle(where) : mpi_rules.comm_null;

	if (at == NULL)
		return;
	if (at->comm != NULL)
		collective_leave(at, TOCSIN_OTHER, 0);
	pthread_mutex_lock(&comm_mutex);
	if (handle != mpi_rules.comm_null) {
		add_followed_locked(at, handle);
	} else {
		tocsin_comm_unregister(at->comm);
		free(at);
	}
	pthread_mutex_unlock(&comm_mutex);
}

struct followed *comm_find_slow(mpi_word handle) {
	const struct followed *world;
	struct followed *at;
	mpi_word key;

	if (!follow_is_active() && !follow_begin_late())
		return NULL;
	// mask again: the rules may have been detected by follow_begin_late() just now
	key = handle & mpi_rules.mask;
	if (key == mpi_rules.self) {
		// Operations on MPI_COMM_SELF involve no other rank, but show that this rank makes
		// progress.
		pthread_mutex_lock(&comm_mutex);
		world = find_followed(mpi_rules.world);
		at = find_followed(mpi_rules.self);
		if (at == NULL && world != NULL)
			at = follow_handle_locked(
				mix_hash(mix_hash(world->key, 2), world->rank) | 1, mpi_rules.self,
				"MPI_COMM_SELF"
			);
		pthread_mutex_unlock(&comm_mutex);
		return at;
	}
	if (key != mpi_rules.comm_null && key != mpi_rules.world)
		note_once(
			NOTE_PARENT,
			"a communicator is not followed: its creation was not seen, or it has "
			"ranks of several worlds"
		);
	return key == mpi_rules.world ? find_followed(key) : NULL;
}

bool comm_find_functions(uint32_t *ret_size) {
	int size = 0;

	ask.rank = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Comm_rank");
	ask.size = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Comm_size");
	ask.test_inter = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Comm_test_inter");
	ask.group = (int (*)(mpi_word, mpi_word *))call_find_unwrapped("PMPI_Comm_group");
	ask.group_free = (int (*)(mpi_word *))call_find_unwrapped("PMPI_Group_free");
	ask.group_size = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Group_size");
	ask.group_rank = (int (*)(mpi_word, int *))call_find_unwrapped("PMPI_Group_rank");
	ask.translate = (int (*)(mpi_word, int, const int *, mpi_word, int *)
	)call_find_unwrapped("PMPI_Group_translate_ranks");
	ask.name = (int (*)(mpi_word, char *, int *))call_find_unwrapped("PMPI_Comm_get_name");
	if (ask.rank == NULL || ask.size == NULL || ask.test_inter == NULL || ask.group == NULL ||
	    ask.group_free == NULL || ask.group_size == NULL || ask.group_rank == NULL ||
	    ask.translate == NULL)
		return false;
	if (ask.size(mpi_rules.world, &size) != 0 || size <= 0)
		return false;
	*ret_size = (uint32_t)size;
	return true;
}

void comm_follow_world(struct tocsin_job *job, uint64_t key) {
	own_jobs[0] = job;
	own_job_count = 1;
	comm_add_followed(key, mpi_rules.world);
}

static void mark_all_locked(enum tocsin_mark mark, uint64_t value) {
	for (uint32_t n = 0; n < COMM_PLACES; n++) {
		mpi_word key = atomic_load_explicit(&comm_places[n].key, memory_order_relaxed);
		struct followed *at =
			atomic_load_explicit(&comm_places[n].at, memory_order_relaxed);

		if (key != 0 && key != COMM_REMOVED && at->comm != NULL)
			(void)tocsin_comm_mark(at->comm, mark, value);
	}
}

void comm_mark_all_finalized(void) {
	pthread_mutex_lock(&comm_mutex);
	mark_all_locked(TOCSIN_MARK_FINALIZED, 1);
	pthread_mutex_unlock(&comm_mutex);
}

void comm_mark_all_aborted_if_unlocked(int code) {
	if (pthread_mutex_trylock(&comm_mutex) != 0)
		return;
	mark_all_locked(TOCSIN_MARK_ABORTED, tocsin_abort_value(code));
	pthread_mutex_unlock(&comm_mutex);
}

// The communicators stay registered with their counts until the process ends.
void comm_clear_table(void) {
	for (uint32_t n = 0; n < COMM_PLACES; n++)
		atomic_store_explicit(&comm_places[n].key, 0, memory_order_release);
}
