// SPDX-License-Identifier: BSD-3-Clause
// A recording of NCCL's callbacks: a text of one line a callback, which tocsin-replay plays. The
// format is described in docs/jobs-nccl.md.
//
// Each line is written when it is made: the end of a recording is what a hang is understood by.
// When the disk is full, or RECORD_BYTES_MAX are written, the recording ends there and the job
// goes on.
// Under the lock of mapped.c.
#pragma once

#include "bridge.h"

#define RECORD_BYTES_MAX (UINT64_C(1) << 30)

// False: no name was given, or the file cannot be made, which is said in NCCL's log.
bool record_open(int version, nccl_logger *logger);
void record_close(void);
bool record_is_open(void);
// Events that are recorded though nobody else needs them: TOCSIN_NCCL_RECORD_MASK.
int record_mask(void);

void record_init(uint32_t comm, const struct bridge_identity *identity, int mask);
// parent and parent_group are numbers of events; 0: none, or another process's.
struct record_parents {
	uint64_t parent, parent_group;
};
void record_start(
	uint64_t event,
	int64_t comm, // -1: NULL, or one that is gone
	int version,
	const struct nccl_descriptor *descriptor,
	const struct record_parents *parents
);
void record_stop(uint64_t event);
void record_state(uint64_t event, int state, const union nccl_state_arguments *arguments);
void record_finalize(uint32_t comm);
