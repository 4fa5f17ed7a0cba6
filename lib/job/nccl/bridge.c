// SPDX-License-Identifier: BSD-3-Clause
// Life cycle of the plugin in a process: init and finalize of communicators, and polling of the
// agent.
#include "bridge.h"

#include "mapped.h"
#include "track.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS UINT64_C(100000000) // target interval of polls while operations are launched
#define REGISTRATION_TRIES 50u	    // attempts of one millisecond each
#define STRIDE_MAX 4096u
#define SAMPLE_PERIOD_S 60
#define ERROR_BYTES 96
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct bridge bridge;
struct bridge_process bridge_process;
static struct bridge_comm comms[BRIDGE_COMMS_MAX];

static void acquire_bridge_lock(void) {
	while (!bridge_lock_try(&bridge.lock))
		sched_yield(); // the holder may be in a system call, so do not spin
}

static uint64_t clock_ns(clockid_t clock) {
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

const char *bridge_environment_value(const char *name) {
	const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): as NCCL itself does

	return value != NULL && value[0] != '\0' ? value : NULL;
}

void bridge_log_once(enum bridge_logged said, const char *format, ...) {
	char text[256];
	va_list args;

	if ((bridge.said & said) != 0 || bridge.logger == NULL)
		return;
	bridge.said |= said;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	bridge.logger(NCCL_LOG_INFO, NCCL_LOG_PROFILE, "tocsin", 0, "Tocsin: %s", text);
}

struct bridge_comm *bridge_comm_find(void *context) {
	uintptr_t offset = (uintptr_t)context - (uintptr_t)comms;
	struct bridge_comm *comm;

	// NCCL may pass anything: NULL, a freed slot, or a context of the parent process.
	if (offset >= sizeof(comms) || offset % sizeof(comms[0]) != 0 || !bridge_is_own_process())
		return NULL;
	comm = &comms[offset / sizeof(comms[0])];
	return atomic_load_explicit(&comm->alive, memory_order_acquire) ? comm : NULL;
}

struct bridge_comm *bridge_comm_lock(void *context) {
	struct bridge_comm *comm = bridge_comm_find(context);

	if (comm == NULL)
		return NULL;
	bridge_lock_acquire(&comm->lock);
	if (atomic_load_explicit(&comm->alive, memory_order_relaxed))
		return comm;
	bridge_lock_release(&comm->lock);
	return NULL;
}

void *bridge_context_find(uint32_t index, uint32_t generation) {
	return index < BRIDGE_COMMS_MAX && comms[index].generation == generation ? &comms[index]
										 : NULL;
}

static void update_nccl_mask(void) {
	int *mask = atomic_load_explicit(&bridge.mask, memory_order_relaxed);
	int wanted =
		bridge_level_mask(bridge.level, bridge.version, bridge.is_sampling) | mapped_mask();

	if (mask == NULL || wanted == bridge.mask_written)
		return;
	bridge.mask_written = wanted;
	// Raise the epoch before the mask: a launch that sees the new mask also sees the new epoch.
	if (__atomic_load_n(mask, __ATOMIC_RELAXED) != wanted)
		atomic_fetch_add_explicit(&bridge.mask_epoch, 1, memory_order_relaxed);
	__atomic_store_n(mask, wanted, __ATOMIC_RELEASE);
}

static void sampling_update(void) {
	// Use wall-clock time, so that all ranks sample the same operations.
	uint64_t second = clock_ns(CLOCK_REALTIME_COARSE) / UINT64_C(1000000000);

	bridge.is_sampling = second % SAMPLE_PERIOD_S == 0;
}

static void level_update(void) {
	if (bridge.job != NULL)
		bridge.level =
			bridge_level_effective(bridge.own_level, tocsin_job_level(bridge.job));
}

