// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes one RAS instance among a few peers. The input drives connections that are accepted,
// opened, ended and stalled, valid and malformed frames, requests, and time.
//
// Checks: no crash, and no operation on a handle that the core does not own. Memory is bounded, and
// none is left at the end.
#include "core/core.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 6
#define SELF 2
#define CONNS_MAX_HERE 24
#define STEPS_MAX 400
#define MEMORY_MAX (8u << 20)

enum handle_state {
	HANDLE_NONE,
	HANDLE_OPENING,
	HANDLE_OPEN,
};

struct bed {
	struct ras *ras;
	struct ras_interner *interner;
	struct ras_record *records[PEERS];
	struct ras_record *newer[PEERS]; // records with the next start number of each peer
	uint64_t now_ns, wake_ns;
	size_t allocated_bytes;
	bool full;
	uint64_t transfers[RAS_TRANSFERS_MAX]; // outgoing transfers, 0 for none
	uint64_t consumed;		       // latest transfer that was offered to this instance
	struct {
		uint32_t handle;
		enum handle_state state;
		bool outgoing;
	} conns[CONNS_MAX_HERE];
	const uint8_t *data;
	size_t size;
};

static void *memory_take(void *ctx, size_t size) {
	struct bed *bed = ctx;

	must(size < MEMORY_MAX);
	bed->allocated_bytes += size;
	must(bed->allocated_bytes < MEMORY_MAX);
	return calloc(1, size);
}

static void memory_give(void *ctx, void *memory, size_t size) {
	struct bed *bed = ctx;

	if (memory != NULL)
		bed->allocated_bytes -= size;
	free(memory);
}

static uint32_t place_of(const struct bed *bed, uint32_t handle) {
	for (uint32_t n = 0; n < CONNS_MAX_HERE; n++) {
		if (bed->conns[n].state != HANDLE_NONE && bed->conns[n].handle == handle)
			return n;
	}
	must(false); // the core does not own this handle, or no longer
	return 0;
}

static void place_take(struct bed *bed, uint32_t handle, enum handle_state state) {
	uint32_t n = 0;

	while (n < CONNS_MAX_HERE && bed->conns[n].state != HANDLE_NONE) {
		must(bed->conns[n].handle != handle);
		n++;
	}
	must(n < CONNS_MAX_HERE); // conns_max has the same value
	bed->conns[n].handle = handle;
	bed->conns[n].state = state;
	bed->conns[n].outgoing = state == HANDLE_OPENING;
}

static void op_open(void *ctx, uint32_t handle, const struct sock_addr *to) {
	must(to->family == SOCK_ADDR_V4 || to->family == SOCK_ADDR_V6);
	place_take(ctx, handle, HANDLE_OPENING);
}

static int op_send(void *ctx, uint32_t handle, const void *frame, size_t size) {
	struct bed *bed = ctx;
	uint8_t sum = 0;

	must(bed->conns[place_of(bed, handle)].state == HANDLE_OPEN);
	must(size > 0 && size <= RAS_FRAME_MAX);
	for (size_t n = 0; n < size; n++)
		sum = (uint8_t)(sum + ((const uint8_t *)frame)[n]); // all bytes must be readable
	return bed->full ? -EAGAIN : 0;
}

static void op_close(void *ctx, uint32_t handle, enum ras_close how) {
	struct bed *bed = ctx;

	(void)how;
	bed->conns[place_of(bed, handle)].state = HANDLE_NONE;
}

static void op_wake(void *ctx, uint64_t at_ns) {
	((struct bed *)ctx)->wake_ns = at_ns;
}

static void op_event(void *ctx, const struct ras_event *event) {
	(void)ctx;
	must(event->kind < RAS_EVENT_KIND_COUNT && event->cause <= UINT8_MAX);
	must(memchr(event->name, 0, sizeof(event->name)) != NULL);
}

static int op_deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	static const int answers[] = {0, -EAGAIN, -ENOENT, -EBADMSG};

	(void)ctx;
	return answers[delivery->port % 4];
}

