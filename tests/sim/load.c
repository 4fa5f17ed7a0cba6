// SPDX-License-Identifier: BSD-3-Clause
#include "load.h"

#include "jobs.h"
#include "random.h"
#include "world.h"

#include <lib/must.h>
#include <lib/wire.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_PORT 100
#define LOAD_NOTICE_KIND RAS_NOTICE_OWN_MIN
#define LOAD_LIFE_NS (10 * WORLD_SEC)
#define LOAD_GRACE_NS (5 * WORLD_SEC)
#define LOAD_COLLECT_NS (5 * WORLD_SEC)
#define LOAD_PAYLOAD_BYTES_MAX 1500
#define LOAD_PAYLOAD_BYTES_MIN 8 // the payload starts with the message's index
#define LOAD_SHARE_BYTES 64

void load_fini(struct load *load) {
	load_transfers_fini(&load->transfers);
	free(load->messages);
	free(load->collectives);
	free(load->counted);
	free(load->notice_heard);
}

static void load_again(struct world *world, enum load_kind kind, uint64_t at_ns) {
	struct event *event = queue_event(&world->queue, WORLD_LOAD, 0);

	event->code = (uint16_t)kind;
	queue_push(&world->queue, event, at_ns);
}

void load_relay(struct world *world, uint64_t every_ns, uint64_t until_ns) {
	world->load.relay_every_ns = every_ns;
	world->load.relay_until_ns = until_ns;
	load_again(world, LOAD_RELAY, world_now(world));
}

void load_collect(struct world *world, uint64_t every_ns, uint64_t until_ns) {
	world->load.collect_every_ns = every_ns;
	world->load.collect_until_ns = until_ns;
	load_again(world, LOAD_COLLECT, world_now(world));
}

void load_notices(struct world *world, uint64_t every_ns, uint64_t until_ns) {
	world->load.notice_every_ns = every_ns;
	world->load.notice_until_ns = until_ns;
	load_again(world, LOAD_NOTICE, world_now(world));
}

void load_transfer(struct world *world, uint64_t every_ns, uint64_t until_ns) {
	world->load.transfers.every_ns = every_ns;
	world->load.transfers.until_ns = until_ns;
	load_again(world, LOAD_TRANSFER, world_now(world));
}

static struct load_message *load_message_add(struct load *load) {
	if (load->message_count == load->message_capacity) {
		load->message_capacity =
			load->message_capacity > 0 ? 2 * load->message_capacity : 1024;
		load->messages =
			realloc(load->messages, load->message_capacity * sizeof(*load->messages));
		must(load->messages != NULL);
	}
	memset(&load->messages[load->message_count], 0, sizeof(*load->messages));
	return &load->messages[load->message_count++];
}

bool load_well_since(const struct node *node, uint32_t start, uint64_t since_ns) {
	return node->state == NODE_UP && node->ailing == 0 && node->start == start &&
	       node->healthy_ns <= since_ns && !node->leaving;
}

static void load_send(struct world *world) {
	uint8_t payload[LOAD_PAYLOAD_BYTES_MAX] = {0};
	struct load *load = &world->load;
	uint32_t index = load->message_count;
	struct node *from = &world->nodes[world_draw_up(world)];
	struct node *to = &world->nodes[random_below(&world->random, world->options.nodes)];
	struct ras_relay_message message = {
		.destination = to->record->id,
		.class = (enum ras_relay_class)random_below(&world->random, RAS_RELAY_CLASS_COUNT),
		.flags = RAS_RELAY_REPORT,
		.port = LOAD_PORT,
		.life_ns = LOAD_LIFE_NS,
		.payload = payload,
		.size = (size_t
		)random_between(&world->random, LOAD_PAYLOAD_BYTES_MIN, LOAD_PAYLOAD_BYTES_MAX),
	};
	struct load_message *kept;
	int err;

	if (from->state != NODE_UP || from->leaving)
		return;
	kept = load_message_add(load);
	kept->from = from->index;
	kept->to = to->index;
	kept->from_start = from->start;
	kept->to_start = to->start;
	kept->sent_ns = world_now(world);
	kept->to_dead = to->state == NODE_OFF;
	load->to_dead += kept->to_dead;
	memcpy(payload, &index, sizeof(index));
	err = ras_relay_send(from->ras, node_now(from), &message, &kept->id);
	load->messages[index].accepted = err == 0;
	if (err == -EHOSTDOWN || err == -ENOENT) {
		load->refused_at_once++;
		load->to_dead_refused += load->messages[index].to_dead;
	}
	if (err != 0 && load_well_since(to, to->start, world_now(world)) &&
	    load_well_since(from, from->start, world_now(world)))
		load->between_live++; // counted even if the send failed: it did not arrive
	node_settle(from);
}