void bridge_poll(void) {
	uint64_t now_ns, elapsed_ns;
	uint32_t stride;
	int *mask;

	if (!bridge_lock_try(&bridge.lock))
		return;
	now_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
	elapsed_ns = now_ns - bridge.polled_ns;
	bridge.polled_ns = now_ns;
	// Adapt the number of launches between two polls to their interval.
	stride = atomic_load_explicit(&bridge.stride, memory_order_relaxed);
	if (elapsed_ns < POLL_NS / 2 && stride < STRIDE_MAX)
		stride *= 2;
	else if (elapsed_ns > POLL_NS * 16)
		stride = 1;
	else if (elapsed_ns > POLL_NS * 2 && stride > 1)
		stride /= 2;
	atomic_store_explicit(&bridge.stride, stride, memory_order_relaxed);
	if (!bridge.forgets && getpid() != bridge.pid)
		atomic_store_explicit(&bridge_process.yes, false, memory_order_relaxed);
	mask = atomic_load_explicit(&bridge.mask, memory_order_relaxed);
	if (bridge_is_own_process() && mask != NULL) {
		if (__atomic_load_n(mask, __ATOMIC_RELAXED) != bridge.mask_written)
			bridge_log_once(
				BRIDGE_LOGGED_MASK,
				"another program changed NCCL's event mask; only the remaining "
				"events are used"
			);
		level_update();
		sampling_update();
		update_nccl_mask();
		if (bridge.job != NULL)
			(void)tocsin_job_poll(bridge.job);
	}
	bridge_lock_release(&bridge.lock);
}

// A child of fork() has only the calling thread, so locks held by other threads must be released.
static void release_locks_in_child(void) {
	atomic_store_explicit(&bridge_process.yes, false, memory_order_relaxed);
	bridge_lock_release(&bridge.lock);
	for (uint32_t n = 0; n < BRIDGE_COMMS_MAX; n++)
		bridge_lock_release(&comms[n].lock);
}

// Set up the process at its first communicator, or at the first one in a fork() child.
static void process_begin(int version, nccl_logger *logger) {
	struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.flags = TOCSIN_JOB_NO_THREAD,
	};
	static bool hears_forks;
	const char *level = bridge_environment_value("TOCSIN_NCCL_LEVEL");
	char words[ERROR_BYTES];
	bool is_wrong;
	int err;

	if (!hears_forks)
		hears_forks = pthread_atfork(NULL, NULL, release_locks_in_child) == 0;
	if (bridge.job != NULL) { // the child's copy of the job; the parent keeps its own
		tocsin_job_close(bridge.job);
		bridge.job = NULL;
		for (uint32_t n = 0; n < BRIDGE_COMMS_MAX; n++)
			atomic_store_explicit(&comms[n].alive, false, memory_order_relaxed);
		mapped_reset_in_child();
	}
	bridge.comm_count = 0;
	bridge.logger = logger;
	bridge.version = version;
	bridge.said = 0;
	bridge.pid = getpid();
	bridge.forgets = madvise(&bridge_process, sizeof(bridge_process), MADV_WIPEONFORK) == 0;
	atomic_store_explicit(&bridge.stride, 1, memory_order_relaxed);
	bridge.mask_written = 0;
	bridge.own_level = bridge_level_parse(level, &is_wrong);
	bridge.level = bridge.own_level;
	if (is_wrong)
		bridge_log_once(
			BRIDGE_LOGGED_LEVEL,
			"TOCSIN_NCCL_LEVEL=%.32s is not a level; use off, launches, network, "
			"sampled, kernels or kernels-always",
			level
		);
	if (bridge.own_level != BRIDGE_OFF) {
		err = tocsin_job_open(&config, &bridge.job);
		if (err != 0)
			bridge_log_once(
				BRIDGE_LOGGED_FOLLOW, "operations are not counted: %s",
				strerror_r(-err, words, sizeof(words))
			);
	}
	mapped_open(version);
	atomic_store_explicit(&bridge_process.yes, true, memory_order_relaxed);
}

