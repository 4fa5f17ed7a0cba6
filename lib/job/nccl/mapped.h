// SPDX-License-Identifier: BSD-3-Clause
// Used if another plugin is chained behind this one, or callbacks are recorded. Every event gets a
// handle of ours, which maps to the handles of this plugin and of the chained one.
//
// TOCSIN_NCCL_PROFILER_NEXT=PATH: the chained plugin, because NCCL loads only one.
//
// TOCSIN_NCCL_RECORD=PATH: a recording of each process, in a file PATH.PID.
//
// Each event costs a lock and a table access in addition, and a line of text when recording.
#pragma once

#include "bridge.h"

// The caller holds bridge.lock.
void mapped_open(int version);
void mapped_close(void);
// In a fork() child: drop the state, which belongs to the parent.
void mapped_reset_in_child(void);
void mapped_comm_begin(struct bridge_comm *comm, const struct bridge_identity *identity);
void mapped_comm_end(struct bridge_comm *comm);
// Return the events that the chained plugin and the recording want now.
int mapped_mask(void);

// NCCL's callbacks; they return 0.
int mapped_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
);
int mapped_stop(void *handle);
int mapped_state(void *handle, int state, const union nccl_state_arguments *arguments);
