// SPDX-License-Identifier: BSD-3-Clause
// Transfers in a world of real instances. A source and a consumer at each node check that every
// byte arrives once, in order and unchanged. They also check that each end is reported once.
#pragma once

#include "control/ras/ras_world.h"
#include "relay/transfer_state.h"

#define BED_TRANSFERS_MAX 128
#define BED_PORT 200

struct bed_arrival {
	uint64_t id, tag;
	uint64_t taken;
	bool last;
	bool ended;
};

// Users of transfers on one node.
struct bed_node {
	int take_result;     // result of the consumer once `take_room` is used up
	uint64_t take_room;  // bytes that the consumer accepts
	int read_result;     // result of the source from `read_until` on
	uint64_t read_until; //
	uint64_t read_total; // end of the source if the size is unknown
	size_t read_piece;   // maximum of bytes per read; 0: all
	struct bed_arrival arrivals[BED_TRANSFERS_MAX];
	uint32_t arrival_count;
	struct ras_transfer_end ends[BED_TRANSFERS_MAX];
	uint32_t end_count;
};

struct bed {
	struct world *world;
	struct bed_node nodes[WORLD_NODES_MAX];
};

// The only instance at a time.
extern struct bed bed;

// Return byte `offset` of the data of a tag.
uint8_t bed_byte(uint64_t tag, uint64_t offset);
void bed_create(uint32_t nodes);
// Destroy the bed; fails the test if a transfer or a buffer of one is left.
void bed_destroy(void);
int bed_send(uint32_t from, uint32_t to, uint64_t tag, uint64_t size, uint64_t *ret_id);
// Start a transfer that must be accepted.
uint64_t bed_start(uint32_t from, uint32_t to, uint64_t tag, uint64_t size);
void bed_pass_ms(uint64_t ms);
// Pass time until no node has a transfer; fails the test after this many seconds.
void bed_settle(uint32_t seconds);
struct ras_transfer_stats bed_stats(uint32_t node);
const struct ras_transfer_counters *bed_counters(uint32_t node);
// Return the only end that the node received.
const struct ras_transfer_end *bed_end(uint32_t node);
// Return the node's first transfer in this direction.
struct transfer *bed_transfer(uint32_t node, bool incoming);
// Pass one message to the core of `to`, as if from `from`. Returns the core's result.
int bed_inject(uint32_t from, uint32_t to, const void *payload, size_t size);
int bed_inject_message(uint32_t from, uint32_t to, const struct transfer_message *message);
