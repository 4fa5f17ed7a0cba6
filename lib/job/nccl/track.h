// SPDX-License-Identifier: BSD-3-Clause
// Tracks the pending operations of a communicator: events of their kernels and proxies.
//
// Collective operations only, in a ring of the last TRACK_OPERATIONS, indexed by number. An older
// operation is forgotten, and its events are ignored. The caller always holds the communicator's
// lock.
//
// The kernels of a communicator run one after another; those of one group run side by side. An
// operation may produce no events, because kernel events were off or its channels are unknown. Such
// an operation is complete when an operation of a later group is. Until then it is not reported,
// and the marks STARTED_FROM and COMPLETED_FROM say so. The marks are set only after an event
// really came. Some kinds of operations have no events, and NCCL's versions differ in that.
#pragma once

#include "bridge.h"

// Track the operation comm->launched, which has just been counted. Returns its handle, or NULL.
// mask_changed: the mask changed since the previous launch, so events seen before may no longer
// come.
void *track_launch(
	struct bridge_comm *comm,
	const struct nccl_operation *operation,
	int mask,
	bool mask_changed
);

// Handle an event; `operation` is the low bits of the operation's number. Events of forgotten or
// ended operations, and repeated events, are ignored. begin returns the handle for the end, or
// NULL.
void *track_kernel_begin(struct bridge_comm *comm, uint32_t operation, uint32_t channel);
void track_kernel_end(struct bridge_comm *comm, uint32_t operation, uint32_t channel);
void *track_proxy_begin(struct bridge_comm *comm, uint32_t operation);
void track_proxy_end(struct bridge_comm *comm, uint32_t operation, uint32_t part);

// Stop reporting network completions. Under PXN another process does part of this process's network
// work, or the reverse. So completions are seen only in part.
void track_distrust_network(struct bridge_comm *comm);

void track_free(struct track *track);
