// SPDX-License-Identifier: BSD-3-Clause
// libnccl-profiler-tocsin.so: the functions that NCCL calls, in each version of its profiler
// interface.
//
// Every callback returns 0, whatever happens, so that the job continues even if it is not counted.
// These operations make up the sequence by which ranks are compared:
//
// - Collective calls outside graphs, each once, in launch order.
//
// - Operations of a CUDA graph are counted apart. On ranks whose proxy has work, NCCL reports them
// at each replay; on other ranks once, at the capture. From version 5 on the API event shows that
// an operation is captured. Before version 5, NCCL's own number is repeated at each replay; a
// communicator with repeated numbers is no longer followed.
#include "bridge.h"
#include "handle.h"
#include "mapped.h"
#include "track.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))

static bool parent_is_graph(const void *parent) {
	struct handle handle;

	return handle_unpack(parent, &handle) && handle.class == HANDLE_GRAPH;
}

static void *graph_handle(bool is_captured) {
	static const struct handle handle = {.class = HANDLE_GRAPH};

	return is_captured ? handle_pack(&handle) : NULL;
}

// Versions 1 to 4: check that the number is not repeated; if it is, stop following the
// communicator. The caller holds comm->lock.
static bool sequence_is_new(struct bridge_comm *comm, uint8_t kind, uint64_t number) {
	if (comm->sequence_seen[kind] != number + 1) {
		comm->sequence_seen[kind] = number + 1;
		return true;
	}
	if (comm->followed != NULL) {
		tocsin_comm_unregister(comm->followed);
		comm->followed = NULL;
		comm->counter = NULL;
		track_free(comm->track); // pending events may still end
		comm->track = NULL;
		bridge_log_once(
			BRIDGE_LOGGED_GRAPHS,
			"a communicator with CUDA graphs is not followed: NCCL before 2.28 does "
			"not say which operations are theirs"
		);
	}
	return false;
}

// Count an operation; the caller holds comm->lock. Returns whether a poll of agent and mask is due.
static bool count_operation(
	struct bridge_comm *comm, const struct nccl_operation *operation, void **ret_handle
) {
	int *mask = atomic_load_explicit(&bridge.mask, memory_order_acquire);
	uint32_t epoch = atomic_load_explicit(&bridge.mask_epoch, memory_order_relaxed);
	int now = mask != NULL ? __atomic_load_n(mask, __ATOMIC_RELAXED) : 0;

	tocsin_counter_launched(
		comm->counter, operation->kind, operation->count, operation->datatype,
		operation->root
	);
	if (operation_is_collective(operation)) {
		comm->launched++;
		if ((now & (NCCL_KERNEL_CH | NCCL_PROXY_OP)) != 0 || comm->track != NULL)
			*ret_handle = track_launch(comm, operation, now, epoch != comm->mask_epoch);
		comm->mask_epoch = epoch;
	}
	if (--comm->countdown != 0)
		return false;
	comm->countdown = atomic_load_explicit(&bridge.stride, memory_order_relaxed);
	return true;
}

static ALWAYS_INLINE void launch_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
) {
	struct bridge_comm *comm = bridge_comm_lock(context);
	uint32_t type = descriptor_type(version, descriptor);
	struct nccl_operation operation;
	bool poll_is_due = false;

	if (comm == NULL)
		return;
	if (version <= 3 && comm->hash == 0)
		bridge_comm_identify(comm, descriptor);
	if (comm->counter == NULL) {
	} else if (version >= 5 && parent_is_graph(descriptor->parent)) {
		comm->graph_launched++;
	} else {
		if (type == NCCL_COLL)
			operation = operation_of_coll(version, descriptor, &comm->memo);
		else if (type == NCCL_P2P)
			operation = operation_of_p2p(version, descriptor, &comm->memo);
		else
			operation = operation_of_ce(descriptor, &comm->memo);
		if (version >= 5 || type != NCCL_COLL ||
		    sequence_is_new(
			    comm, operation.kind,
			    version == 4 ? descriptor->coll_4.sequence : descriptor->coll_1.sequence
		    ))
			poll_is_due = count_operation(comm, &operation, ret_handle);
	}
	bridge_lock_release(&comm->lock);
	if (poll_is_due)
		bridge_poll();
}

// Handle an event below an operation; the parent handle identifies the operation.
static void child_start(
	uint32_t type, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
) {
	struct bridge_comm *comm;
	struct handle parent;
	// Under PXN the operation, and so its handle, belong to another process.
	bool is_foreign = type == NCCL_PROXY_OP && descriptor->proxy_op.pid != bridge.pid;

	if (!is_foreign &&
	    (!handle_unpack(descriptor->parent, &parent) || parent.class != HANDLE_OPERATION))
		return;
	if (!is_foreign)
		context = bridge_context_find(parent.comm, parent.generation);
	comm = bridge_comm_lock(context);
	if (comm == NULL)
		return;
	if (is_foreign)
		track_distrust_network(comm);
	else if (type == NCCL_KERNEL_CH)
		*ret_handle =
			track_kernel_begin(comm, parent.operation, descriptor->kernel_ch.channel);
	else
		*ret_handle = track_proxy_begin(comm, parent.operation);
	bridge_lock_release(&comm->lock);
}

