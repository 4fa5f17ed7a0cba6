// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes RAS transfers of one instance that sends, receives, and sends to itself. The input drives
// valid and malformed messages of peers, requests, relay reports, allocation failures, and time.
//
// Checks: a decoded message encodes to the same bytes. A consumer gets bytes in order and none
// after the end. Each end is reported once. Memory is bounded, and none is left at the end.
#include "core/core.h"
#include "relay/transfer_state.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 4
#define SELF 1
#define STEPS_MAX 300
#define IDS_MAX 1024
#define MEMORY_MAX (4u << 20)

struct seen {
	uint64_t taken;
	bool ended, last;
};

struct bed {
	struct ras *ras;
	struct ras_interner *interner;
	struct ras_record *records[PEERS];
	uint64_t now_ns, wake_ns;
	size_t allocated_bytes;
	bool memory_spent;
	int take_result, read_result;
	struct seen seen[IDS_MAX];
	const uint8_t *data;
	size_t size;
};

static void *memory_take(void *ctx, size_t size) {
	struct bed *bed = ctx;

	if (bed->memory_spent)
		return NULL;
	bed->allocated_bytes += size;
	must(bed->allocated_bytes < MEMORY_MAX);
	return calloc(1, size);
}

static void memory_give(void *ctx, void *memory, size_t size) {
	if (memory != NULL)
		((struct bed *)ctx)->allocated_bytes -= size;
	free(memory);
}

static void op_wake(void *ctx, uint64_t at_ns) {
	((struct bed *)ctx)->wake_ns = at_ns;
}

static void op_open(void *ctx, uint32_t conn, const struct sock_addr *to) {
	(void)ctx;
	(void)conn;
	(void)to;
}

static int op_send(void *ctx, uint32_t conn, const void *frame, size_t size) {
	(void)ctx;
	(void)conn;
	(void)frame;
	(void)size;
	return 0;
}

static void op_close(void *ctx, uint32_t conn, enum ras_close how) {
	(void)ctx;
	(void)conn;
	(void)how;
}

static void op_event(void *ctx, const struct ras_event *event) {
	(void)ctx;
	(void)event;
}

static int op_read(void *ctx, struct ras_transfer_read *read) {
	struct bed *bed = ctx;

	must(read->kept <= read->offset && read->size > 0);
	must(read->offset + read->size <= RAS_TRANSFER_BYTES_MAX);
	if (bed->read_result < 0)
		return bed->read_result;
	memset(read->bytes, (int)read->id, read->size);
	read->count = bed->read_result == 1 ? read->size / 2 : read->size;
	read->last = bed->read_result == 2;
	return 0;
}

static int op_take(void *ctx, const struct ras_transfer_segment *segment) {
	struct bed *bed = ctx;
	struct seen *seen = &bed->seen[segment->id % IDS_MAX];

	must(segment->size <= RAS_TRANSFER_SEGMENT_BYTES_MAX);
	must(segment->size > 0 || segment->last);
	must(segment->offset == seen->taken && !seen->last && !seen->ended);
	must(segment->total == RAS_TRANSFER_SIZE_UNKNOWN ||
	     segment->last == (segment->offset + segment->size == segment->total));
	if (bed->take_result < 0)
		return bed->take_result;
	seen->taken += segment->size;
	seen->last = segment->last;
	return 0;
}

static void op_ended(void *ctx, const struct ras_transfer_end *end) {
	struct bed *bed = ctx;
	struct seen *seen = &bed->seen[end->id % IDS_MAX];

	must(end->outcome < RAS_TRANSFER_OUTCOME_COUNT && end->reason < RAS_TRANSFER_REASON_COUNT);
	must(!seen->ended);
	seen->ended = true;
	if (end->incoming)
		must(end->bytes == seen->taken && seen->last == (end->outcome == RAS_TRANSFER_DONE)
		);
}

// Any notice that a peer sends is taken for signed, so that the fuzzer gets behind the check.
static void op_sign(void *ctx, const void *bytes, size_t size, uint8_t *ret_signature) {
	(void)ctx;
	(void)bytes;
	memset(ret_signature, (int)(size & 0xff), RAS_SIGNATURE_BYTES);
}

