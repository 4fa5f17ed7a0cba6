// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"

#include "control/ras/ras_ignore.h"

#include <support/cmocka.h>
#include <support/fake_departure.h>

#include <stdio.h>
#include <stdlib.h>

#define STEP_NS (50 * RAS_NS_PER_MS)

// Memory and operations of the instance.

static void *memory_take(void *ctx, size_t size) {
	struct lone *lone = ctx;

	if (lone->memory_spent)
		return NULL;
	lone->allocated_bytes += size;
	return calloc(1, size);
}

static void memory_give(void *ctx, void *memory, size_t size) {
	struct lone *lone = ctx;

	if (memory != NULL)
		lone->allocated_bytes -= size;
	free(memory);
}

static struct lone_conn *conn_of(const struct lone *lone, uint32_t handle) {
	for (uint32_t n = lone->conn_count; n-- > 0;) {
		if (lone->conns[n].handle == handle)
			return (struct lone_conn *)&lone->conns[n];
	}
	fail_msg("no connection has the handle %u", handle);
	return NULL;
}

static struct lone_conn *conn_new(struct lone *lone, uint32_t handle) {
	struct lone_conn *conn = &lone->conns[lone->conn_count++];

	assert_in_range(lone->conn_count, 1, LONE_CONNS_MAX);
	*conn = (struct lone_conn){.handle = handle};
	return conn;
}

static void op_open(void *ctx, uint32_t handle, const struct sock_addr *to) {
	struct lone_conn *conn = conn_new(ctx, handle);

	conn->outgoing = true;
	conn->to = *to;
}

static int op_send(void *ctx, uint32_t handle, const void *frame, size_t size) {
	struct lone *lone = ctx;
	const struct lone_conn *conn = conn_of(lone, handle);
	struct lone_frame *kept = &lone->frames[lone->frame_count];

	assert_true(conn->open && !conn->closed);
	assert_in_range(size, 1, RAS_FRAME_MAX);
	if (lone->full)
		return -EAGAIN;
	assert_in_range(++lone->frame_count, 1, LONE_LOG_MAX);
	*kept = (struct lone_frame){.conn = handle, .size = size, .bytes = malloc(size)};
	assert_non_null(kept->bytes);
	memcpy(kept->bytes, frame, size);
	return 0;
}

static void op_close(void *ctx, uint32_t handle, enum ras_close how) {
	struct lone_conn *conn = conn_of(ctx, handle);

	assert_false(conn->closed);
	conn->closed = true;
	conn->how = how;
}

static void op_wake(void *ctx, uint64_t at_ns) {
	((struct lone *)ctx)->wake_ns = at_ns;
}

static void op_event(void *ctx, const struct ras_event *event) {
	struct lone *lone = ctx;

	assert_in_range(lone->event_count, 0, LONE_LOG_MAX - 1);
	lone->events[lone->event_count++] = *event;
}

static int op_deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	(void)ctx;
	(void)delivery;
	return -ENOENT;
}

static void op_who(void *ctx, uint32_t conn, enum ras_cause cause, uint64_t found) {
	struct lone *lone = ctx;

	lone->who_count++;
	lone->who_conn = conn;
	lone->who_cause = cause;
	lone->who_found = found;
}

static void op_sign(void *ctx, const void *bytes, size_t size, uint8_t *ret_signature) {
	const struct lone *lone = ctx;

	fake_sign(lone->records[lone->self]->key, bytes, size, ret_signature);
}

static const struct ras_ops ops = {
	.who = op_who,
	.open = op_open,
	.send = op_send,
	.close = op_close,
	.wake = op_wake,
	.event = op_event,
	.deliver = op_deliver,
	.report = ignore_report,
	.contribute = ignore_contribute,
	.collected = ignore_collected,
	.notice = ignore_notice,
	.sign = op_sign,
	.verify = fake_verify_op,
};

// Set-up and time.

struct sock_addr lone_address(uint32_t peer) {
	return (struct sock_addr){
		.family = SOCK_ADDR_V4,
		.port = 7000,
		.address = {10, 0, 0, (uint8_t)(peer + 1)},
	};
}

