// SPDX-License-Identifier: BSD-3-Clause
// What users ask of the overlay while a scenario runs: messages, collectives, notices; and
// whether they got it.
#pragma once

#include "load_transfer.h"
#include "stats.h"

#include <ras/collective.h>
#include <ras/relay.h>

#include <stdbool.h>
#include <stdint.h>

struct event;
struct node;
struct wire_writer;
struct world;

// What a load event is about, its code.
enum load_kind {
	LOAD_RELAY,
	LOAD_COLLECT,
	LOAD_NOTICE,
	LOAD_TRANSFER,
	LOAD_TRANSFER_READY, // target: which one
};

struct load_message {
	uint32_t from, to;
	uint32_t from_start, to_start;
	uint64_t sent_ns;
	uint64_t id;
	uint16_t hops;
	uint8_t delivered;
	bool accepted;
	bool reported;
	bool to_dead; // its destination did not run when it was sent
};

struct load_collective {
	uint32_t root, root_start;
	uint64_t id;
	uint64_t started_ns;
	bool ended;
};

struct load {
	uint64_t relay_every_ns, relay_until_ns;
	uint64_t collect_every_ns, collect_until_ns;
	uint64_t notice_every_ns, notice_until_ns;
	struct load_transfers transfers;
	struct load_message *messages;
	uint32_t message_count, message_capacity;
	uint32_t message_checked; // those before have ended
	struct load_collective *collectives;
	uint32_t collective_count, collective_capacity;
	uint32_t collective_checked;
	uint8_t *counted; // per node, by one result

	// Messages between nodes that were well all the while, and to dead ones.
	uint64_t between_live, between_live_delivered;
	uint64_t to_dead, to_dead_refused;
	uint64_t outcomes[RAS_RELAY_OUTCOME_COUNT];
	uint64_t refused_at_once;
	uint64_t reasons[RAS_RELAY_REASON_COUNT];
	struct stats relay_round_trip, relay_hops;
	struct stats collect_time;
	uint64_t collect_ended, collect_partial, collect_by_deadline;
	uint32_t collect_hops_max;
	// The latest notice, and who heard it.
	uint32_t notice, notice_origin;
	uint64_t notice_sent_ns;
	uint8_t *notice_heard;
	uint64_t notices_due, notices_heard;
	struct stats notice_delay;
};

void load_fini(struct load *load);

// A message between two nodes drawn at random every so often, until then.
void load_relay(struct world *world, uint64_t every_ns, uint64_t until_ns);
// A transfer between two nodes drawn at random (load_transfer.h).
void load_transfer(struct world *world, uint64_t every_ns, uint64_t until_ns);
// A collective from a node drawn at random.
void load_collect(struct world *world, uint64_t every_ns, uint64_t until_ns);
// A notice from a node drawn at random.
void load_notices(struct world *world, uint64_t every_ns, uint64_t until_ns);
// One now, and from this node; false if it was not started.
bool load_notice_now(struct world *world, uint32_t origin);
bool load_collect_now(struct world *world, uint32_t root, uint32_t kind);

// The node runs and could be reached, in this start, all the time since.
bool load_well_since(const struct node *node, uint32_t start, uint64_t since_ns);

void load_happen(struct world *world, struct event *event);
// Has everything ended that should have?
void load_check(struct world *world);
bool load_idle(const struct world *world);

int load_deliver(
	struct world *world, const struct node *node, const struct ras_relay_delivery *delivery
);
void load_report(
	struct world *world, const struct node *node, const struct ras_relay_report *report
);
bool load_contribute(
	struct world *world,
	const struct node *node,
	const struct ras_contribution *wanted,
	struct wire_writer *writer
);
void load_collected(
	struct world *world, const struct node *node, const struct ras_collective_result *result
);
void load_started(struct world *world, const struct node *node);
void load_notice(struct world *world, const struct node *node, const void *payload, size_t size);