static bool
op_verify(void *ctx, const uint8_t *key, const void *bytes, size_t size, const uint8_t *signature) {
	(void)ctx;
	(void)key;
	(void)bytes;
	(void)size;
	return signature[0] != 0xff;
}

static const struct ras_ops ops = {
	.open = op_open,
	.send = op_send,
	.close = op_close,
	.wake = op_wake,
	.event = op_event,
	.transfer_read = op_read,
	.sign = op_sign,
	.verify = op_verify,
	.transfer_take = op_take,
	.transfer_ended = op_ended,
};

// Readers of the input.

static uint8_t take(struct bed *bed) {
	if (bed->size == 0)
		return 0;
	bed->size--;
	return *bed->data++;
}

static uint32_t take_number(struct bed *bed) {
	uint32_t value = 0;

	for (uint32_t n = take(bed) & 3; n > 0; n--)
		value = value << 8 | take(bed);
	return value;
}

static uint64_t take_size(struct bed *bed) {
	return take(bed) & 1 ? RAS_TRANSFER_SIZE_UNKNOWN : take_number(bed);
}

static void deliver(struct bed *bed, const void *payload, size_t size) {
	uint32_t from = take(bed) % PEERS;
	struct ras_relay_delivery delivery = {
		.source = bed->records[from]->id,
		.source_incarnation = ras_incarnation(1 + (take(bed) > 250), take(bed) & 1),
		.port = RELAY_PORT_TRANSFER,
		.payload = payload,
		.size = size,
	};

	ras_enter(bed->ras, bed->now_ns);
	transfer_message_received(bed->ras, &delivery);
	ras_exit(bed->ras);
}

static void give_message(struct bed *bed) {
	static const uint8_t bytes[RAS_TRANSFER_SEGMENT_BYTES_MAX];
	static uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX];
	struct transfer_message message = {
		.type = 1 + take(bed) % TRANSFER_END,
		.id = take(bed),
		.port = take(bed),
		.tag = take(bed) & 1,
		.size = take_size(bed),
		.life_ms = take_number(bed),
		.offset = take_number(bed),
		.last = take(bed) & 1,
		.bytes = bytes,
		.count = take_number(bed) % (RAS_TRANSFER_SEGMENT_BYTES_MAX + 1),
		.received = take_number(bed),
		.limit = take_number(bed),
		.outcome = take(bed),
		.reason = take(bed),
	};

	deliver(bed, payload, transfer_message_encode(&message, payload));
}

static void give_bytes(struct bed *bed) {
	static uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX], again[TRANSFER_MESSAGE_BYTES_MAX];
	struct transfer_message message;
	size_t size = take(bed);

	for (size_t n = 0; n < size; n++)
		payload[n] = take(bed);
	if (transfer_message_decode(payload, size, &message) == 0) {
		must(transfer_message_encode(&message, again) == size);
		must(memcmp(payload, again, size) == 0);
	}
	deliver(bed, payload, size);
}

static void ask_send(struct bed *bed) {
	struct ras_transfer_request request = {
		.destination = bed->records[take(bed) % PEERS]->id,
		.port = take(bed),
		.tag = take(bed) & 1,
		.size = take_size(bed),
		.life_ns = take_number(bed) * RAS_NS_PER_MS,
	};
	uint64_t id;

	ras_transfer_send(bed->ras, bed->now_ns, &request, &id);
}

static void give_report(struct bed *bed) {
	struct ras_relay_report report = {
		.message_id = take(bed),
		.outcome = take(bed) % RAS_RELAY_OUTCOME_COUNT,
		.reason = take(bed) % RAS_RELAY_REASON_COUNT,
	};

	ras_enter(bed->ras, bed->now_ns);
	relay_cancel_own(bed->ras, report.message_id);
	transfer_report_received(bed->ras, &report);
	ras_exit(bed->ras);
}

