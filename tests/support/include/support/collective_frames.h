// SPDX-License-Identifier: BSD-3-Clause
// Helpers shared by the tests of faulty collectives: handmade messages, and short queries.
#pragma once

#include "collect/gather.h"
#include "core/core.h"

#include <lib/wire.h>
#include <support/cmocka.h>
#include <support/collective_net.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define LEG_NS (5 * RAS_NS_PER_SEC) // values of the net's profile
#define GRACE_NS (5 * RAS_NS_PER_SEC)

struct bytes {
	uint8_t data[512];
	size_t size;
};

static inline uint64_t collect(struct net *net, uint32_t root) {
	uint64_t id = 0;

	assert_int_equal(
		ras_collect(net->nodes[root].ras, net->now_ns, RAS_COLLECT_COMMS, 0, &id), 0
	);
	return id;
}

static inline const struct net_result *result_of(const struct net *net, uint32_t root) {
	assert_int_equal(net->nodes[root].result_count, 1);
	return &net->nodes[root].results[0];
}

static inline const struct ras_collect_counters *counters_of(const struct net *net, uint32_t node) {
	return ras_collect_counters(net->nodes[node].ras);
}

static inline enum ras_missing reason_of(const struct net_result *kept, uint32_t node) {
	for (uint32_t n = 0; n < kept->result.missing_count; n++) {
		if (kept->missing[n].id == net_id(node))
			return kept->missing[n].reason;
	}
	return RAS_MISSING_COUNT;
}

static inline void net_chain(struct net *net) {
	for (uint32_t n = 1; n < net->count; n++)
		net_connect(net, n - 1, n);
}

static inline struct bytes request_bytes(uint32_t origin, uint64_t id, uint32_t kind) {
	struct collect_request request = {
		.origin = net_id(origin), .id = id, .kind = kind, .budget_ns = LEG_NS, .hops = 1};
	struct wire_writer writer;
	struct bytes frame = {0};

	wire_writer_init(&writer, frame.data, sizeof(frame.data));
	collect_request_encode(&request, NULL, 0, &writer);
	assert_int_equal(wire_writer_finish(&writer, &frame.size), 0);
	return frame;
}

static inline struct bytes cancel_bytes(uint32_t origin, uint64_t id) {
	struct wire_writer writer;
	struct bytes frame = {0};

	wire_writer_init(&writer, frame.data, sizeof(frame.data));
	collect_cancel_encode(net_id(origin), id, &writer);
	assert_int_equal(wire_writer_finish(&writer, &frame.size), 0);
	return frame;
}

// Build a final answer of `node`, in `parts` parts; the last one has the end flag.
static inline struct bytes
answer_bytes(uint32_t origin, uint64_t id, uint32_t node, uint32_t parts, uint8_t flags) {
	struct collect_answer answer = {
		.node = net_id(node),
		.incarnation = ras_incarnation(1, 0),
		.payload = &node,
		.hops = 1,
	};
	struct wire_writer writer;
	struct bytes frame = {0};

	wire_writer_init(&writer, frame.data, sizeof(frame.data));
	collected_encode(net_id(origin), id, flags, &writer);
	for (answer.part = 0; answer.part < parts; answer.part++) {
		answer.last = answer.part + 1 == parts;
		collect_answer_encode(&answer, &writer);
	}
	assert_int_equal(wire_writer_finish(&writer, &frame.size), 0);
	return frame;
}

static inline int inject(struct net *net, uint32_t from, uint32_t to, const struct bytes *frame) {
	return net_inject(net, from, to, frame->data, frame->size);
}

// Check that one result arrived in time and that nothing is left. Every node must have answered or
// be named as missing.
static inline void assert_ended_well(const struct net *net, uint32_t root) {
	const struct net_result *kept = result_of(net, root);

	assert_int_equal(kept->result.answered + kept->result.missing_count, net->count);
	assert_true(kept->result.answered >= 1);
	assert_true(kept->result.elapsed_ns <= LEG_NS + GRACE_NS);
	assert_true(net_idle(net));
	for (uint32_t n = 0; n < net->count; n++) {
		assert_in_range(net->nodes[n].contributed, 0, 1);
		assert_in_range(kept->parts_of[n], 0, net->nodes[n].contributed);
		assert_int_equal(kept->parts_of[n], reason_of(kept, n) == RAS_MISSING_COUNT);
	}
	for (uint32_t n = 1; n < kept->result.missing_count; n++)
		assert_true(kept->missing[n - 1].id < kept->missing[n].id);
}
