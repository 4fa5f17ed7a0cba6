// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/relay/ras_transfer_bed.h"

#include <support/cmocka.h>

#include <errno.h>

struct bed bed;

uint8_t bed_byte(uint64_t tag, uint64_t offset) {
	uint64_t mixed = (tag + offset / 251) * UINT64_C(0x9e3779b97f4a7c15) + offset;

	return (uint8_t)(mixed >> 32);
}

static int on_read(void *ctx, struct ras_transfer_read *read) {
	struct world_node *node = ctx;
	struct bed_node *user = &bed.nodes[node->index];
	uint8_t *bytes = read->bytes;

	assert_in_range(read->size, 1, RAS_TRANSFER_SEGMENT_BYTES_MAX);
	assert_true(read->kept <= read->offset);
	if (read->offset >= user->read_until)
		return user->read_result;
	while (read->count < read->size && read->offset + read->count < user->read_until &&
	       read->offset + read->count < user->read_total &&
	       (user->read_piece == 0 || read->count < user->read_piece)) {
		bytes[read->count] = bed_byte(read->tag, read->offset + read->count);
		read->count++;
	}
	read->last = read->offset + read->count == user->read_total;
	return 0;
}

static struct bed_arrival *arrival_of(struct bed_node *user, uint64_t id, uint64_t tag) {
	for (uint32_t n = 0; n < user->arrival_count; n++) {
		if (user->arrivals[n].id == id)
			return &user->arrivals[n];
	}
	assert_in_range(user->arrival_count, 0, BED_TRANSFERS_MAX - 1);
	user->arrivals[user->arrival_count] = (struct bed_arrival){.id = id, .tag = tag};
	return &user->arrivals[user->arrival_count++];
}

static int on_take(void *ctx, const struct ras_transfer_segment *segment) {
	struct world_node *node = ctx;
	struct bed_node *user = &bed.nodes[node->index];
	struct bed_arrival *arrival = arrival_of(user, segment->id, segment->tag);
	const uint8_t *bytes = segment->bytes;

	assert_false(arrival->ended);
	assert_false(arrival->last);
	assert_int_equal(segment->port, BED_PORT);
	assert_int_equal(segment->tag, arrival->tag);
	assert_int_equal(segment->offset, arrival->taken);
	assert_true(segment->size > 0 || segment->last);
	if (user->take_room < segment->size ||
	    (segment->size == 0 && user->take_result != 0 && user->take_room == 0))
		return user->take_result;
	user->take_room -= segment->size;
	for (size_t n = 0; n < segment->size; n++) {
		if (bytes[n] != bed_byte(segment->tag, segment->offset + n))
			fail_msg("byte %zu differs", (size_t)segment->offset + n);
	}
	arrival->taken += segment->size;
	arrival->last = segment->last;
	return 0;
}

static void on_ended(void *ctx, const struct ras_transfer_end *end) {
	struct world_node *node = ctx;
	struct bed_node *user = &bed.nodes[node->index];

	assert_in_range(user->end_count, 0, BED_TRANSFERS_MAX - 1);
	for (uint32_t n = 0; n < user->end_count; n++)
		assert_true(user->ends[n].id != end->id); // each end is reported once
	user->ends[user->end_count++] = *end;
	if (end->incoming) {
		struct bed_arrival *arrival = arrival_of(user, end->id, end->tag);

		assert_int_equal(end->bytes, arrival->taken);
		assert_int_equal(end->outcome == RAS_TRANSFER_DONE, arrival->last);
		arrival->ended = true;
	}
}

static const struct ras_ops users = {
	.transfer_read = on_read,
	.transfer_take = on_take,
	.transfer_ended = on_ended,
};

