// SPDX-License-Identifier: BSD-3-Clause
// Operations of a communicator that are under way: what their kernels and proxies have done.
//
// Collective operations only. A ring of the last TRACK_OPERATIONS, found by number; an operation
// that is overtaken by so many is forgotten, and what still comes of it is not counted. Always
// under the communicator's lock.
//
// The kernels of a communicator run one after the other, those of one group side by side. So an
// operation of which nothing will be heard (no kernel events were on, no channels were told) has
// completed when one of a later group has; until then nothing is said of it, and the marks
// STARTED_FROM and COMPLETED_FROM say that nothing is said. They are also set only when an event
// has really come: some kinds of operations have none, and NCCL's versions differ in which.
#pragma once

#include "bridge.h"

// Starts to follow the operation comm->launched, which has just been counted. Returns the handle
// for it, or NULL. mask_changed: since the launch before, so that what was seen to come need not
// come any more.
void *track_launch(
	struct bridge_comm *comm,
	const struct nccl_operation *operation,
	int mask,
	bool mask_changed
);

// Of an operation by the low bits of its number. What was forgotten, has ended, or comes twice
// changes nothing. begin returns the handle to stop it by, or NULL.
void *track_kernel_begin(struct bridge_comm *comm, uint32_t operation, uint32_t channel);
void track_kernel_end(struct bridge_comm *comm, uint32_t operation, uint32_t channel);
void *track_proxy_begin(struct bridge_comm *comm, uint32_t operation);
void track_proxy_end(struct bridge_comm *comm, uint32_t operation, uint32_t part);

// Another process does the network's work of this one, or the other way round: the network's
// completion is seen in part only, and not told any more.
void track_distrust_network(struct bridge_comm *comm);

void track_free(struct track *track);
