// SPDX-License-Identifier: BSD-3-Clause
// Tracks collective operations from launch to completion.
#include "track.h"

#include "handle.h"

#include <string.h>
#include <sys/mman.h>

#define TRACK_OPERATIONS 1024u
#define TRACK_CHANNELS 64u // NCCL's maximum

struct track_operation {
	uint64_t number; // 0: unused entry
	uint32_t group;
	uint16_t proxy_count; // proxy operations that began
	uint16_t proxies_open;
	uint8_t channels, channels_ended;
	// kernel events were on at the launch, and the number of channels is known
	bool has_kernels;
	bool has_begun, is_done;
	uint64_t kernels_begun, kernels_ended; // one bit per channel
	uint64_t proxy_open[2];		       // one bit per proxy operation, in start order
};

struct track {
	struct track_operation operations[TRACK_OPERATIONS];
	uint64_t next; // oldest operation that is not complete
	// first operation with a kernel event since these events are on; 0: none
	uint64_t kernel_seen;
	uint64_t done_last;  // highest sequence number among ended operations
	uint32_t done_group; // group of that operation
	bool network_distrusted;
	// values last set for TOCSIN_MARK_STARTED_FROM and TOCSIN_MARK_COMPLETED_FROM
	uint64_t started_from, completed_from;
};

static struct track *get_or_create_track(struct bridge_comm *comm) {
	struct track *track = comm->track;

	if (track != NULL)
		return track;
	// Use mmap() instead of the heap: untouched pages cost nothing, and most jobs never get
	// here.
	track =
		mmap(NULL, sizeof(*track), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (track == MAP_FAILED)
		return NULL;
	track->next = comm->launched;
	track->started_from = UINT64_MAX; // as bridge_comm_begin() set it
	track->completed_from = UINT64_MAX;
	comm->track = track;
	return track;
}

void track_free(struct track *track) {
	if (track != NULL)
		munmap(track, sizeof(*track));
}

static void set_from_marks(struct bridge_comm *comm, uint64_t started, uint64_t completed) {
	struct track *track = comm->track;

	if (track->started_from != started)
		(void)tocsin_comm_mark(comm->followed, TOCSIN_MARK_STARTED_FROM, started);
	if (track->completed_from != completed)
		(void)tocsin_comm_mark(comm->followed, TOCSIN_MARK_COMPLETED_FROM, completed);
	track->started_from = started;
	track->completed_from = completed;
}

static struct track_operation *operation_find(struct bridge_comm *comm, uint32_t number) {
	struct track_operation *operation;

