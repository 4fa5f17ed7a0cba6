// SPDX-License-Identifier: BSD-3-Clause
#include "load_transfer.h"

#include "random.h"
#include "world.h"

#include <lib/must.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define TRANSFER_PORT 101
#define TRANSFER_LIFE_NS (10 * WORLD_SEC)
// Grace period for a transfer: the receiver counts its timeout from the START, which may have
// been under way for as long.
#define TRANSFER_GRACE_NS (12 * WORLD_SEC)
#define TRANSFER_FULL_NS (20 * WORLD_MS)
// One of TRANSFER_FAILS fails at its source; one of TRANSFER_REFUSED is rejected in the middle.
#define TRANSFER_FAILS 11
#define TRANSFER_REFUSED 13

// Most transfers are as small as the answer of one node; a few are as large as the answers of
// many.
static const uint32_t size_limits[] = {0, 2000, 20000, 20000, 200000, 2000000};

void load_transfers_fini(struct load_transfers *transfers) {
	free(transfers->table);
}

static uint8_t transfer_byte(uint64_t tag, uint64_t offset) {
	return (uint8_t)((tag + 1) * 31 + offset + offset / 251);
}

static bool transfer_fails(uint64_t tag) {
	return tag % TRANSFER_FAILS == 1;
}

static bool transfer_is_refused(uint64_t tag) {
	return tag % TRANSFER_REFUSED == 1;
}

static struct load_transfer *transfer_add(struct load_transfers *transfers) {
	if (transfers->count == transfers->capacity) {
		transfers->capacity = transfers->capacity > 0 ? 2 * transfers->capacity : 256;
		transfers->table =
			realloc(transfers->table, transfers->capacity * sizeof(*transfers->table));
		must(transfers->table != NULL);
	}
	return &transfers->table[transfers->count++];
}

void load_transfer_send(struct world *world) {
	struct load_transfers *transfers = &world->load.transfers;
	struct node *from = &world->nodes[world_draw_up(world)];
	struct node *to = &world->nodes[random_below(&world->random, world->options.nodes)];
	uint32_t kind = random_below(&world->random, sizeof(size_limits) / sizeof(size_limits[0]));
	uint64_t size = random_between(&world->random, 0, size_limits[kind]);
	struct ras_transfer_request request = {
		.destination = to->record->id,
		.port = TRANSFER_PORT,
		.tag = transfers->count,
		.size = size % 2 == 0 ? size : RAS_TRANSFER_SIZE_UNKNOWN,
		.life_ns = TRANSFER_LIFE_NS,
	};
	struct load_transfer *transfer;

	if (from->state != NODE_UP || from->leaving)
		return;
	transfer = transfer_add(transfers);
	*transfer = (struct load_transfer){
		.from = from->index,
		.to = to->index,
		.from_start = from->start,
		.to_start = to->start,
		.sent_ns = world_now(world),
		.size = size,
		.refused_at = UINT64_MAX,
	};
	transfer->accepted =
		ras_transfer_send(from->ras, node_now(from), &request, &transfer->id) == 0;
	node_settle(from);
}

void load_transfer_ready(struct world *world, uint32_t index) {
	const struct load_transfer *transfer = &world->load.transfers.table[index];
	struct node *node = &world->nodes[transfer->to];

	if (node->state != NODE_UP || node->start != transfer->to_start)
		return;
	ras_transfer_ready(node->ras, node_now(node), transfer->incoming_id);
	node_settle(node);
}

// Returns NULL and breaks the run if no node sent the transfer.
static struct load_transfer *
transfer_of(struct world *world, const struct node *node, uint64_t tag, bool incoming) {
	struct load_transfers *transfers = &world->load.transfers;
	struct load_transfer *transfer = tag < transfers->count ? &transfers->table[tag] : NULL;
	uint32_t index = transfer == NULL ? NET_NOBODY : incoming ? transfer->to : transfer->from;

	if (transfer == NULL || index != node->index ||
	    node->start != (incoming ? transfer->to_start : transfer->from_start)) {
		invariants_break(
			world, node->index, index,
			"L: transfer %" PRIu64 " was not with this start or node", tag
		);
		return NULL;
	}
	return transfer;
}

int load_transfer_read(
	struct world *world, const struct node *node, struct ras_transfer_read *read
) {
	const struct load_transfer *transfer = transfer_of(world, node, read->tag, false);
	uint8_t *bytes = read->bytes;
	uint64_t left;

	if (transfer == NULL || (transfer_fails(read->tag) && read->offset > transfer->size / 2))
		return -EIO;
	must(read->offset <= transfer->size);
	left = transfer->size - read->offset;
	read->count = left < read->size ? left : read->size;
	read->last = read->count == left;
	for (size_t n = 0; n < read->count; n++)
		bytes[n] = transfer_byte(read->tag, read->offset + n);
	return 0;
}