bool load_collect_now(struct world *world, uint32_t root, uint32_t kind) {
	struct load *load = &world->load;
	struct node *node = &world->nodes[root];
	struct load_collective *kept;
	uint64_t id;

	if (node->state != NODE_UP || node->leaving ||
	    ras_collect(node->ras, node_now(node), kind, LOAD_COLLECT_NS, &id) != 0)
		return false;
	if (load->collective_count == load->collective_capacity) {
		load->collective_capacity =
			load->collective_capacity > 0 ? 2 * load->collective_capacity : 64;
		load->collectives =
			realloc(load->collectives,
				load->collective_capacity * sizeof(*load->collectives));
		must(load->collectives != NULL);
	}
	kept = &load->collectives[load->collective_count++];
	*kept = (struct load_collective){root, node->start, id, world_now(world), false};
	return true;
}

bool load_notice_now(struct world *world, uint32_t origin) {
	struct load *load = &world->load;
	struct node *node = &world->nodes[origin];
	uint32_t number = load->notice + 1;

	if (node->state != NODE_UP || node->leaving)
		return false;
	if (load->notice_heard == NULL)
		load->notice_heard = calloc(world->options.nodes, sizeof(*load->notice_heard));
	must(load->notice_heard != NULL);
	if (ras_notice(node->ras, node_now(node), LOAD_NOTICE_KIND, &number, sizeof(number)) != 0)
		return false;
	memset(load->notice_heard, 0, world->options.nodes);
	load->notice = number;
	load->notice_origin = origin;
	load->notice_sent_ns = world_now(world);
	load->notices_due += world_count_up(world) - 1;
	node_settle(node);
	return true;
}

static uint64_t load_next(struct world *world, enum load_kind kind) {
	struct load *load = &world->load;
	uint64_t now_ns = world_now(world);

	switch (kind) {
	case LOAD_RELAY:
		load_send(world);
		now_ns += load->relay_every_ns;
		return now_ns < load->relay_until_ns ? now_ns : RAS_NEVER;
	case LOAD_TRANSFER:
		load_transfer_send(world);
		now_ns += load->transfers.every_ns;
		return now_ns < load->transfers.until_ns ? now_ns : RAS_NEVER;
	case LOAD_NOTICE:
		load_notice_now(world, world_draw_up(world));
		now_ns += load->notice_every_ns;
		return now_ns < load->notice_until_ns ? now_ns : RAS_NEVER;
	default:
		load_collect_now(
			world, world_draw_up(world),
			random_below(&world->random, 2) == 0 ? RAS_COLLECT_COMMS : RAS_COLLECT_PATHS
		);
		now_ns += load->collect_every_ns;
		return now_ns < load->collect_until_ns ? now_ns : RAS_NEVER;
	}
}

void load_happen(struct world *world, struct event *event) {
	enum load_kind kind = event->code;
	uint32_t target = event->target;
	uint64_t next_ns;

	queue_release(&world->queue, event);
	if (kind == LOAD_TRANSFER_READY) {
		load_transfer_ready(world, target);
		return;
	}
	next_ns = load_next(world, kind);
	if (next_ns != RAS_NEVER)
		load_again(world, kind, next_ns);
}

