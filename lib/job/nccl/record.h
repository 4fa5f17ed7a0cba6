// SPDX-License-Identifier: BSD-3-Clause
// A recording of NCCL's callbacks: one line of text per callback, to be played by tocsin-replay.
// docs/jobs-nccl.md describes the format.
//
// Each line is written at once, because the end of a recording explains a hang. If the disk is
// full, or RECORD_BYTES_MAX are written, the recording ends and the job continues.
//
// The caller holds the lock of mapped.c.
#pragma once

#include "bridge.h"

#define RECORD_BYTES_MAX (UINT64_C(1) << 30)

// Open a recording. Returns false if none is configured, or if the file cannot be created, which is
// logged in NCCL's log.
bool record_open(int version, nccl_logger *logger);
void record_close(void);
bool record_is_open(void);
// Return the additional events to record: TOCSIN_NCCL_RECORD_MASK.
int record_mask(void);

void record_init(uint32_t comm, const struct bridge_identity *identity, int mask);
// Numbers of the parent events; 0: no parent, or one of another process.
struct record_parents {
	uint64_t parent, parent_group;
};
void record_start(
	uint64_t event,
	int64_t comm, // -1: context NULL or finalized
	int version,
	const struct nccl_descriptor *descriptor,
	const struct record_parents *parents
);
void record_stop(uint64_t event);
void record_state(uint64_t event, int state, const union nccl_state_arguments *arguments);
void record_finalize(uint32_t comm);
