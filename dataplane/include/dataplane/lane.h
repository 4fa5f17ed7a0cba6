// SPDX-License-Identifier: BSD-3-Clause
// A lane: the pairs of one device that one worker drives. One completion queue, one completion
// channel, and for each pair its operations: waiting, posted, complete.
//
// Made and destroyed cold, on the device's keeper; everything between is the worker's alone. A lane
// is one thing to poll (struct worker_poll): its step polls completions in batches, dispatches them
// by slot, posts what credits allow as one chain, looks after deadlines, and never allocates,
// locks, logs or calls the system (but for what the driver's own hot calls do).
//
// Control speaks to it in the worker's requests and hears of it in the worker's events, below.
//
// When a pair fails (an error completion, a deadline, a cancel, a request): its first error is kept
// as the root cause; nothing more is posted; LANE_EVENT_FAILED asks control for pair_fail(); what
// was posted is counted until all of it is complete. If the device does not flush within the drain
// limit, LANE_EVENT_STUCK asks control for pair_cut_off(), and LANE_REQUEST_GONE tells that it was
// made. Only then the operations that waited or were flushed end, each once, with the root cause,
// and LANE_EVENT_DRAINED gives the pair back. What had succeeded by itself has ended before.
#pragma once

#include <dataplane/device.h>
#include <dataplane/op.h>
#include <dataplane/vector.h>
#include <dataplane/worker.h>

#include <stdint.h>

#define LANE_PAIRS_MAX 4096
#define LANE_DEPTH_MAX 16384
#define LANE_OPS_MAX 1048576
#define LANE_POLL_BATCH 32 // completions taken at once
#define LANE_POST_BATCH 32 // work requests posted as one chain

struct lane;
struct pair;

// What the device is to stamp each completion with.
enum lane_stamps {
	LANE_STAMPS_NONE,
	LANE_STAMPS_RAW,  // ticks of its own clock: device_stamps()
	LANE_STAMPS_WALL, // nanoseconds of the time of day, as far as its clock is set
};

struct lane_config {
	struct device *device;
	uint32_t pair_max;	   // up to LANE_PAIRS_MAX
	uint32_t depth;		   // of each pair, either direction; clamped to the device
	uint32_t op_max;	   // submitted at once, all in all; up to LANE_OPS_MAX
	uint64_t message_max;	   // larger reads and writes are cut; 0: what the port can
	uint64_t drain_ns;	   // limit of a drain
	const struct clock *clock; // the worker's
	struct near near;	   // worker_near() of it; {0}: anywhere
	struct vector_wish vector; // where its interrupts are wanted
	enum lane_stamps stamps;
};

// What came of the configuration.
struct lane_facts {
	uint32_t pair_max;
	uint32_t depth;
	uint32_t vector; // that interrupts when its completions are waited for
	uint64_t message_max;
	bool events; // else its completions end no wait, and the worker looks by a timer
};

// -EINVAL, -ENOMEM, -ENOSPC (the device's completion queue is too small for one pair),
// -EOPNOTSUPP (the device has not these time stamps), or what the driver said. pair_max and
// depth are clamped so that the completion queue cannot overflow.
int lane_create(const struct lane_config *config, struct lane **ret_lane);
// No worker polls it any more, nobody has a pair of it: one that the driver did not take back when
// it was to be destroyed is destroyed now. NULL is fine. -errno of the driver: nothing was freed
// that the device may still reach.
int lane_destroy(struct lane *lane);
void lane_facts(const struct lane *lane, struct lane_facts *ret_facts);

// Becomes one of a worker's polls: by LANE_REQUEST_ATTACH, or from its configuration on.
struct worker_poll lane_poll(struct lane *lane);

// Requests, by worker_post(): words[0] is the lane.
enum lane_request {
	LANE_REQUEST_ATTACH = 0x100, // the worker polls it from here on
	LANE_REQUEST_DETACH,	     // no more, if it has no pairs
	LANE_REQUEST_ADD,	     // words[1]: pair. The worker's from here on
	LANE_REQUEST_FAIL,   // words[1]: slot, words[2]: generation, words[3]: -errno (peer dead)
	LANE_REQUEST_GONE,   // words[1]: slot, words[2]: generation, after pair_cut_off(). One that
			     // drained meanwhile is left alone
	LANE_REQUEST_SUBMIT, // words[1]: op
	LANE_REQUEST_CANCEL, // words[1]: op, words[2]: its slot. One that ended is left alone
};

// Events, by worker_take(): words[0] is the lane. None is lost: those that find no room wait.
enum lane_event {
	LANE_EVENT_ATTACHED = 0x100, // words[1]: 0, or -ENOSPC: the worker has too many polls
	LANE_EVENT_DETACHED,	     // words[1]: 0, or -EBUSY: it has pairs
	LANE_EVENT_FAILED, // words[1]: pair; words[2]: -errno; words[3]: ibv_wc_status: pair_fail()
	LANE_EVENT_DRAINED, // words[1]: pair, control's again
	LANE_EVENT_STUCK,   // words[1]: pair: pair_cut_off(), then LANE_REQUEST_GONE
	LANE_EVENT_DONE,    // words[1]: op without `done`, its owner's again
};

// What worker_config.request is, or calls for these kinds. The worker's thread; hot.
void lane_request(void *ctx, struct worker *worker, const struct worker_record *record);

// The rest is for the worker's thread and hot, for local callers that run on it (probes).
//
// Up to `count` operations as one batch: all are checked before any is posted; with the first that
// is not sound it ends as OP_INVALID or OP_NOT_READY, the others as OP_CANCELLED, and nothing is
// posted. They share the deadline of the first. Ends are told by `done`, in order of posting on one
// direction of a pair; after the first failure the rest of that pair end as OP_FLUSHED.
void lane_submit(struct lane *lane, struct op **ops, uint32_t count);
// -ENOENT: it has ended already, or was never submitted; it is not looked at.
int lane_cancel(struct lane *lane, const struct op *op, uint32_t slot);
// The pair fails unless it does already. -ENOENT: no such pair.
int lane_fail(struct lane *lane, uint32_t slot, uint32_t generation, int err);

// The device's clock now, in the ticks of LANE_STAMPS_RAW. -errno: it does not say.
int lane_stamp_now(const struct lane *lane, uint64_t *ret_ticks);

// Written by the worker, read by anybody: of slightly different moments.
struct lane_counters {
	uint64_t polls, completions, stale; // stale: of no pair that there is, dropped
	uint64_t chains, posted, signalled, inlined;
	uint64_t full;		// postings that the device had no memory for, tried again
	uint64_t post_failures; // of other reasons
	uint64_t submitted;
	uint64_t ended[OP_OUTCOME_COUNT];
	uint64_t failed, drained, stuck; // pairs
	uint64_t poll_failures;
	uint64_t completion_events;
	uint64_t pairs, ops; // at present
};
void lane_counters(const struct lane *lane, struct lane_counters *ret_counters);
