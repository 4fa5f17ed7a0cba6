// SPDX-License-Identifier: BSD-3-Clause
// Transfers between nodes drawn at random while a scenario runs: sources and consumers that are
// slow or change their mind, and whether every transfer was whole or ended with a reason, and
// was told of once. A part of load.h.
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
	uint64_t taken;	     // by the consumer
	uint64_t refused_at; // the consumer was full here, once
	bool accepted, offered, last;
	bool source_told, consumer_told;
};

struct load_transfers {
	uint64_t every_ns, until_ns;
	struct load_transfer *table;
	uint32_t count, capacity;
	uint32_t checked; // those before have ended
	uint64_t outcomes[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t between_live, between_live_done;
	uint64_t bytes;
	struct stats time; // of those that were done
};

void load_transfers_fini(struct load_transfers *transfers);
// Starts one between two nodes drawn at random.
void load_transfer_send(struct world *world);
// A consumer that was full has room.
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
