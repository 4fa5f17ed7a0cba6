// SPDX-License-Identifier: BSD-3-Clause
// A lane: the pairs of one device that one worker drives. It has one completion queue, one
// completion channel, and the operations of each pair: waiting, posted, complete.
//
// A lane is created and destroyed cold, on the device's keeper; in between only the worker uses it.
// It is one thing to poll (struct worker_poll). Its step polls completions in batches, dispatches
// them by slot, posts what credits allow as one chain, and checks deadlines. The step never
// allocates, locks, logs or makes system calls, except those inside the driver's hot calls.
//
// Control sends requests through the worker and receives the lane's events from it; both are listed
// below.
//
// A pair fails by an error completion, a deadline, a cancel or a request. The first error is kept
// as root cause and nothing more is posted. LANE_EVENT_FAILED asks control for pair_fail(). The
// lane then counts completions until all posted work has ended. If the device does not flush within
// the drain limit, LANE_EVENT_STUCK asks control for pair_destroy_qp(). LANE_REQUEST_QP_DESTROYED
// confirms that call. After all of this, the waiting and flushed operations end, each once, with
// the root cause. LANE_EVENT_DRAINED returns the pair to control. Operations that succeeded have
// ended earlier.
#pragma once

#include <dataplane/device.h>
#include <dataplane/op.h>
#include <dataplane/vector.h>
#include <dataplane/worker.h>

#include <stdint.h>

#define LANE_PAIRS_MAX 4096
#define LANE_DEPTH_MAX 16384
#define LANE_OPS_MAX 1048576
#define LANE_POLL_BATCH 32 // completions polled at once
#define LANE_POST_BATCH 32 // work requests posted as one chain

struct lane;
struct pair;

// Kind of time stamps that the device puts on completions.
enum lane_stamps {
	LANE_STAMPS_NONE,
	LANE_STAMPS_RAW,  // ticks of the device's clock: device_stamp_clock()
	LANE_STAMPS_WALL, // nanoseconds of the time of day, if the device's clock is set
};

struct lane_config {
	struct device *device;
	uint32_t pair_max;	   // up to LANE_PAIRS_MAX
	uint32_t depth;		   // per pair and direction; clamped to the device's limit
	uint32_t op_max;	   // operations submitted at the same time; up to LANE_OPS_MAX
	uint64_t message_max;	   // larger reads and writes are split; 0: the port's limit
	uint64_t drain_ns;	   // time limit of a drain
	const struct clock *clock; // the worker's
	struct near near;	   // worker_near() of the worker; {0}: anywhere
	struct vector_preference vector; // preferred vector for its interrupts
	enum lane_stamps stamps;
};

// Actual values after creation.
struct lane_facts {
	uint32_t pair_max;
	uint32_t depth;
	uint32_t vector; // completion vector
	uint64_t message_max;
	bool events; // completion events work; else the worker polls by a timer
};

// Create a lane. pair_max and depth are clamped so that the completion queue cannot overflow.
// Returns -EINVAL, -ENOMEM, -ENOSPC (the device's completion queue is too small for one pair),
// -EOPNOTSUPP (no such time stamps), or the driver's error.
int lane_create(const struct lane_config *config, struct lane **ret_lane);
// Destroy a lane that no worker polls. Control must not use its pairs any more. A queue pair that
// the driver refused to destroy earlier is destroyed now. NULL is fine. Returns the driver's
// -errno; then nothing was freed that the device may still reach.
int lane_destroy(struct lane *lane);
void lane_facts(const struct lane *lane, struct lane_facts *ret_facts);

// Return the poll entry of the lane, for LANE_REQUEST_ATTACH or the worker's configuration.
struct worker_poll lane_poll(struct lane *lane);

// Requests, sent by worker_post_request(); words[0] is the lane.
enum lane_request {
	LANE_REQUEST_ATTACH = 0x100, // the worker polls the lane from now on
	LANE_REQUEST_DETACH,	     // stop polling; refused while the lane has pairs
	LANE_REQUEST_ADD,	     // words[1]: pair, which the worker owns from now on
	LANE_REQUEST_FAIL, // words[1]: slot, words[2]: generation, words[3]: -errno (peer dead)
	// words[1]: slot, words[2]: generation, after pair_destroy_qp(); ignored if the pair has
	// drained meanwhile
	LANE_REQUEST_QP_DESTROYED,
	LANE_REQUEST_SUBMIT, // words[1]: op
	LANE_REQUEST_CANCEL, // words[1]: op, words[2]: its slot; ignored if the op has ended
};

// Events, received by worker_take_events(); words[0] is the lane. None is lost: an event without
// room waits.
enum lane_event {
	LANE_EVENT_ATTACHED = 0x100, // words[1]: 0, or -ENOSPC: the worker has too many polls
	LANE_EVENT_DETACHED,	     // words[1]: 0, or -EBUSY: the lane has pairs
	// words[1]: pair; words[2]: -errno; words[3]: ibv_wc_status; call pair_fail()
	LANE_EVENT_FAILED,
	LANE_EVENT_DRAINED, // words[1]: pair, which control owns again
	// words[1]: pair; call pair_destroy_qp(), then send LANE_REQUEST_QP_DESTROYED
	LANE_EVENT_STUCK,
	LANE_EVENT_OP_ENDED, // words[1]: op without `done`, which its submitter owns again
};

// Handle one lane request. Set it as worker_config.request, or call it from that callback if the
// worker has requests of other kinds too. Runs on the worker's thread; hot.
void lane_request(void *ctx, struct worker *worker, const struct worker_record *record);

// The following functions are hot and for local callers on the worker's thread (probes).
//
// Submit up to `count` operations as one batch. All are checked before any is posted. If one is
// invalid, nothing is posted: that operation ends as OP_INVALID or OP_NOT_READY, the others as
// OP_CANCELLED. All share the deadline of the first. `done` reports their ends, in posting order
// per direction of a pair. After the first failure the remaining operations of that pair end as
// OP_FLUSHED.
void lane_submit(struct lane *lane, struct op **ops, uint32_t count);
// Cancel an operation. Returns -ENOENT if it has already ended or was never submitted; then `op` is
// not dereferenced.
int lane_cancel_op(struct lane *lane, const struct op *op, uint32_t slot);
// Make a pair fail, unless it is failing already. Returns -ENOENT if there is no such pair.
int lane_fail(struct lane *lane, uint32_t slot, uint32_t generation, int err);

// Return the device's clock in ticks of LANE_STAMPS_RAW. Returns -errno if the device does not
// report it.
int lane_device_clock_now(const struct lane *lane, uint64_t *ret_ticks);

// Written by the worker and readable by any thread; the values are not from one instant.
struct lane_counters {
	uint64_t polls, completions, stale; // stale: dropped, because their pair no longer exists
	uint64_t chains, posted, signalled, inlined;
	uint64_t full;		// postings retried because the device had no memory
	uint64_t post_failures; // postings that failed for other reasons
	uint64_t submitted;
	uint64_t ended[OP_OUTCOME_COUNT];
	uint64_t failed, drained, stuck; // number of pairs
	uint64_t poll_failures;
	uint64_t completion_events;
	// Present numbers, not totals: pairs of the lane, and operations that have not ended.
	uint64_t pairs, ops;
};
void lane_counters(const struct lane *lane, struct lane_counters *ret_counters);