static void op_report(void *ctx, const struct ras_relay_report *report) {
	(void)ctx;
	must(report->outcome < RAS_RELAY_OUTCOME_COUNT);
}

static bool
op_contribute(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer) {
	(void)ctx;
	wire_put_u32(writer, wanted->part);
	return wanted->part < 2;
}

static void op_collected(void *ctx, const struct ras_collective_result *result) {
	(void)ctx;
	must(result->answered <= result->member_count + result->surplus);
}

static void op_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	(void)ctx;
	(void)origin;
	(void)payload;
	must(kind >= RAS_NOTICE_OWN_MIN && size <= RAS_NOTICE_BYTES_MAX);
}

static uint64_t *transfer_place(struct bed *bed, uint64_t id) {
	for (uint32_t n = 0; n < RAS_TRANSFERS_MAX; n++) {
		if (bed->transfers[n] == id)
			return &bed->transfers[n];
	}
	must(false); // the transfer was already reported, was never sent, or exceeds the limit
	return NULL;
}

// Read bytes for a transfer. The tag selects: unlimited bytes, some and then none for now, the last
// ones, an error.
static int op_transfer_read(void *ctx, struct ras_transfer_read *read) {
	transfer_place(ctx, read->id);
	must(read->size > 0 && read->size <= RAS_TRANSFER_SEGMENT_BYTES_MAX);
	must(read->kept <= read->offset && read->offset <= RAS_TRANSFER_BYTES_MAX);
	if (read->tag % 4 == 3 || (read->tag % 4 == 1 && read->offset > 0))
		return read->tag % 4 == 3 ? -EIO : -EAGAIN;
	memset(read->bytes, (int)read->tag, read->size);
	read->count = read->tag % 4 == 2 ? (read->size + 1) / 2 : read->size;
	read->last = read->tag % 4 == 2;
	return 0;
}

static int op_transfer_take(void *ctx, const struct ras_transfer_segment *segment) {
	static const int answers[] = {0, -EAGAIN, -ENOENT, -EBADMSG};
	struct bed *bed = ctx;

	bed->consumed = segment->id;
	must(segment->size <= RAS_TRANSFER_SEGMENT_BYTES_MAX);
	return answers[segment->port % 4];
}

static void op_transfer_ended(void *ctx, const struct ras_transfer_end *end) {
	must(end->outcome < RAS_TRANSFER_OUTCOME_COUNT);
	must(end->reason < RAS_TRANSFER_REASON_COUNT);
	if (!end->incoming)
		*transfer_place(ctx, end->id) = 0;
}

// Nearly all that a peer sends is taken for signed, so that the fuzzer gets behind the check.
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
	.deliver = op_deliver,
	.report = op_report,
	.contribute = op_contribute,
	.collected = op_collected,
	.notice = op_notice,
	.transfer_read = op_transfer_read,
	.sign = op_sign,
	.verify = op_verify,
	.transfer_take = op_transfer_take,
	.transfer_ended = op_transfer_ended,
};

// Readers of the input.

static uint8_t take(struct bed *bed) {
	if (bed->size == 0)
		return 0;
	bed->size--;
	return *bed->data++;
}

static uint64_t take_number(struct bed *bed) {
	uint64_t value = 0;

	for (uint32_t n = take(bed) & 7; n > 0; n--)
		value = value << 8 | take(bed);
	return value;
}

static struct ras_record *take_record(struct bed *bed) {
	uint8_t choice = take(bed);

	return choice & 0x80 ? bed->newer[choice % PEERS] : bed->records[choice % PEERS];
}

static uint64_t take_incarnation(struct bed *bed, const struct ras_record *record) {
	uint8_t choice = take(bed);

	return choice < 200 ? ras_incarnation(record->start, choice & 3) : take_number(bed);
}

// Choose a connection in the given state. Returns false if there is none.
static bool take_conn(struct bed *bed, enum handle_state state, uint32_t *ret_handle) {
	uint32_t start = take(bed);

	for (uint32_t n = 0; n < CONNS_MAX_HERE; n++) {
		uint32_t place = (start + n) % CONNS_MAX_HERE;

		if (bed->conns[place].state == state) {
			*ret_handle = bed->conns[place].handle;
			return true;
		}
	}
	return false;
}