static void process_end(void) {
	atomic_store_explicit(&bridge.mask, NULL, memory_order_relaxed);
	atomic_store_explicit(&bridge_process.yes, false, memory_order_relaxed);
	mapped_close();
	tocsin_job_close(bridge.job);
	bridge.job = NULL;
}

// The caller holds bridge.lock or comm->lock, so finalize cannot run.
static void register_comm(struct bridge_comm *comm) {
	struct tocsin_comm_config config;
	char words[ERROR_BYTES];
	int err;

	if (bridge.job == NULL || comm->hash == 0)
		return;
	if (comm->size <= 0 || comm->rank < 0) {
		bridge_log_once(
			BRIDGE_LOGGED_SIZE, "NCCL before 2.27 does not report how many ranks a "
					    "communicator has; set TOCSIN_NCCL_RANKS"
		);
		return;
	}
	tocsin_comm_config_init(&config);
	config.comm_hash = comm->hash;
	config.size = (uint32_t)comm->size;
	config.rank = (uint32_t)comm->rank;
	config.name = comm->name[0] != '\0' ? comm->name : NULL;
	err = tocsin_comm_register(bridge.job, &config, &comm->followed);
	if (err == 0)
		err = tocsin_comm_counter(comm->followed, &comm->counter);
	if (err != 0) {
		tocsin_comm_unregister(comm->followed);
		comm->followed = NULL;
		comm->counter = NULL;
		bridge_log_once(
			BRIDGE_LOGGED_MANY, "a communicator is not followed: %s",
			strerror_r(-err, words, sizeof(words))
		);
		return;
	}
	// Nothing is reported until the first event that shows a start or an end.
	(void)tocsin_comm_mark(comm->followed, TOCSIN_MARK_STARTED_FROM, UINT64_MAX);
	(void)tocsin_comm_mark(comm->followed, TOCSIN_MARK_COMPLETED_FROM, UINT64_MAX);
}

// Copy the name, because the caller may free NCCL's memory; truncated to what the agent shows.
static void copy_comm_name(char name[static BRIDGE_NAME_BYTES], const char *text) {
	size_t length = text != NULL ? strnlen(text, BRIDGE_NAME_BYTES - 1) : 0;

	memset(name, 0, BRIDGE_NAME_BYTES);
	if (length > 0)
		memcpy(name, text, length);
}

static int32_t ranks_from_environment(void) {
	const char *text = bridge_environment_value("TOCSIN_NCCL_RANKS");
	int32_t ranks = 0;

	for (; text != NULL && *text >= '0' && *text <= '9' && ranks < 1 << 20; text++)
		ranks = ranks * 10 + (*text - '0');
	return text != NULL && *text == '\0' && ranks <= 1 << 20 ? ranks : 0;
}

static void
init_comm(struct bridge_comm *comm, int version, const struct bridge_identity *identity) {
	// Take the slot's lock: a late callback of its previous communicator may be reading it.
	bridge_lock_acquire(&comm->lock);
	comm->version = (uint8_t)version;
	comm->generation++;
	comm->hash = identity->hash;
	comm->size = identity->size > 0 ? identity->size : ranks_from_environment();
	comm->rank = identity->rank;
	copy_comm_name(comm->name, identity->name);
	comm->next_context = NULL;
	comm->followed = NULL;
	comm->counter = NULL;
	comm->memo = (struct operation_memo){0};
	comm->launched = 0;
	comm->graph_launched = 0;
	memset(comm->sequence_seen, 0, sizeof(comm->sequence_seen));
	atomic_store_explicit(&comm->group, 0, memory_order_relaxed);
	comm->countdown = 1;
	comm->track = NULL;
	comm->mask_epoch = 0;
	bridge_lock_release(&comm->lock);
}