// Check for messages and collectives that did not end, though their node stayed up for long
// enough.
void load_check(struct world *world) {
	struct load *load = &world->load;
	const struct ras_profile *profile = world->options.profile;

	load_transfers_check(world);
	for (; load->message_checked < load->message_count; load->message_checked++) {
		const struct load_message *message = &load->messages[load->message_checked];

		if (world_now(world) < message->sent_ns + LOAD_LIFE_NS + LOAD_GRACE_NS)
			break;
		if (message->accepted && !message->reported &&
		    load_well_since(
			    &world->nodes[message->from], message->from_start, message->sent_ns
		    ))
			invariants_break(
				world, message->from, message->to,
				"F: nothing was reported of message %u", load->message_checked
			);
	}
	for (; load->collective_checked < load->collective_count; load->collective_checked++) {
		const struct load_collective *kept = &load->collectives[load->collective_checked];

		if (world_now(world) <
		    kept->started_ns + LOAD_COLLECT_NS + profile->leg_grace_ns + WORLD_SEC)
			break;
		if (!kept->ended &&
		    load_well_since(&world->nodes[kept->root], kept->root_start, kept->started_ns))
			invariants_break(
				world, kept->root, NET_NOBODY, "G: a collective has not ended"
			);
	}
}

bool load_idle(const struct world *world) {
	const struct load *load = &world->load;

	return load->message_checked == load->message_count &&
	       load->collective_checked == load->collective_count && load_transfers_idle(world);
}

// Return the maximum of hops. Routing by ring position needs one hop for each long ring, or half
// of the ring without them. A detour or a view change may add some.
static uint32_t load_hops_max(const struct world *world) {
	uint32_t levels = 1;

	while (1u << levels < world->options.nodes)
		levels++;
	return world->options.profile->long_rings ? 2 * levels + 8 : world->options.nodes + 8;
}

int load_deliver(
	struct world *world, const struct node *node, const struct ras_relay_delivery *delivery
) {
	struct load *load = &world->load;
	struct load_message *message;
	uint32_t index;

	if (delivery->port != LOAD_PORT || delivery->size < LOAD_PAYLOAD_BYTES_MIN)
		return -ENOENT;
	memcpy(&index, delivery->payload, sizeof(index));
	if (index >= load->message_count)
		return -EBADMSG;
	message = &load->messages[index];
	message->hops = (uint16_t)delivery->hops;
	if (message->to != node->index || message->to_start != node->start)
		invariants_break(
			world, node->index, message->from,
			"F: message %u was for another start or node", index
		);
	if (++message->delivered > 1)
		invariants_break(
			world, node->index, message->from, "F: message %u was delivered twice",
			index
		);
	if (delivery->hops > load_hops_max(world))
		invariants_break(
			world, node->index, message->from, "F: message %u travelled over %u links",
			index, delivery->hops
		);
	stats_add(&load->relay_hops, delivery->hops);
	return 0;
}

// Search from the latest message, since reports follow soon.
static struct load_message *
load_find(struct load *load, uint32_t from, uint32_t from_start, uint64_t id) {
	for (uint32_t n = load->message_count; n > 0; n--) {
		struct load_message *message = &load->messages[n - 1];

		if (message->from == from && message->id == id && message->accepted &&
		    message->from_start == from_start)
			return message;
	}
	return NULL;
}

void load_report(
	struct world *world, const struct node *node, const struct ras_relay_report *report
) {
	struct load *load = &world->load;
	struct load_message *message =
		load_find(load, node->index, node->start, report->message_id);

	if (message == NULL || message->reported) {
		invariants_break(
			world, node->index, NET_NOBODY,
			"F: a report of no message, or the second of one"
		);
		return;
	}
	message->reported = true;
	load->outcomes[report->outcome]++;
	load->reasons[report->reason]++;
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED)
		stats_add(&load->relay_round_trip, report->round_trip_ns);
	if (load_well_since(node, message->from_start, message->sent_ns) &&
	    load_well_since(&world->nodes[message->to], message->to_start, message->sent_ns)) {
		load->between_live++;
		load->between_live_delivered += report->outcome == RAS_RELAY_OUTCOME_DELIVERED;
	}
	if (message->to_dead)
		load->to_dead_refused += report->outcome == RAS_RELAY_OUTCOME_REFUSED;
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED && message->delivered == 0)
		invariants_break(
			world, node->index, message->to, "F: reported as delivered, but it was not"
		);
	if (report->outcome == RAS_RELAY_OUTCOME_REFUSED && message->delivered > 0)
		invariants_break(
			world, node->index, message->to,
			"F: reported as refused (%s), but delivered",
			ras_relay_reason_name(report->reason)
		);
}