static void put_init(struct bed *bed, struct wire_writer *writer) {
	const struct ras_record *record = take_record(bed);
	struct message_init init = {
		.version_min = ras_versions_built.min,
		.version_max = (uint16_t)(ras_versions_built.max + (take(bed) & 1)),
		.cluster = take(bed) > 5 ? bed->ras->cluster : 7,
		.flags = take(bed) > 200 ? MESSAGE_INIT_JOIN : 0,
		.uses = (uint32_t)take_number(bed),
		.record = record->encoding,
		.record_size = record->size,
		.incarnation = take_incarnation(bed, record),
		.digest = take_number(bed),
		.your_state = take(bed) % (RAS_LEFT + 1),
		.your_incarnation = take_number(bed),
	};

	must(message_init_encode(&init, writer) == 0);
}

static void put_ack(struct bed *bed, struct wire_writer *writer) {
	const struct ras_record *record = take_record(bed);
	struct message_init_ack ack = {
		.version_min = ras_versions_built.min,
		.version = ras_versions_built.max,
		.refusal = take(bed) > 60 ? RAS_CAUSE_NONE : take(bed) % RAS_CAUSE_COUNT,
		.uses = (uint32_t)take_number(bed),
		.record = record->encoding,
		.record_size = record->size,
		.incarnation = take_incarnation(bed, record),
		.digest = take_number(bed),
		.your_state = take(bed) % (RAS_LEFT + 1),
		.your_incarnation = take_number(bed),
		.your_start = take_number(bed),
	};

	must(message_init_ack_encode(&ack, writer) == 0);
}

// Write one item. Some are written as by a newer version: other flags, another state, or more
// bytes.
static void put_item(struct bed *bed, const struct peer_news *news, struct wire_writer *writer) {
	size_t at = wire_writer_used(writer);
	uint8_t more = take(bed);

	message_news_encode(news, writer);
	if (more < 200)
		return;
	for (uint32_t n = more - 200; n > 0; n--)
		wire_put_u8(writer, take(bed));
	wire_patch_u16(
		writer, at, (uint16_t)(wire_writer_used(writer) - at - MESSAGE_ITEM_LENGTH_BYTES)
	);
	if ((more & 1) != 0) // the flags, then the state
		wire_patch_u16(
			writer, at + MESSAGE_ITEM_LENGTH_BYTES,
			(uint16_t)(take(bed) | take(bed) << 8)
		);
}

static void put_news(struct bed *bed, struct wire_writer *writer) {
	static const uint8_t states[] = {RAS_ALIVE, RAS_DEAD, RAS_LEFT};
	uint8_t signature[RAS_SIGNATURE_BYTES] = {0};

	wire_put_u8(writer, MESSAGE_UPDATE);
	for (uint32_t n = 1 + (take(bed) & 3); n > 0; n--) {
		struct ras_record *record = take_record(bed);
		struct peer_news news = {
			.id = take(bed) > 10 ? record->id : take_number(bed),
			.incarnation = take_incarnation(bed, record),
			.record = take(bed) & 1 ? record : NULL,
			.maint = (uint32_t)take_number(bed),
			.state = states[take(bed) % 3],
			.cause = take(bed) % (RAS_CAUSE_COUNT + 2),
			.hops = take(bed),
			.observer_count = take(bed) % (RAS_OBSERVERS_MAX + 1),
		};

		for (uint32_t k = 0; k < news.observer_count; k++)
			news.observers[k] = bed->records[take(bed) % PEERS]->id;
		signature[0] = news.hops; // see op_verify()
		if (news.state == RAS_LEFT && news.hops > 0)
			news.signature = signature;
		put_item(bed, &news, writer);
	}
}

