// SPDX-License-Identifier: BSD-3-Clause
// Load of users during a scenario (messages, collectives, notices), and checks of its results.
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

// Kind of a load event, in its `code`.
enum load_kind {
	LOAD_RELAY,
	LOAD_COLLECT,
	LOAD_NOTICE,
	LOAD_TRANSFER,
	LOAD_TRANSFER_READY, // target: index of the transfer
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
	bool to_dead; // the destination was down when the message was sent
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
	uint32_t message_checked; // all messages before this index have ended
	struct load_collective *collectives;
	uint32_t collective_count, collective_capacity;
	uint32_t collective_checked;
	uint8_t *counted; // by node: counted by the result in progress

	// Messages between nodes without faults, and messages to dead nodes.
	uint64_t between_live, between_live_delivered;
	uint64_t to_dead, to_dead_refused;
	uint64_t outcomes[RAS_RELAY_OUTCOME_COUNT];
	uint64_t refused_at_once;
	uint64_t reasons[RAS_RELAY_REASON_COUNT];
	struct stats relay_round_trip, relay_hops;
	struct stats collect_time;
	uint64_t collect_ended, collect_partial, collect_by_deadline;
	uint32_t collect_hops_max;
	// The latest notice, and the nodes that heard it.
	uint32_t notice, notice_origin;
	uint64_t notice_sent_ns;
	uint8_t *notice_heard;
	uint64_t notices_due, notices_heard;
	struct stats notice_delay;
};

void load_fini(struct load *load);

// Send a message between two random nodes every `every_ns`, until `until_ns`.
void load_relay(struct world *world, uint64_t every_ns, uint64_t until_ns);
// Start a transfer between two random nodes (load_transfer.h) every `every_ns`.
void load_transfer(struct world *world, uint64_t every_ns, uint64_t until_ns);
// Start a collective at a random node every `every_ns`.
void load_collect(struct world *world, uint64_t every_ns, uint64_t until_ns);
// Send a notice from a random node every `every_ns`.
void load_notices(struct world *world, uint64_t every_ns, uint64_t until_ns);
// Start one now at this node. Returns false if it was not started.
bool load_notice_now(struct world *world, uint32_t origin);
bool load_collect_now(struct world *world, uint32_t root, uint32_t kind);

// Return whether the node has run, in this start, and could be reached all the time since
// `since_ns`.
bool load_well_since(const struct node *node, uint32_t start, uint64_t since_ns);

void load_happen(struct world *world, struct event *event);
// Check that all messages, collectives and transfers have ended that should have.
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
