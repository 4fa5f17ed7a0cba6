// SPDX-License-Identifier: BSD-3-Clause
// When another plugin is chained behind this one, or the callbacks are recorded: every event gets a
// handle of ours, which stands for what this plugin and the next one gave.
//
// TOCSIN_NCCL_PROFILER_NEXT=PATH   the next plugin; NCCL loads one only
// TOCSIN_NCCL_RECORD=PATH          a recording, in a file PATH.PID of each process
//
// Slower than without: a lock and a table for each event, and a line of text when recording.
#pragma once

#include "bridge.h"

// Under bridge.lock.
void mapped_open(int version);
void mapped_close(void);
// In a child of fork(): what is open belongs to the parent.
void mapped_forget(void);
void mapped_comm_begin(struct bridge_comm *comm, const struct bridge_identity *identity);
void mapped_comm_end(struct bridge_comm *comm);
// Events that the next plugin or the recording asks for, now.
int mapped_mask(void);

// NCCL's callbacks; they return 0.
int mapped_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
);
int mapped_stop(void *handle);
int mapped_state(void *handle, int state, const union nccl_state_arguments *arguments);
