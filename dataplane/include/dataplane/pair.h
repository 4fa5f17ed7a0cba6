// SPDX-License-Identifier: BSD-3-Clause
// The cold life of a pair: one RC queue pair, made and connected on the device's keeper, then given
// to the lane of a worker (<dataplane/lane.h>), which alone posts to it and polls it, and taken
// back from there to be destroyed.
//
//	pair_create -> pair_connect -> lane: add ... fails or is drained -> pair_destroy
//
// While a lane has the pair, of the cold calls below only pair_fail() and pair_cut_off() are made.
#pragma once

#include <dataplane/device.h>
#include <dataplane/op.h>
#include <lib/histogram.h>

#include <stdint.h>

struct lane;
struct pair;

// What agents ask for: a small message costs the device no fetch from memory.
#define PAIR_INLINE_BYTES 64u

struct pair_config {
	struct lane *lane;   // whose device, completion queue and depth it has
	uint32_t generation; // never 0, another one each time
	uint32_t psn;	     // 24 bits
	// Messages of up to so many bytes are carried within the work request, if the device takes
	// as many; else none are: pair_inline_bytes().
	uint32_t inline_bytes;
};

// In state INIT, so that receives could be posted. ret_endpoint is what the peer has to know.
// -EINVAL (generation, PSN), -ENOSPC (no place in the lane), -ENOMEM, -ENETDOWN (the port is not
// usable at present: device_refresh() says why), or what the driver said.
int pair_create(
	const struct pair_config *config,
	struct device_endpoint *ret_endpoint,
	struct pair **ret_pair
);
// To RTR and RTS: MTU and depths of reads are the smaller ones of both ends.
// -EBADMSG, -EPROTONOSUPPORT as device_endpoint_check(), or what the driver said.
int pair_connect(
	struct pair *pair,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	char ret_reason[static DEVICE_REASON_MAX + 1]
);
// To ERR, so that what was posted is flushed. Beside a lane that polls it.
int pair_fail(struct pair *pair);
// Destroys the queue pair, beside a lane that has it as stuck: no device reaches what was posted
// any more. -errno: it still may. Again is harmless.
int pair_cut_off(struct pair *pair);
// Not while a lane has it. NULL is fine. -errno: the device may still reach what was posted, and
// nothing was freed.
int pair_destroy(struct pair *pair);

// Its place in the lane, from pair_create() to pair_destroy().
uint32_t pair_slot(const struct pair *pair);
uint32_t pair_generation(const struct pair *pair);
uint32_t pair_queue_number(const struct pair *pair);
// What was asked for, or 0.
uint32_t pair_inline_bytes(const struct pair *pair);
// The first thing that went wrong. From LANE_EVENT_DRAINED on, for until then it may become more
// precise: a flush can be seen before what caused it.
const struct op_cause *pair_cause(const struct pair *pair);

// Written by the worker, read by anybody: of slightly different moments.
struct pair_counters {
	uint64_t ops[OP_OUTCOME_COUNT]; // that ended, by outcome
	uint64_t bytes_out, bytes_in;	// of writes and sends; of reads and receives
};
void pair_counters(const struct pair *pair, struct pair_counters *ret_counters);
// From posting to completion, of operations that succeeded and are not receives. -EAGAIN as
// histogram_log2_snapshot().
int pair_times(const struct pair *pair, struct histogram_log2 *ret_times);
