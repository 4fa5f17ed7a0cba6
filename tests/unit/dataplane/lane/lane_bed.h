// SPDX-License-Identifier: BSD-3-Clause
// Two lanes on two fake devices, or on two software devices, polled by the test under a clock that
// it turns, and control as it would be: it makes pairs, has them failed, cut off and destroyed as
// the events ask.
#pragma once

#include "lane/lane_impl.h"

#include <dataplane/worker.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#define BED_MEMORY (UINT64_C(1) << 20)
#define BED_OPS_MAX 4096
#define BED_PART 256 // of one of many operations
#define BED_DRAIN_NS UINT64_C(1000000000)

struct bed {
	struct clock clock;
	struct fake_device *fakes[2];
	struct device *devices[2];
	struct lane *lanes[2];
	struct worker *worker; // without a thread: its rings
	struct ibv_mr *mrs[2];
	uint8_t *memory[2]; // BED_MEMORY of each
	uint32_t generation;
	bool soft;    // software devices on the memory wire, and no fakes
	bool passive; // control does nothing about events
	// What control heard.
	uint32_t failed, stuck, drained, done_events;
	struct pair *last_failed, *last_drained;
	struct op_cause last_cause;
	// What the last step of lane 0 found.
	struct idle_step_findings found;
	bool progress;
	// Operations that ended, in order.
	struct op *ended[BED_OPS_MAX];
	uint32_t ended_count;
};

struct bed_pair {
	struct pair *ends[2];
	uint32_t slots[2], generations[2];
	struct ibv_qp *qps[2];
};

struct bed_config {
	uint32_t pair_max, depth, op_max;
	uint64_t message_max;
	bool immediate; // no clock: all is done while it is posted
	bool threaded;	// real time, and the test starts the worker
	bool soft;	// on software devices
	enum lane_stamps stamps;
};

extern int64_t bed_views_held; // holds less puts; 0 on a real registry

void bed_open(struct bed *bed, const struct bed_config *config);
// Checks that nothing is left and nothing was broken.
void bed_close(struct bed *bed);

// What most tests use: for eight pairs of depth 8, messages of a page.
extern const struct bed_config bed_usual;
// With one pair; the memory of the side `filled` is not all zero.
struct bed_pair bed_open_usual(struct bed *bed, int filled);

// Ready, and in both lanes.
struct bed_pair bed_pair_up(struct bed *bed);
void bed_connect(struct bed *bed, struct pair *ends[2]);
void bed_request(struct bed *bed, int side, uint32_t kind, uint64_t word1, uint64_t word2);

// One step of each lane, then control.
void bed_step(struct bed *bed);
// Steps and turns the clock to what is next until nothing is under way or waits.
void bed_run(struct bed *bed);
void bed_advance(struct bed *bed, uint64_t ns);

// Not on a real registry, which has views of its own.
struct memory_view bed_view(struct bed *bed, int side, uint64_t offset, uint64_t length);
// From side 0 of the pair to side 1 at the same offset; `done` puts it into `ended`.
struct op
bed_op(struct bed *bed,
       const struct bed_pair *pair,
       enum op_kind kind,
       uint64_t offset,
       uint64_t length);
void bed_submit(struct bed *bed, int side, struct op *op);
void bed_fill(struct bed *bed, int side, uint8_t seed);
// `count` operations of one kind on memory of their own, as one batch.
void bed_submit_some(
	struct bed *bed,
	const struct bed_pair *pair,
	enum op_kind kind,
	struct op *ops,
	uint32_t count
);
struct lane_counters bed_counters(const struct bed *bed); // of side 0