static void info_fill(uint32_t peer, uint32_t host, uint64_t start, struct ras_peer_info *info) {
	*info = (struct ras_peer_info){.start = start, .pid = 1000 + peer, .address_count = 1};
	fake_key(peer, info->key);
	snprintf(info->name, sizeof(info->name), "n%02u", peer);
	snprintf(info->host, sizeof(info->host), "h%02u", host);
	info->addresses[0] = lone_address(peer);
}

struct ras_peer_info lone_info(const struct lone *lone, uint32_t peer, uint64_t start) {
	struct ras_peer_info info;

	ras_record_info(lone->records[peer], &info);
	info.start = start;
	return info;
}

static void config_fill(
	struct lone *lone,
	const struct lone_setup *setup,
	const struct sock_addr *seeds,
	struct ras_config *config
) {
	*config = (struct ras_config){
		.profile = &lone->profile,
		.cluster = LONE_CLUSTER,
		.seeds = seeds,
		.seed_count = setup->joining ? setup->count : 0,
		.random_seed = setup->random_seed != 0 ? setup->random_seed : 7,
		.history_events = 64,
		.conns_max = setup->conns_max != 0 ? setup->conns_max : LONE_CONNS_MAX,
	};
	ras_record_info(lone->records[setup->self], &config->self);
	config->self.start = setup->joining ? 0 : 1;
}

struct lone *lone_create(const struct lone_setup *setup) {
	struct lone *lone = calloc(1, sizeof(*lone));
	struct sock_addr seeds[LONE_PEERS_MAX];
	struct ras_memory memory = {.allocate = memory_take, .release = memory_give, .ctx = lone};
	struct ras_config config;

	assert_non_null(lone);
	lone->profile = setup->profile != NULL ? *setup->profile : ras_profile_fast;
	lone->count = setup->count;
	lone->self = setup->self;
	lone->now_ns = 10 * RAS_NS_PER_SEC;
	lone->wake_ns = RAS_NEVER;
	assert_int_equal(ras_interner_create(&memory, &lone->interner), 0);
	ras_interner_set_signer(lone->interner, &fake_signer);
	for (uint32_t n = 0; n < setup->count; n++) {
		struct ras_peer_info info;

		info_fill(n, setup->per_host > 0 ? n / setup->per_host : n, 1, &info);
		seeds[n] = lone_address(n);
		assert_int_equal(ras_record_from_info(lone->interner, &info, &lone->records[n]), 0);
	}
	config_fill(lone, setup, seeds, &config);
	assert_int_equal(ras_create(&config, &memory, lone->interner, &ops, lone, &lone->ras), 0);
	if (!setup->joining)
		assert_int_equal(ras_preload(lone->ras, lone->records, lone->count), 0);
	ras_start(lone->ras, lone->now_ns);
	return lone;
}

struct lone *lone_of(uint32_t count, uint32_t self) {
	return lone_create(&(struct lone_setup){.count = count, .self = self});
}

void lone_destroy(struct lone *lone) {
	lone_mark(lone);
	ras_destroy(lone->ras);
	for (uint32_t n = 0; n < lone->count; n++)
		ras_record_put(lone->interner, lone->records[n]);
	ras_interner_destroy(lone->interner);
	assert_int_equal(lone->allocated_bytes, 0);
	free(lone);
}

void lone_pass(struct lone *lone, uint64_t ns) {
	uint64_t until = lone->now_ns + ns;

	while (lone->wake_ns <= until) {
		if (lone->wake_ns > lone->now_ns)
			lone->now_ns = lone->wake_ns;
		lone->wake_ns = RAS_NEVER;
		ras_tick(lone->ras, lone->now_ns);
	}
	lone->now_ns = until;
}

void lone_pass_beating(struct lone *lone, uint64_t ns, uint32_t conn) {
	uint64_t until = lone->now_ns + ns;

	while (lone->now_ns < until) {
		uint64_t left = until - lone->now_ns;

		if (!lone_is_closed(lone, conn))
			lone_beat(lone, conn, 1, RAS_USE_NEXT);
		lone_pass(lone, left < 10 * STEP_NS ? left : 10 * STEP_NS);
	}
}