bool load_contribute(
	struct world *world,
	const struct node *node,
	const struct ras_contribution *wanted,
	struct wire_writer *writer
) {
	uint8_t share[LOAD_SHARE_BYTES] = {0};

	if (world->jobs != NULL && wanted->kind == RAS_COLLECT_COMMS)
		return jobs_contribute(world->jobs, node->index, wanted, writer);
	memcpy(share, &node->index, sizeof(node->index));
	wire_put_bytes(writer, share, sizeof(share));
	return false;
}

// G: each node is counted or missing in the result, and only once.
static void load_count(
	struct world *world, const struct node *node, const struct ras_collective_result *result
) {
	struct load *load = &world->load;
	struct ras_collected_cursor cursor = {0};
	struct ras_collected_part part;
	uint32_t answered = 0;

	if (load->counted == NULL)
		load->counted = calloc(world->options.nodes, sizeof(*load->counted));
	must(load->counted != NULL);
	memset(load->counted, 0, world->options.nodes);
	while (ras_collected_next(result->collected, &cursor, &part)) {
		uint32_t index = world_node_of_id(world, part.node);

		if (index == NET_NOBODY || load->counted[index]++ > 0)
			invariants_break(
				world, node->index, index,
				"G: a share of nobody, or two of one node"
			);
		answered++;
	}
	for (uint32_t n = 0; n < result->missing_count; n++) {
		uint32_t index = world_node_of_id(world, result->missing[n].id);

		if (index == NET_NOBODY || load->counted[index]++ > 0)
			invariants_break(
				world, node->index, index,
				"G: missing, but it is nobody or answered"
			);
	}
	if (answered != result->answered)
		invariants_break(
			world, node->index, NET_NOBODY, "G: %u shares of %u that answered",
			answered, result->answered
		);
}

void load_collected(
	struct world *world, const struct node *node, const struct ras_collective_result *result
) {
	struct load *load = &world->load;
	const struct ras_profile *profile = world->options.profile;
	struct load_collective *kept = NULL;
	uint64_t took_ns;

	for (uint32_t n = load->collective_count; n > 0 && kept == NULL; n--) {
		struct load_collective *collective = &load->collectives[n - 1];

		if (collective->root == node->index && collective->id == result->id &&
		    collective->root_start == node->start)
			kept = collective;
	}
	if (kept == NULL || kept->ended) {
		invariants_break(world, node->index, NET_NOBODY, "G: a result nobody asked for");
		return;
	}
	// Measured with the simulator's clock, since the root's own clock may have leapt.
	took_ns = world_now(world) - kept->started_ns;
	kept->ended = true;
	load->collect_ended++;
	load->collect_by_deadline += result->by_deadline;
	load->collect_partial += result->missing_count > 0;
	stats_add(&load->collect_time, took_ns);
	if (result->hops_max > load->collect_hops_max)
		load->collect_hops_max = result->hops_max;
	if (node->healthy_ns < kept->started_ns && node->ailing == 0 &&
	    took_ns > LOAD_COLLECT_NS + profile->leg_grace_ns + WORLD_SEC)
		invariants_break(
			world, node->index, NET_NOBODY, "G: a collective ended %.1f s late",
			(double)(took_ns - LOAD_COLLECT_NS) / 1e9
		);
	load_count(world, node, result);
	if (world->jobs != NULL && result->kind == RAS_COLLECT_COMMS)
		jobs_collected(world->jobs, result, took_ns);
}

// A restarted process has not heard earlier notices, and a notice may reach it late.
void load_started(struct world *world, const struct node *node) {
	if (world->load.notice_heard != NULL)
		world->load.notice_heard[node->index] = 0;
}

// I: a notice is delivered at most once for each start of a node, and never to its origin.
void load_notice(struct world *world, const struct node *node, const void *payload, size_t size) {
	struct load *load = &world->load;
	uint32_t number;

	if (size != sizeof(number))
		return;
	memcpy(&number, payload, sizeof(number));
	if (number != load->notice)
		return;
	if (load->notice_heard[node->index]++ > 0 || node->index == load->notice_origin)
		invariants_break(
			world, node->index, load->notice_origin, "I: notice %u was heard twice",
			number
		);
	load->notices_heard++;
	stats_add(&load->notice_delay, world_now(world) - load->notice_sent_ns);
}