static void put_brief(struct bed *bed, struct wire_writer *writer) {
	uint64_t mask = take(bed) & 1 ? UINT64_MAX : take_number(bed);

	message_brief_begin(mask, take(bed), writer);
	for (uint32_t n = take(bed) & 7; n > 0; n--) {
		const struct ras_record *record = take_record(bed);
		struct message_brief brief = {
			.id = take(bed) > 10 ? record->id : take_number(bed),
			.incarnation = take_incarnation(bed, record),
			.record_digest = take(bed) & 1 ? record->digest : take_number(bed),
			.maint = (uint32_t)take_number(bed),
			.state = take(bed) % (RAS_LEFT + 3),
		};

		message_brief_encode(&brief, writer);
	}
}

static void put_beat(struct bed *bed, struct wire_writer *writer) {
	struct message_beat beat = {
		.sequence = (uint32_t)take_number(bed),
		.echo = (uint32_t)take_number(bed),
		.echo_delay_us = (uint32_t)take_number(bed),
		.digest = take(bed) & 1 ? peers_digest(&bed->ras->peers) : take_number(bed),
		.uses = (uint32_t)take_number(bed),
		.period = take(bed),
		.flags = take(bed),
		.wall_ns = take(bed) & 1 ? take_number(bed) : 0,
	};

	message_beat_encode(&beat, writer);
}

static void put_bytes(struct bed *bed, struct wire_writer *writer) {
	size_t size = take(bed);

	wire_put_u8(writer, take(bed));
	if (size > bed->size)
		size = bed->size;
	wire_put_bytes(writer, bed->data, size);
	bed->data += size;
	bed->size -= size;
}

static void put_run(struct bed *bed, struct wire_writer *writer) {
	wire_put_u8(writer, take(bed) & 1 ? MESSAGE_DIGESTS : MESSAGE_PULL);
	for (uint32_t n = 0; n < PEERS_RANGES; n++)
		wire_put_u64(writer, take(bed) & 1 ? bed->records[n % PEERS]->id : n);
}

static void frame_step(struct bed *bed) {
	static void (*const puts[])(struct bed * bed, struct wire_writer * writer) = {
		put_init, put_ack, put_news, put_brief, put_beat, put_bytes, put_run, put_news,
	};
	uint8_t frame[16384];
	struct wire_writer writer;
	size_t size;
	uint32_t handle;

	if (!take_conn(bed, HANDLE_OPEN, &handle))
		return;
	wire_writer_init(&writer, frame, sizeof(frame));
	puts[take(bed) % 8](bed, &writer);
	size = wire_writer_used(&writer);
	if (take(bed) > 250)
		size -= size * take(bed) / 256;
	ras_conn_frame(bed->ras, bed->now_ns, handle, frame, size);
}

static void conn_step(struct bed *bed) {
	struct sock_addr from = bed->records[0]->address;
	uint32_t handle;

	switch (take(bed) % 5) {
	case 0:
		if (ras_conn_accepted(bed->ras, bed->now_ns, &from, &handle) == 0)
			place_take(bed, handle, HANDLE_OPEN);
		return;
	case 1:
		if (!take_conn(bed, HANDLE_OPENING, &handle))
			return;
		bed->conns[place_of(bed, handle)].state = HANDLE_OPEN;
		ras_conn_opened(bed->ras, bed->now_ns, handle);
		return;
	case 2:
	case 3:
		if (!take_conn(bed, take(bed) & 1 ? HANDLE_OPEN : HANDLE_OPENING, &handle))
			return;
		bed->conns[place_of(bed, handle)].state = HANDLE_NONE;
		ras_conn_ended(bed->ras, bed->now_ns, handle, take(bed) % RAS_CAUSE_COUNT);
		return;
	default:
		bed->full = take(bed) & 1;
		if (!bed->full && take_conn(bed, HANDLE_OPEN, &handle))
			ras_conn_writable(bed->ras, bed->now_ns, handle);
	}
}

