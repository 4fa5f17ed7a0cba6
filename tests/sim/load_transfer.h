// SPDX-License-Identifier: BSD-3-Clause
// Transfers between random nodes during a scenario; part of load.h. Sources and consumers may be
// slow or cancel. Every transfer must be complete or end with a reason, and be reported once.
#pragma once

#include "stats.h"

#include <ras/transfer.h>

#include <stdbool.h>
#include <stdint.h>

struct event;
struct node;
struct world;

struct load_transfer {
	uint32_t from, to;
	uint32_t from_start, to_start;
	uint64_t sent_ns;
	uint64_t id, incoming_id;
	uint64_t size;
	uint64_t taken;	     // bytes that the consumer took
	uint64_t refused_at; // offset at which the consumer was full, once
	bool accepted, offered, last;
	bool source_told, consumer_told;
};

struct load_transfers {
	uint64_t every_ns, until_ns;
	struct load_transfer *table;
	uint32_t count, capacity;
	uint32_t checked; // all transfers before this index have ended
	uint64_t outcomes[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t between_live, between_live_done;
	uint64_t bytes;
	struct stats time; // duration of completed transfers
};

void load_transfers_fini(struct load_transfers *transfers);
// Start a transfer between two random nodes.
void load_transfer_send(struct world *world);
// Handle the event that a full consumer has room again.
void load_transfer_ready(struct world *world, uint32_t index);
void load_transfers_check(struct world *world);
bool load_transfers_idle(const struct world *world);

int load_transfer_read(
	struct world *world, const struct node *node, struct ras_transfer_read *read
);
int load_transfer_take(
	struct world *world, const struct node *node, const struct ras_transfer_segment *segment
);
void load_transfer_ended(
	struct world *world, const struct node *node, const struct ras_transfer_end *end
);