static void pass(struct bed *bed, uint64_t ns) {
	uint64_t until_ns = bed->now_ns + ns;

	for (uint32_t n = 0; n < 50 && bed->wake_ns <= until_ns; n++) {
		if (bed->wake_ns > bed->now_ns)
			bed->now_ns = bed->wake_ns;
		bed->wake_ns = RAS_NEVER;
		ras_tick(bed->ras, bed->now_ns);
	}
	if (bed->now_ns < until_ns)
		bed->now_ns = until_ns;
}

static void tell_of_peer(struct bed *bed) {
	static const uint8_t states[] = {RAS_ALIVE, RAS_DEAD, RAS_LEFT};
	static const uint8_t signature[RAS_SIGNATURE_BYTES];
	struct ras_record *record = bed->records[take(bed) % PEERS];
	struct peer_news news = {
		.id = record->id,
		.incarnation = ras_incarnation(1, take(bed)),
		.record = record,
		.state = states[take(bed) % 3],
	};

	if (news.state == RAS_LEFT)
		news.signature = signature;
	ras_enter(bed->ras, bed->now_ns);
	membership_apply(bed->ras, &news, NULL);
	ras_exit(bed->ras);
}

static void step(struct bed *bed) {
	static const int take_results[] = {0, 0, -EAGAIN, -ENOENT, -EBADMSG, -EPERM};
	static const int read_results[] = {0, 0, 1, 2, -EAGAIN, -EIO};

	switch (take(bed) % 11) {
	case 0:
	case 1:
		give_message(bed);
		return;
	case 2:
		give_bytes(bed);
		return;
	case 3:
		ask_send(bed);
		return;
	case 4:
		ras_transfer_cancel(bed->ras, bed->now_ns, take(bed));
		return;
	case 5:
		ras_transfer_ready(bed->ras, bed->now_ns, take(bed));
		return;
	case 6:
		give_report(bed);
		return;
	case 7:
		bed->take_result = take_results[take(bed) % 6];
		bed->read_result = read_results[take(bed) % 6];
		return;
	case 8:
		bed->memory_spent = take(bed) & 1;
		return;
	case 9:
		tell_of_peer(bed);
		return;
	default:
		pass(bed, take_number(bed) * UINT64_C(10000));
	}
}

static void bed_init(struct bed *bed, const uint8_t *data, size_t size) {
	struct ras_memory memory = {.allocate = memory_take, .release = memory_give, .ctx = bed};
	struct ras_config config = {
		.profile = &ras_profile_fast,
		.cluster = "fuzz",
		.random_seed = 1,
		.history_events = 8,
		.conns_max = 8,
	};

	*bed = (struct bed){.data = data, .size = size, .now_ns = RAS_NS_PER_SEC};
	bed->wake_ns = RAS_NEVER;
	must(ras_interner_create(&memory, &bed->interner) == 0);
	for (uint32_t n = 0; n < PEERS; n++) {
		struct ras_peer_info info = {.start = 1, .key = {1}, .address_count = 1};

		snprintf(info.name, sizeof(info.name), "n%u", n);
		snprintf(info.host, sizeof(info.host), "h%u", n);
		info.addresses[0] = (struct sock_addr
		){.address = {10, 0, 0, (uint8_t)(1 + n)}, .port = 7, .family = SOCK_ADDR_V4};
		must(ras_record_from_info(bed->interner, &info, &bed->records[n]) == 0);
	}
	ras_record_info(bed->records[SELF], &config.self);
	must(ras_create(&config, &memory, bed->interner, &ops, bed, &bed->ras) == 0);
	must(ras_preload(bed->ras, bed->records, PEERS) == 0);
	ras_start(bed->ras, bed->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct bed bed;

	bed_init(&bed, data, size);
	for (uint32_t n = 0; n < STEPS_MAX && bed.size > 0; n++)
		step(&bed);
	bed.memory_spent = false;
	if (size % 3 == 0)
		ras_leave(bed.ras, bed.now_ns);
	ras_destroy(bed.ras);
	for (uint32_t n = 0; n < PEERS; n++)
		ras_record_put(bed.interner, bed.records[n]);
	ras_interner_destroy(bed.interner);
	must(bed.allocated_bytes == 0);
	return 0;
}