static void check_segment(
	struct world *world,
	const struct load_transfer *transfer,
	const struct ras_transfer_segment *segment
) {
	const uint8_t *bytes = segment->bytes;
	bool sound = segment->offset == transfer->taken && !transfer->last &&
		     !transfer->consumer_told &&
		     (!transfer->offered || transfer->incoming_id == segment->id) &&
		     segment->last == (segment->offset + segment->size == transfer->size);

	for (size_t n = 0; n < segment->size && sound; n++)
		sound = bytes[n] == transfer_byte(segment->tag, segment->offset + n);
	if (!sound)
		invariants_break(
			world, transfer->to, transfer->from,
			"L: transfer %" PRIu64 ": not as sent, or not once, from byte %" PRIu64,
			segment->tag, segment->offset
		);
}

int load_transfer_take(
	struct world *world, const struct node *node, const struct ras_transfer_segment *segment
) {
	struct load_transfer *transfer = transfer_of(world, node, segment->tag, true);
	uint64_t mixed = segment->tag * UINT64_C(0x9e3779b97f4a7c15) + segment->offset;

	if (transfer == NULL)
		return -EPERM;
	check_segment(world, transfer, segment);
	transfer->offered = true;
	transfer->incoming_id = segment->id;
	if (transfer_is_refused(segment->tag) && segment->offset > transfer->size / 2)
		return -EPERM;
	if ((mixed >> 32) % 16 == 0 && transfer->refused_at != segment->offset) {
		struct event *event = queue_event(&world->queue, WORLD_LOAD, 0);

		transfer->refused_at = segment->offset;
		event->code = LOAD_TRANSFER_READY;
		event->target = (uint32_t)segment->tag;
		queue_push(&world->queue, event, world_now(world) + TRANSFER_FULL_NS);
		return -EAGAIN;
	}
	transfer->taken += segment->size;
	transfer->last = segment->last;
	world->load.transfers.bytes += segment->size;
	return 0;
}

static bool both_well(const struct world *world, const struct load_transfer *transfer) {
	return load_well_since(
		       &world->nodes[transfer->from], transfer->from_start, transfer->sent_ns
	       ) &&
	       load_well_since(&world->nodes[transfer->to], transfer->to_start, transfer->sent_ns);
}

static void source_told(
	struct world *world, struct load_transfer *transfer, const struct ras_transfer_end *end
) {
	struct load_transfers *transfers = &world->load.transfers;
	bool done = end->outcome == RAS_TRANSFER_DONE;

	if (transfer->source_told || end->id != transfer->id ||
	    (done && (!transfer->last || transfer->taken != transfer->size)))
		invariants_break(
			world, transfer->from, transfer->to,
			"L: transfer %" PRIu64 " ended twice, or as done but is not whole", end->tag
		);
	transfer->source_told = true;
	transfers->outcomes[end->outcome]++;
	if (done)
		stats_add(&transfers->time, world_now(world) - transfer->sent_ns);
	if (transfer_fails(end->tag) || transfer_is_refused(end->tag) ||
	    !both_well(world, transfer))
		return;
	transfers->between_live++;
	transfers->between_live_done += done;
}

void load_transfer_ended(
	struct world *world, const struct node *node, const struct ras_transfer_end *end
) {
	struct load_transfer *transfer = transfer_of(world, node, end->tag, end->incoming);

	if (transfer == NULL)
		return;
	if (!end->incoming) {
		source_told(world, transfer, end);
		return;
	}
	if (transfer->consumer_told || !transfer->offered ||
	    transfer->last != (end->outcome == RAS_TRANSFER_DONE))
		invariants_break(
			world, transfer->to, transfer->from,
			"L: the consumer of transfer %" PRIu64 " was told twice, or not so",
			end->tag
		);
	transfer->consumer_told = true;
}

void load_transfers_check(struct world *world) {
	struct load_transfers *transfers = &world->load.transfers;

	for (; transfers->checked < transfers->count; transfers->checked++) {
		const struct load_transfer *transfer = &transfers->table[transfers->checked];
		uint64_t since_ns = transfer->sent_ns;

		if (world_now(world) < since_ns + TRANSFER_LIFE_NS + TRANSFER_GRACE_NS)
			break;
		if ((transfer->accepted && !transfer->source_told &&
		     load_well_since(&world->nodes[transfer->from], transfer->from_start, since_ns)
		    ) ||
		    (transfer->offered && !transfer->consumer_told &&
		     load_well_since(&world->nodes[transfer->to], transfer->to_start, since_ns)))
			invariants_break(
				world, transfer->from, transfer->to,
				"L: nobody was told how transfer %u ended", transfers->checked
			);
	}
}

bool load_transfers_idle(const struct world *world) {
	return world->load.transfers.checked == world->load.transfers.count;
}