static void time_step(struct bed *bed) {
	uint64_t until = bed->now_ns + take(bed) * (take(bed) & 1 ? UINT64_C(100000000) : 1000000);
	uint32_t ticks = 0;

	if (take(bed) > 240)
		bed->now_ns = until; // simulates that the process was stopped
	while (bed->wake_ns <= until) {
		if (bed->wake_ns > bed->now_ns)
			bed->now_ns = bed->wake_ns;
		bed->wake_ns = RAS_NEVER;
		ras_tick(bed->ras, bed->now_ns);
		must(++ticks < 100000); // no wake-up is requested in an endless loop
	}
	if (until > bed->now_ns)
		bed->now_ns = until;
}

// Set new seeds: some of the peers, possibly this instance itself, or none.
static void seeds_step(struct bed *bed) {
	struct sock_addr seeds[PEERS];
	uint32_t count = take(bed) % (PEERS + 1);

	for (uint32_t n = 0; n < count; n++)
		seeds[n] = bed->records[take(bed) % PEERS]->address;
	must(ras_set_seeds(bed->ras, seeds, count) == 0);
	must(ras_remembered(bed->ras, seeds, count) == 0);
}

static void transfer_step(struct bed *bed, uint64_t peer) {
	uint64_t id = bed->transfers[take(bed) % RAS_TRANSFERS_MAX];
	struct ras_transfer_request request = {
		.destination = peer,
		.port = RAS_RELAY_PORT_MIN + (take(bed) & 3),
		.tag = take(bed),
		.size = take(bed) & 1 ? RAS_TRANSFER_SIZE_UNKNOWN : take_number(bed),
		.life_ns = take_number(bed),
	};

	if (take(bed) & 1)
		id = bed->consumed;
	switch (take(bed) % 4) {
	case 0:
		ras_transfer_cancel(bed->ras, bed->now_ns, id);
		break;
	case 1:
		ras_transfer_ready(bed->ras, bed->now_ns, id);
		break;
	default:
		if (ras_transfer_send(bed->ras, bed->now_ns, &request, &id) == 0)
			*transfer_place(bed, 0) = id;
	}
}

static void request_step(struct bed *bed) {
	uint64_t peer = bed->records[take(bed) % PEERS]->id;
	struct ras_evidence evidence = {
		.source = take(bed) % 3,
		.observer = bed->records[0]->id,
		.subject = peer,
		.alive = take(bed) & 1,
		.age_ns = take_number(bed),
	};
	struct ras_relay_message message = {
		.destination = peer,
		.class = take(bed) % RAS_RELAY_CLASS_COUNT,
		.flags = take(bed) & (RAS_RELAY_REPORT | RAS_RELAY_ORDERED),
		.port = RAS_RELAY_PORT_MIN + (take(bed) & 3),
		.payload = "payload",
		.size = 7,
	};
	uint64_t id;

	switch (take(bed) % 12) {
	case 0:
		ras_set_maintenance(bed->ras, bed->now_ns, peer, take(bed) & 1);
		break;
	case 1:
		ras_forget(bed->ras, bed->now_ns, peer);
		break;
	case 2:
	case 3:
		ras_evidence(bed->ras, bed->now_ns, &evidence);
		break;
	case 4:
		ras_relay_send(bed->ras, bed->now_ns, &message, &id);
		break;
	case 5:
		ras_collect(bed->ras, bed->now_ns, 1 + take(bed) % 4, take_number(bed), &id);
		break;
	case 6:
		ras_notice(bed->ras, bed->now_ns, RAS_NOTICE_OWN_MIN, "notice", 6);
		break;
	case 7:
		seeds_step(bed);
		break;
	case 8:
	case 9:
	case 10:
		transfer_step(bed, peer);
		break;
	default:
		if (take(bed) > 250)
			ras_leave(bed->ras, bed->now_ns);
	}
}

static void foreign_check(const struct bed *bed) {
	const struct foreign *foreign = &bed->ras->foreign;
	uint32_t pending = 0;
	size_t bytes = 0;

	for (uint32_t n = 0; n < foreign->count; n++) {
		must(n == 0 || foreign->items[n - 1].id < foreign->items[n].id);
		bytes += foreign->items[n].size;
		pending += foreign->items[n].pending;
	}
	must(bytes == foreign->bytes && bytes <= FOREIGN_BYTES_MAX);
	must(pending == foreign->pending && foreign->count <= FOREIGN_ITEMS_MAX);
}