void lone_pass_refusing(struct lone *lone, uint64_t ns, uint32_t peer) {
	uint64_t until = lone->now_ns + ns;

	while (lone->now_ns < until) {
		uint64_t left = until - lone->now_ns;
		uint32_t conn = lone_opening(lone, peer);

		if (conn != 0)
			lone_end(lone, conn, RAS_CAUSE_REFUSED);
		lone_pass(lone, left < STEP_NS ? left : STEP_NS);
	}
}

// Peers.

uint64_t lone_id(const struct lone *lone, uint32_t peer) {
	return lone->records[peer]->id;
}

struct ras_peer lone_peer(const struct lone *lone, uint32_t peer) {
	struct ras_peer found;

	assert_int_equal(ras_peer_find(lone->ras, lone_id(lone, peer), &found), 0);
	return found;
}

struct link *lone_find_link(const struct lone *lone, uint32_t peer) {
	uint32_t slot = peers_find(&lone->ras->peers, lone_id(lone, peer));

	return slot != RAS_NO_SLOT ? link_find(lone->ras, slot) : NULL;
}

uint32_t lone_accept(struct lone *lone) {
	struct sock_addr from = lone_address(200);
	uint32_t handle;

	assert_int_equal(ras_conn_accepted(lone->ras, lone->now_ns, &from, &handle), 0);
	conn_new(lone, handle)->open = true;
	return handle;
}

void lone_frame(struct lone *lone, uint32_t conn, const void *bytes, size_t size) {
	assert_false(lone_is_closed(lone, conn));
	ras_conn_frame(lone->ras, lone->now_ns, conn, bytes, size);
}

struct message_init lone_init(const struct lone *lone, uint32_t peer, uint32_t uses) {
	const struct ras_record *record = lone->records[peer];

	return (struct message_init){
		.version_min = ras_versions_built.min,
		.version_max = ras_versions_built.max,
		.cluster = lone->ras->cluster,
		.uses = uses,
		.record = record->encoding,
		.record_size = record->size,
		.incarnation = ras_incarnation(record->start, 0),
		.digest = peers_digest(&lone->ras->peers),
		.your_state = RAS_ALIVE,
		.your_incarnation = ras_self_incarnation(lone->ras),
	};
}

void lone_send_init(struct lone *lone, uint32_t conn, const struct message_init *init) {
	uint8_t bytes[4096];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(message_init_encode(init, &writer), 0);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
}

uint32_t lone_connect(struct lone *lone, uint32_t peer, uint32_t uses) {
	struct message_init init = lone_init(lone, peer, uses);
	uint32_t conn = lone_accept(lone);

	lone_send_init(lone, conn, &init);
	assert_int_equal(lone_refusal(lone, conn), RAS_CAUSE_NONE);
	return conn;
}

uint32_t lone_opening(const struct lone *lone, uint32_t peer) {
	struct sock_addr address = lone_address(peer);

	for (uint32_t n = lone->conn_count; n-- > 0;) {
		const struct lone_conn *conn = &lone->conns[n];

		if (conn->outgoing && !conn->open && !conn->closed &&
		    sock_addr_equal(&conn->to, &address))
			return conn->handle;
	}
	return 0;
}

struct message_init_ack lone_ack(const struct lone *lone, uint32_t peer) {
	const struct ras_record *record = lone->records[peer];

	return (struct message_init_ack){
		.version_min = ras_versions_built.min,
		.version = ras_versions_built.max,
		.record = record->encoding,
		.record_size = record->size,
		.incarnation = ras_incarnation(record->start, 0),
		.digest = peers_digest(&lone->ras->peers),
		.your_state = RAS_ALIVE,
		.your_incarnation = ras_self_incarnation(lone->ras),
	};
}

void lone_send_ack(struct lone *lone, uint32_t conn, const struct message_init_ack *ack) {
	uint8_t bytes[4096];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(message_init_ack_encode(ack, &writer), 0);
	if (!conn_of(lone, conn)->open) {
		conn_of(lone, conn)->open = true;
		ras_conn_opened(lone->ras, lone->now_ns, conn);
	}
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
}

uint32_t lone_answer(struct lone *lone, uint32_t peer) {
	struct message_init_ack ack = lone_ack(lone, peer);
	uint32_t conn = lone_opening(lone, peer);

	assert_int_not_equal(conn, 0);
	lone_send_ack(lone, conn, &ack);
	return conn;
}

