// SPDX-License-Identifier: BSD-3-Clause
// Transfers in a world of real instances: a source and a consumer at each node, which check that
// every byte comes once, in order and as it was sent, and that everybody is told once.
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

// One node's users.
struct bed_node {
	int take_result;     // of the consumer, once `take_room` is used up
	uint64_t take_room;  // bytes that it takes
	int read_result;     // of the source, from `read_until` on
	uint64_t read_until; //
	uint64_t read_total; // where the source says last, if the size is not known
	size_t read_piece;   // at most so many bytes at once, 0 for all
	struct bed_arrival arrivals[BED_TRANSFERS_MAX];
	uint32_t arrival_count;
	struct ras_transfer_end ends[BED_TRANSFERS_MAX];
	uint32_t end_count;
};

struct bed {
	struct world *world;
	struct bed_node nodes[WORLD_NODES_MAX];
};

// The only one at a time.
extern struct bed bed;

// Byte `offset` of what is sent under a tag.
uint8_t bed_byte(uint64_t tag, uint64_t offset);
void bed_create(uint32_t nodes);
// Fails the test if a transfer or a buffer of one is left anywhere.
void bed_destroy(void);
int bed_send(uint32_t from, uint32_t to, uint64_t tag, uint64_t size, uint64_t *ret_id);
// The same, and it must be accepted.
uint64_t bed_start(uint32_t from, uint32_t to, uint64_t tag, uint64_t size);
void bed_pass_ms(uint64_t ms);
// Lets time pass until nobody has a transfer; the test fails after so many seconds.
void bed_settle(uint32_t seconds);
struct ras_transfer_stats bed_stats(uint32_t node);
const struct ras_transfer_counters *bed_counters(uint32_t node);
// The only end that the node was told.
const struct ras_transfer_end *bed_end(uint32_t node);
// The first transfer of the node in this direction.
struct transfer *bed_transfer(uint32_t node, bool incoming);
// One message handed to the core of `to`, as if it came from `from`. Returns its answer.
int bed_inject(uint32_t from, uint32_t to, const void *payload, size_t size);
int bed_inject_message(uint32_t from, uint32_t to, const struct transfer_message *message);