static void transfers_check(const struct bed *bed) {
	struct ras_transfer_stats stats;

	ras_transfer_stats(bed->ras, &stats);
	must(stats.outgoing <= RAS_TRANSFERS_MAX && stats.incoming <= RAS_TRANSFERS_MAX);
	must(stats.held_bytes <= stats.incoming * RAS_TRANSFER_WINDOW_BYTES);
}

static void view_check(const struct bed *bed) {
	struct ras_view view;
	struct ras_peer peer;
	uint32_t alive = 0;

	ras_view(bed->ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(bed->ras, slot, &peer) == 0)
			alive += peer.state >= RAS_ALIVE && peer.state <= RAS_UNREACHABLE;
	}
	must(alive == view.alive);
	must(ras_peer_find(bed->ras, ras_self_id(bed->ras), &peer) == 0);
	must(peer.state == RAS_ALIVE); // an instance never judges itself
}

static struct ras_record *record_of(struct bed *bed, uint32_t peer, uint64_t start) {
	struct ras_peer_info info = {.start = start, .key = {1}, .address_count = 1};
	struct ras_record *record;

	snprintf(info.name, sizeof(info.name), "n%u", peer);
	snprintf(info.host, sizeof(info.host), "h%u", peer / 2);
	info.addresses[0] = (struct sock_addr
	){.family = SOCK_ADDR_V4, .port = 7, .address = {10, 0, 0, (uint8_t)peer}};
	must(ras_record_from_info(bed->interner, &info, &record) == 0);
	return record;
}

static void bed_make(struct bed *bed, uint8_t choice) {
	struct ras_memory memory = {.allocate = memory_take, .release = memory_give, .ctx = bed};
	struct sock_addr seeds[PEERS];
	struct ras_config config = {
		.profile = choice & 1 ? &ras_profile_nccl : &ras_profile_fast,
		.cluster = "fuzz",
		.seeds = seeds,
		.seed_count = choice & 2 ? PEERS : 0,
		.random_seed = choice,
		.history_events = 8,
		.conns_max = CONNS_MAX_HERE,
	};

	must(ras_interner_create(&memory, &bed->interner) == 0);
	for (uint32_t n = 0; n < PEERS; n++) {
		bed->records[n] = record_of(bed, n, 1);
		bed->newer[n] = record_of(bed, n, 2);
		seeds[n] = bed->records[n]->address;
	}
	ras_record_info(bed->records[SELF], &config.self);
	must(ras_create(&config, &memory, bed->interner, &ops, bed, &bed->ras) == 0);
	if ((choice & 2) == 0)
		must(ras_preload(bed->ras, bed->records, PEERS) == 0);
	bed->now_ns = RAS_NS_PER_SEC;
	ras_start(bed->ras, bed->now_ns);
	ras_set_wall_clock(bed->ras, bed->now_ns, UINT64_C(1700000000) * RAS_NS_PER_SEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct bed bed = {.data = data, .size = size, .wake_ns = RAS_NEVER};

	bed_make(&bed, take(&bed));
	for (uint32_t step = 0; step < STEPS_MAX && bed.size > 0; step++) {
		switch (take(&bed) % 8) {
		case 0:
		case 1:
			conn_step(&bed);
			break;
		case 2:
			time_step(&bed);
			break;
		case 3:
			request_step(&bed);
			break;
		default:
			frame_step(&bed);
		}
		view_check(&bed);
		transfers_check(&bed);
		foreign_check(&bed);
	}
	ras_destroy(bed.ras);
	for (uint32_t n = 0; n < PEERS; n++) {
		ras_record_put(bed.interner, bed.records[n]);
		ras_record_put(bed.interner, bed.newer[n]);
	}
	ras_interner_destroy(bed.interner);
	must(bed.allocated_bytes == 0);
	return 0;
}