uint32_t lone_link(struct lone *lone, uint32_t peer) {
	const struct link *link;
	uint32_t conn;

	if (lone_opening(lone, peer) != 0)
		conn = lone_answer(lone, peer);
	else
		conn = lone_connect(lone, peer, RAS_USE_NEXT);
	link = lone_find_link(lone, peer);
	assert_true(link != NULL && link_is_ready(link));
	lone_beat(lone, conn, 1, RAS_USE_NEXT); // as any peer does at once
	return conn;
}

void lone_beat(struct lone *lone, uint32_t conn, uint32_t sequence, uint32_t uses) {
	struct message_beat beat = {
		.sequence = sequence,
		.digest = peers_digest(&lone->ras->peers),
		.uses = uses,
		.period = 1,
	};
	uint8_t bytes[64];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_beat_encode(&beat, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
}

void lone_news(struct lone *lone, uint32_t conn, const struct peer_news *news) {
	uint8_t bytes[4096];
	struct wire_writer writer;
	uint32_t waits;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	message_news_encode(news, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	waits = peers_find(&lone->ras->hearsay.names, news->id);
	if (waits == RAS_NO_SLOT)
		return;
	peers_entry(&lone->ras->hearsay.names, waits)->observers[0] = 1;
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
}

const uint8_t *lone_departure(const struct lone *lone, uint32_t peer, uint64_t incarnation) {
	static uint8_t signatures[LONE_PEERS_MAX][RAS_SIGNATURE_BYTES];
	const struct ras_record *record = lone->records[peer];

	fake_departure(lone->ras->cluster, record->id, incarnation, record->key, signatures[peer]);
	return signatures[peer];
}

struct peer_news
lone_told(const struct lone *lone, uint32_t peer, enum ras_state state, uint64_t incarnation) {
	return (struct peer_news){
		.id = lone_id(lone, peer),
		.incarnation = incarnation,
		.state = (uint8_t)state,
		.cause = state == RAS_DEAD ? RAS_CAUSE_SILENT : RAS_CAUSE_NONE,
		.observer_count = state == RAS_DEAD ? RAS_OBSERVERS_MAX : 0,
		.observers = {12345, 12346}, // unknown here
		.hops = 1,
		.signature = state == RAS_LEFT ? lone_departure(lone, peer, incarnation) : NULL,
	};
}

void lone_end(struct lone *lone, uint32_t conn, enum ras_cause cause) {
	assert_false(lone_is_closed(lone, conn));
	conn_of(lone, conn)->closed = true;
	ras_conn_ended(lone->ras, lone->now_ns, conn, cause);
}

// Results.

void lone_mark(struct lone *lone) {
	while (lone->frame_count > 0)
		free(lone->frames[--lone->frame_count].bytes);
	lone->event_count = 0;
}

uint32_t lone_sent(const struct lone *lone, uint32_t conn, enum message_type type) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->frame_count; n++)
		count += lone->frames[n].conn == conn && lone->frames[n].bytes[0] == type;
	return count;
}

const struct lone_frame *
lone_latest(const struct lone *lone, uint32_t conn, enum message_type type) {
	for (uint32_t n = lone->frame_count; n-- > 0;) {
		if (lone->frames[n].conn == conn && lone->frames[n].bytes[0] == type)
			return &lone->frames[n];
	}
	fail_msg("no message of type %d was sent", (int)type);
	return NULL;
}

bool lone_is_closed(const struct lone *lone, uint32_t conn) {
	return conn_of(lone, conn)->closed;
}

uint32_t lone_events(const struct lone *lone, enum ras_event_kind kind) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->event_count; n++)
		count += lone->events[n].kind == kind;
	return count;
}

const struct ras_event *lone_event(const struct lone *lone, enum ras_event_kind kind) {
	for (uint32_t n = lone->event_count; n-- > 0;) {
		if (lone->events[n].kind == kind)
			return &lone->events[n];
	}
	fail_msg("no event %s", ras_event_name(kind));
	return NULL;
}

enum ras_cause lone_refusal(const struct lone *lone, uint32_t conn) {
	const struct lone_frame *frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
	struct message_init_ack ack;
	struct wire_reader reader;

	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
	return ack.refusal;
}