	if (comm->track == NULL)
		return NULL;
	operation = &comm->track->operations[number % TRACK_OPERATIONS];
	return operation->number != 0 && (operation->number & HANDLE_OPERATION_MASK) == number
		       ? operation
		       : NULL;
}

static void *
make_handle(struct bridge_comm *comm, enum handle_class class, uint64_t number, uint32_t part) {
	struct handle handle = {
		.class = class,
		.comm = comm->index,
		.generation = comm->generation,
		.operation = (uint32_t)number & HANDLE_OPERATION_MASK,
		.part = part,
	};

	return handle_pack(&handle);
}

void *track_launch(
	struct bridge_comm *comm,
	const struct nccl_operation *operation,
	int mask,
	bool mask_changed
) {
	bool kernels = (mask & NCCL_KERNEL_CH) != 0 && operation->channels != 0 &&
		       operation->channels <= TRACK_CHANNELS;
	struct track *track = comm->track;
	struct track_operation *entry;

	// At the level of launches nothing is tracked, so stop reporting starts and completions.
	if ((mask & (NCCL_KERNEL_CH | NCCL_PROXY_OP)) == 0) {
		if (track != NULL) {
			track->kernel_seen = 0;
			set_from_marks(comm, UINT64_MAX, UINT64_MAX);
		}
		return NULL;
	}
	track = get_or_create_track(comm);
	if (track == NULL)
		return NULL;
	if ((mask & NCCL_KERNEL_CH) == 0 || mask_changed)
		track->kernel_seen = 0;
	entry = &track->operations[comm->launched % TRACK_OPERATIONS];
	*entry = (struct track_operation){
		.number = comm->launched,
		.group = atomic_load_explicit(&comm->group, memory_order_relaxed),
		.channels = operation->channels,
		.has_kernels = kernels,
	};
	if (!kernels || track->kernel_seen == 0)
		set_from_marks(comm, UINT64_MAX, UINT64_MAX);
	else if (track->started_from == UINT64_MAX)
		set_from_marks(comm, comm->launched, comm->launched);
	return make_handle(comm, HANDLE_OPERATION, comm->launched, 0);
}

// Return whether no more events of the operation will come, and an operation of a later group has
// ended.
static bool operation_is_past(const struct track *track, const struct track_operation *operation) {
	bool silent = !operation->has_kernels ||
		      (!operation->has_begun &&
		       (track->kernel_seen == 0 || operation->number < track->kernel_seen));

	// Groups are counted modulo 2^32, so compare the signed difference.
	return silent && operation->proxies_open == 0 &&
	       (int32_t)(track->done_group - operation->group) > 0;
}

// Complete an operation and report completions, in order.
static void complete_operation(struct bridge_comm *comm, struct track_operation *operation) {
	struct track *track = comm->track;
	uint64_t oldest =
		comm->launched > TRACK_OPERATIONS ? comm->launched - TRACK_OPERATIONS + 1 : 1;
	uint64_t before = track->next;

	operation->is_done = true;
	if (operation->number > track->done_last) {
		track->done_last = operation->number;
		track->done_group = operation->group;
	}

	if (track->next < oldest)
		// a forgotten operation counts as complete once a later one completes
		track->next = oldest;
	for (; track->next <= comm->launched; track->next++) {
		struct track_operation *next = &track->operations[track->next % TRACK_OPERATIONS];

		// An operation without entry was launched while nothing was tracked.
		if (next->number == track->next ? !next->is_done && !operation_is_past(track, next)
						: track->next > track->done_last)
			break;
	}
	if (track->next == before)
		return;
	tocsin_counter_started_to(comm->counter, track->next - 1);
	tocsin_counter_completed_to(comm->counter, track->next - 1);
}

void *track_kernel_begin(struct bridge_comm *comm, uint32_t number, uint32_t channel) {
	struct track_operation *operation = operation_find(comm, number);
	struct track *track = comm->track;

	if (operation == NULL || channel >= TRACK_CHANNELS || !operation->has_kernels ||
	    (operation->kernels_begun >> channel & 1) != 0)
		return NULL;
	operation->kernels_begun |= UINT64_C(1) << channel;
	if (!operation->has_begun) {
		operation->has_begun = true;
		if (track->kernel_seen == 0)
			track->kernel_seen = operation->number;
		if (track->started_from == UINT64_MAX)
			set_from_marks(comm, operation->number, operation->number);
		tocsin_counter_started_to(comm->counter, operation->number);
	}
	return make_handle(comm, HANDLE_KERNEL, operation->number, channel);
}

void track_kernel_end(struct bridge_comm *comm, uint32_t number, uint32_t channel) {
	struct track_operation *operation = operation_find(comm, number);
	uint64_t bit;

	if (operation == NULL || channel >= TRACK_CHANNELS)
		return;
	bit = UINT64_C(1) << channel;
	if ((operation->kernels_begun & bit) == 0 || (operation->kernels_ended & bit) != 0)
		return;
	operation->kernels_ended |= bit;
	operation->channels_ended++;
	if (operation->channels_ended == operation->channels)
		complete_operation(comm, operation);
}

void *track_proxy_begin(struct bridge_comm *comm, uint32_t number) {
	struct track_operation *operation = operation_find(comm, number);
	struct track *track = comm->track;
	uint32_t part;

	// If kernel events are on, network events are not needed.
	if (operation == NULL || operation->has_kernels || track->network_distrusted)
		return NULL;
	if (operation->is_done || operation->proxy_count == HANDLE_PARTS) {
		// The operation was already reported as complete, or has too many proxy operations
		// to track.
		track_distrust_network(comm);
		return NULL;
	}
	part = operation->proxy_count++;
	operation->proxies_open++;
	operation->proxy_open[part / 64] |= UINT64_C(1) << part % 64;
	if (operation->number == comm->launched)
		set_from_marks(comm, UINT64_MAX, operation->number);
	return make_handle(comm, HANDLE_PROXY, operation->number, part);
}

void track_proxy_end(struct bridge_comm *comm, uint32_t number, uint32_t part) {
	struct track_operation *operation = operation_find(comm, number);
	uint64_t bit = UINT64_C(1) << part % 64;

	if (operation == NULL || (operation->proxy_open[part / 64] & bit) == 0)
		return;
	operation->proxy_open[part / 64] &= ~bit;
	if (--operation->proxies_open == 0 && !comm->track->network_distrusted)
		complete_operation(comm, operation);
}

void track_distrust_network(struct bridge_comm *comm) {
	struct track *track = comm->track;

	if (track == NULL || track->network_distrusted)
		return;
	track->network_distrusted = true;
	if (track->kernel_seen == 0)
		set_from_marks(comm, UINT64_MAX, UINT64_MAX);
}
