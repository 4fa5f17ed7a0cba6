// SPDX-License-Identifier: BSD-3-Clause
// Two lanes on two fake devices or two software devices. The test polls them, with a clock that it
// advances. The bed also acts as control: it makes pairs, and on events it fails, cuts off and
// destroys them.
#pragma once

#include "lane/lane_impl.h"

#include <dataplane/worker.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#define BED_MEMORY (UINT64_C(1) << 20)
#define BED_OPS_MAX 4096
#define BED_PART 256 // bytes of each operation in bed_submit_some()
#define BED_DRAIN_NS UINT64_C(1000000000)

struct bed {
	struct clock clock;
	struct fake_device *fakes[2];
	struct device *devices[2];
	struct lane *lanes[2];
	struct worker *worker; // has no thread; its rings are used
	struct ibv_mr *mrs[2];
	uint8_t *memory[2]; // BED_MEMORY bytes each
	uint32_t generation;
	bool soft;    // software devices on the memory wire, and no fakes
	bool passive; // control ignores events
	// Events that control received.
	uint32_t failed, stuck, drained, done_events;
	struct pair *last_failed, *last_drained;
	struct op_cause last_cause;
	// Result of the last step of lane 0.
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
	bool immediate; // no clock: an operation completes while it is posted
	bool threaded;	// real time; the test starts the worker
	bool soft;	// software devices
	enum lane_stamps stamps;
};

extern int64_t bed_views_held; // holds minus puts of views; 0 with a real registry

void bed_open(struct bed *bed, const struct bed_config *config);
// Close the bed; the test fails if an object is left or a call was wrong.
void bed_close(struct bed *bed);

// The usual configuration: eight pairs of depth 8, messages of one page.
extern const struct bed_config bed_usual;
// Open the usual bed with one pair. The memory of side `filled` is filled, the other side is zero.
struct bed_pair bed_open_usual(struct bed *bed, int filled);

// Return a connected pair that both lanes have added.
struct bed_pair bed_pair_up(struct bed *bed);
void bed_connect(struct bed *bed, struct pair *ends[2]);
void bed_request(struct bed *bed, int side, uint32_t kind, uint64_t word1, uint64_t word2);

// Run one step of each lane, then control.
void bed_step(struct bed *bed);
// Step, and advance the clock to the next event, until no operation is in flight or waits.
void bed_run(struct bed *bed);
void bed_advance(struct bed *bed, uint64_t ns);

// Return a view without a registry. A test with a real registry must use that registry's views.
struct memory_view bed_view(struct bed *bed, int side, uint64_t offset, uint64_t length);
// Return an operation from side 0 of the pair to the same offset of side 1. Its `done` appends it
// to `ended`.
struct op
bed_op(struct bed *bed,
       const struct bed_pair *pair,
       enum op_kind kind,
       uint64_t offset,
       uint64_t length);
void bed_submit(struct bed *bed, int side, struct op *op);
void bed_fill(struct bed *bed, int side, uint8_t seed);
// Submit `count` operations of one kind as one batch, each on its own memory.
void bed_submit_some(
	struct bed *bed,
	const struct bed_pair *pair,
	enum op_kind kind,
	struct op *ops,
	uint32_t count
);
struct lane_counters bed_counters(const struct bed *bed); // counters of side 0