void bed_create(uint32_t nodes) {
	memset(&bed, 0, sizeof(bed));
	for (uint32_t n = 0; n < WORLD_NODES_MAX; n++) {
		bed.nodes[n].take_room = UINT64_MAX;
		bed.nodes[n].read_until = UINT64_MAX;
		bed.nodes[n].read_total = UINT64_MAX;
	}
	bed.world = world_create(&(struct world_setup){.count = nodes, .users = &users});
	world_pass(bed.world, 5 * RAS_NS_PER_SEC);
	assert_true(world_agrees(bed.world));
	world_mark(bed.world);
}

void bed_destroy(void) {
	for (uint32_t n = 0; n < bed.world->count; n++) {
		struct ras_transfer_stats stats = {0};

		if (bed.world->nodes[n].ras == NULL)
			continue;
		stats = bed_stats(n);
		assert_int_equal(stats.outgoing, 0);
		assert_int_equal(stats.incoming, 0);
		assert_int_equal(stats.segments, 0);
		assert_int_equal(stats.held_bytes, 0);
	}
	world_destroy(bed.world);
	bed.world = NULL;
}

int bed_send(uint32_t from, uint32_t to, uint64_t tag, uint64_t size, uint64_t *ret_id) {
	struct ras_transfer_request request = {
		.destination = world_id(bed.world, to),
		.port = BED_PORT,
		.tag = tag,
		.size = size,
	};

	return ras_transfer_send(bed.world->nodes[from].ras, bed.world->now_ns, &request, ret_id);
}

uint64_t bed_start(uint32_t from, uint32_t to, uint64_t tag, uint64_t size) {
	uint64_t id = 0;

	assert_int_equal(bed_send(from, to, tag, size, &id), 0);
	return id;
}

void bed_pass_ms(uint64_t ms) {
	world_pass(bed.world, ms * RAS_NS_PER_MS);
}

static bool idle(void) {
	for (uint32_t n = 0; n < bed.world->count; n++) {
		struct ras_transfer_stats stats;

		if (bed.world->nodes[n].ras == NULL)
			continue;
		stats = bed_stats(n);
		if (stats.outgoing > 0 || stats.incoming > 0)
			return false;
	}
	return true;
}

void bed_settle(uint32_t seconds) {
	uint64_t until_ns = bed.world->now_ns + seconds * RAS_NS_PER_SEC;

	while (!idle()) {
		assert_true(bed.world->now_ns < until_ns);
		bed_pass_ms(10);
	}
}

struct ras_transfer_stats bed_stats(uint32_t node) {
	struct ras_transfer_stats stats;

	ras_transfer_stats(bed.world->nodes[node].ras, &stats);
	return stats;
}

const struct ras_transfer_counters *bed_counters(uint32_t node) {
	return ras_transfer_counters(bed.world->nodes[node].ras);
}

const struct ras_transfer_end *bed_end(uint32_t node) {
	assert_int_equal(bed.nodes[node].end_count, 1);
	return &bed.nodes[node].ends[0];
}

struct transfer *bed_transfer(uint32_t node, bool incoming) {
	struct transfer *transfer = bed.world->nodes[node].ras->transfers->first;

	while (transfer != NULL && transfer->incoming != incoming)
		transfer = transfer->next;
	assert_non_null(transfer);
	return transfer;
}

int bed_inject(uint32_t from, uint32_t to, const void *payload, size_t size) {
	struct ras *ras = bed.world->nodes[to].ras;
	struct ras_relay_delivery delivery = {
		.source = world_id(bed.world, from),
		.source_incarnation = ras_incarnation(1, 0),
		.class = RAS_RELAY_BULK,
		.port = RELAY_PORT_TRANSFER,
		.hops = 1,
		.payload = payload,
		.size = size,
	};
	int err;

	ras_enter(ras, bed.world->now_ns);
	err = transfer_message_received(ras, &delivery);
	ras_exit(ras);
	return err;
}

int bed_inject_message(uint32_t from, uint32_t to, const struct transfer_message *message) {
	uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX];

	return bed_inject(from, to, payload, transfer_message_encode(message, payload));
}