static void group_start(void *context) {
	struct bridge_comm *comm = bridge_comm_find(context);

	if (comm != NULL)
		atomic_store_explicit(
			&comm->group, atomic_load_explicit(&comm->group, memory_order_relaxed) + 1,
			memory_order_relaxed
		);
}

static ALWAYS_INLINE int start_inline(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
) {
	uint32_t type = descriptor_type(version, descriptor);

	*ret_handle = NULL;
	switch (type) {
	case NCCL_COLL:
	case NCCL_P2P:
		launch_start(version, context, ret_handle, descriptor);
		break;
	case NCCL_CE_COLL:
		if (version >= 6)
			launch_start(version, context, ret_handle, descriptor);
		break;
	case NCCL_GROUP:
		group_start(context);
		break;
	case NCCL_KERNEL_CH:
	case NCCL_PROXY_OP:
		child_start(type, context, ret_handle, descriptor);
		break;
	case NCCL_COLL_API:
		*ret_handle = graph_handle(descriptor->coll_api.graph_captured);
		break;
	case NCCL_P2P_API:
		*ret_handle = graph_handle(descriptor->p2p_api.graph_captured);
		break;
	default:
		break;
	}
	return 0;
}

int event_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
) {
	return start_inline(version, context, ret_handle, descriptor);
}

int event_stop(void *raw) {
	struct bridge_comm *comm;
	struct handle handle;

	// The stop of an operation only means that it is enqueued; its start already implies that.
	if (!handle_unpack(raw, &handle) ||
	    (handle.class != HANDLE_KERNEL && handle.class != HANDLE_PROXY))
		return 0;
	comm = bridge_comm_lock(bridge_context_find(handle.comm, handle.generation));
	if (comm == NULL)
		return 0;
	if (handle.class == HANDLE_KERNEL)
		track_kernel_end(comm, handle.operation, handle.part);
	else
		track_proxy_end(comm, handle.operation, handle.part);
	bridge_lock_release(&comm->lock);
	return 0;
}

static bool is_mapped(void) {
	return atomic_load_explicit(&bridge.is_mapped, memory_order_relaxed);
}

static int plugin_stop(void *handle) {
	return is_mapped() ? mapped_stop(handle) : event_stop(handle);
}

int (*bridge_own_stop(void))(void *handle) {
	return plugin_stop;
}

static int plugin_state(void *handle, int state, const union nccl_state_arguments *arguments) {
	return is_mapped() ? mapped_state(handle, state, arguments) : 0;
}

static int plugin_finalize(void *context) {
	bridge_comm_end(context);
	return 0;
}

static ALWAYS_INLINE int init_old(int version, void **context, int *mask) {
	struct bridge_identity identity = {.rank = -1};

	bridge_comm_begin(version, context, mask, &identity);
	return 0;
}

// The parameters are defined by NCCL.
// NOLINTBEGIN(readability-function-size)
static int
init_4(void **context,
       int *mask,
       const char *comm_name,
       uint64_t comm_hash,
       int nodes,
       int ranks,
       int rank,
       nccl_logger *logger) {
	struct bridge_identity identity = {
		.name = comm_name,
		.hash = comm_hash,
		.nodes = nodes,
		.size = ranks,
		.rank = rank,
		.logger = logger,
	};

	bridge_comm_begin(4, context, mask, &identity);
	return 0;
}

static ALWAYS_INLINE int
init_new(int version, void **context, int *mask, const struct bridge_identity *identity) {
	bridge_comm_begin(version, context, mask, identity);
	return 0;
}

#define INIT_OLD(n)                                      \
	static int init_##n(void **context, int *mask) { \
		return init_old(n, context, mask);       \
	}
#define INIT_NEW(n)                                                                              \
	static int init_##n(                                                                     \
		void **context, uint64_t comm_hash, int *mask, const char *comm_name, int nodes, \
		int ranks, int rank, nccl_logger *logger                                         \
	) {                                                                                      \
		struct bridge_identity identity = {                                              \
			.name = comm_name,                                                       \
			.hash = comm_hash,                                                       \
			.nodes = nodes,                                                          \
			.size = ranks,                                                           \
			.rank = rank,                                                            \
			.logger = logger,                                                        \
		};                                                                               \
                                                                                                 \
		return init_new(n, context, mask, &identity);                                    \
	}
#define START(n)                                                                       \
	static int start_##n(                                                          \
		void *context, void **handle, const struct nccl_descriptor *descriptor \
	) {                                                                            \
		return is_mapped() ? mapped_start(n, context, handle, descriptor)      \
				   : start_inline(n, context, handle, descriptor);     \
	}
// NCCL looks this object up by name and never writes to it.
#define PROFILER(n, member)                                         \
	extern const struct nccl_profiler ncclProfiler_v##n;        \
	EXPORT const struct nccl_profiler ncclProfiler_v##n = {     \
		"Tocsin",    {.member = init_##n}, start_##n,       \
		plugin_stop, plugin_state,	   plugin_finalize, \
	};

INIT_OLD(1)
INIT_OLD(2)
INIT_OLD(3)
INIT_NEW(5)
INIT_NEW(6)
INIT_NEW(7)
// NOLINTEND(readability-function-size)
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)
START(7)
PROFILER(1, init_1)
PROFILER(2, init_1)
PROFILER(3, init_1)
PROFILER(4, init_4)
PROFILER(5, init_5)
PROFILER(6, init_5)
PROFILER(7, init_5)