// Wait until the agent has registered the communicator, at most REGISTRATION_TRIES ms. A job may
// hang in its first operation, and then no launch polls any more. Without an agent the first
// attempt returns.
static void wait_for_registration(struct tocsin_comm *followed) {
	const struct timespec pause = {.tv_nsec = 1000000};
	char reason[ERROR_BYTES] = "";

	for (uint32_t try = 0; try < REGISTRATION_TRIES; try++) {
		(void)tocsin_job_poll(bridge.job);
		if (followed == NULL || tocsin_comm_state(followed, NULL, 0) != TOCSIN_JOB_ALONE)
			return;
		(void)tocsin_job_state(bridge.job, reason, sizeof(reason));
		if (reason[0] != '\0')
			return;
		nanosleep(&pause, NULL);
	}
}

void bridge_comm_begin(
	int version, void **ret_context, int *mask, const struct bridge_identity *identity
) {
	struct bridge_comm *comm = NULL;

	*ret_context = NULL;
	acquire_bridge_lock();
	if (bridge.comm_count == 0 || !bridge_is_own_process() || bridge.pid != getpid())
		process_begin(version, identity->logger);
	if (bridge.own_level != BRIDGE_OFF || mapped_mask() != 0) {
		for (uint32_t n = 0; n < BRIDGE_COMMS_MAX && comm == NULL; n++)
			if (!atomic_load_explicit(&comms[n].alive, memory_order_relaxed)) {
				comm = &comms[n];
				comm->index = (uint16_t)n;
			}
		if (comm == NULL)
			bridge_log_once(
				BRIDGE_LOGGED_MANY,
				"more than %u communicators at a time; further ones are not "
				"followed",
				BRIDGE_COMMS_MAX
			);
	}
	if (comm != NULL) {
		init_comm(comm, version, identity);
		register_comm(comm);
		bridge.comm_count++;
		mapped_comm_begin(comm, identity);
		atomic_store_explicit(&comm->alive, true, memory_order_release);
		*ret_context = comm;
	} else if (bridge.comm_count == 0) {
		process_end();
	}
	if (bridge.job != NULL)
		wait_for_registration(comm != NULL ? comm->followed : NULL);
	level_update(); // the agent's request is known now and applies from the first launch on
	bridge.mask_written = -1; // NCCL may pass a new mask, which may hold any value
	atomic_store_explicit(&bridge.mask, mask, memory_order_release);
	sampling_update();
	update_nccl_mask();
	if (bridge.comm_count == 0)
		atomic_store_explicit(&bridge.mask, NULL, memory_order_relaxed);
	bridge_lock_release(&bridge.lock);
}

void bridge_comm_identify(struct bridge_comm *comm, const struct nccl_descriptor *descriptor) {
	bool is_p2p = descriptor_type(comm->version, descriptor) == NCCL_P2P;

	// versions 1 to 3 have these fields at the same offsets
	comm->hash = is_p2p ? descriptor->p2p_1.comm_hash : descriptor->coll_1.comm_hash;
	comm->rank = descriptor->rank;
	copy_comm_name(
		comm->name, is_p2p ? descriptor->p2p_1.comm_name : descriptor->coll_1.comm_name
	);
	register_comm(comm);
}

void bridge_comm_end(void *context) {
	struct bridge_comm *comm;
	struct tocsin_comm *followed;

	acquire_bridge_lock();
	comm = bridge_comm_lock(context);
	if (comm != NULL) {
		atomic_store_explicit(&comm->alive, false, memory_order_release);
		followed = comm->followed;
		comm->followed = NULL;
		comm->counter = NULL;
		track_free(comm->track);
		comm->track = NULL;
		bridge_lock_release(&comm->lock);
		mapped_comm_end(comm);
		if (followed != NULL)
			(void)tocsin_comm_mark(followed, TOCSIN_MARK_FINALIZED, 1);
		tocsin_comm_unregister(followed);
		if (--bridge.comm_count == 0)
			process_end();
	}
	bridge_lock_release(&bridge.lock);
}
