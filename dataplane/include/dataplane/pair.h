// SPDX-License-Identifier: BSD-3-Clause
// The cold life of a pair: one RC queue pair. The device's keeper creates and connects it, then a
// worker's lane (<dataplane/lane.h>) alone posts to it and polls it. At the end the lane returns it
// for destruction.
//
//	pair_create -> pair_connect -> lane: add ... fails or is drained -> pair_destroy
//
// While a lane has the pair, pair_fail() and pair_destroy_qp() are the only cold calls allowed.
#pragma once

#include <dataplane/device.h>
#include <dataplane/op.h>
#include <lib/histogram.h>

#include <stdint.h>

struct lane;
struct pair;

// Inline size that agents request: the device need not fetch small messages from memory.
#define PAIR_INLINE_BYTES 64u

struct pair_config {
	struct lane *lane;   // lane that provides device, completion queue and depth
	uint32_t generation; // never 0, different for each pair in a slot
	uint32_t psn;	     // 24 bits
	// Largest message that is carried inside the work request. If the device cannot carry as
	// many bytes inline, none are; see pair_inline_bytes().
	uint32_t inline_bytes;
};

// Create a pair in state INIT, so that receives can be posted. ret_endpoint holds the data for the
// peer. Returns -EINVAL (generation, PSN), -ENOSPC (no slot in the lane), -ENOMEM, -ENETDOWN (the
// port is unusable at present; device_refresh() returns the reason), or the driver's error.
int pair_create(
	const struct pair_config *config,
	struct device_endpoint *ret_endpoint,
	struct pair **ret_pair
);
// Move the pair to RTR and RTS, with the smaller MTU and read depth of both ends. Returns -EBADMSG
// or -EPROTONOSUPPORT as device_endpoint_check(), or the driver's error.
int pair_connect(
	struct pair *pair,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	char ret_reason[static DEVICE_REASON_MAX + 1]
);
// Move the pair to ERR, which flushes posted work. Allowed while a lane polls the pair.
int pair_fail(struct pair *pair);
// Destroy only the queue pair, while a lane holds the pair as stuck. Afterwards no device reaches
// posted memory. Returns -errno if the device still may. May be repeated.
int pair_destroy_qp(struct pair *pair);
// Destroy a pair that no lane holds. NULL is fine. Returns -errno if the device may still reach
// posted memory; then nothing was freed.
int pair_destroy(struct pair *pair);

// Return the pair's slot in the lane, constant from pair_create() to pair_destroy().
uint32_t pair_slot(const struct pair *pair);
uint32_t pair_generation(const struct pair *pair);
uint32_t pair_queue_number(const struct pair *pair);
// Return the requested inline size, or 0.
uint32_t pair_inline_bytes(const struct pair *pair);
// Return the first error of the pair. Call it only after LANE_EVENT_DRAINED: before, the cause may
// become more precise, because a flush can be seen before its cause.
const struct op_cause *pair_cause(const struct pair *pair);

// Written by the worker and readable by any thread; the values are not from one instant.
struct pair_counters {
	uint64_t ops[OP_OUTCOME_COUNT]; // ended operations, by outcome
	uint64_t bytes_out, bytes_in;	// bytes of writes and sends; bytes of reads and receives
};
void pair_counters(const struct pair *pair, struct pair_counters *ret_counters);
// Return the times from posting to completion, of successful operations except receives. Returns
// -EAGAIN as histogram_log2_snapshot().
int pair_times(const struct pair *pair, struct histogram_log2 *ret_times);
