// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/relay/ras_relay_net.h"

#include <lib/splitmix.h>
#include <support/cmocka.h>
#include <support/heap.h>

#include <stdio.h>
#include <stdlib.h>

static struct conn some_conn; // connection of every link that is up; its contents are not used

// The core around the relay

static struct net_node *node_of(const struct ras *ras) {
	return ras->ops_ctx;
}

static uint32_t index_of(const struct ras *ras, uint32_t slot) {
	const struct net *net = node_of(ras)->net;
	uint64_t id = ras_entry(ras, slot)->record->id;

	for (uint32_t n = 0; n < net->count; n++) {
		if (net->ids[n] == id)
			return n;
	}
	fail();
	return 0;
}

bool link_can_send_now(const struct ras *ras, const struct link *link) {
	const struct net_node *node = node_of(ras);
	uint8_t wire = node->net->wires[node->index][index_of(ras, link->slot)];

	return wire == NET_GOOD || wire == NET_SILENT;
}

void link_send(struct ras *ras, struct link *link, const void *frame, size_t size) {
	struct net *net = node_of(ras)->net;
	struct net_frame *sent = malloc(sizeof(*sent) + size);

	assert_non_null(sent);
	assert_true(link_is_good(link));
	sent->next = NULL;
	sent->from = node_of(ras)->index;
	sent->to = index_of(ras, link->slot);
	sent->size = size;
	memcpy(sent->bytes, frame, size);
	*net->tail = sent;
	net->tail = &sent->next;
	net->frames++;
}

void ras_enter(struct ras *ras, uint64_t now_ns) {
	ras->now_ns = now_ns;
}

void ras_exit(struct ras *ras) {
	(void)ras;
}

uint64_t ras_jitter(struct ras *ras, uint64_t base_ns) {
	(void)ras;
	return base_ns;
}

void ras_relay_deliver_once(
	struct ras *ras, uint64_t source, uint32_t port, struct wire_reader *reader
) {
	struct net_node *node = node_of(ras);

	(void)source;
	node->internal_count++;
	node->internal_port = port;
	if (node->internal_fails)
		wire_reader_fail(reader, -EBADMSG);
}

int ras_relay_deliver(struct ras *ras, const struct ras_relay_delivery *delivery) {
	return ras->ops.deliver(ras->ops_ctx, delivery);
}

void ras_relay_report(struct ras *ras, uint32_t port, const struct ras_relay_report *report) {
	(void)port;
	ras->ops.report(ras->ops_ctx, report);
}

static int deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	struct net_node *node = ctx;
	struct net_delivery *kept = &node->deliveries[node->delivery_count % NET_LOG_MAX];

	if (node->deliver_result != 0)
		return node->deliver_result;
	*kept = (struct net_delivery){
		.source = delivery->source,
		.port = delivery->port,
		.flow = delivery->flow,
		.hops = delivery->hops,
		.size = delivery->size,
	};
	if (delivery->size >= sizeof(kept->value))
		memcpy(&kept->value, delivery->payload, sizeof(kept->value));
	node->delivery_count++;
	return 0;
}

static void report(void *ctx, const struct ras_relay_report *report) {
	struct net_node *node = ctx;

	node->reports[node->report_count++ % NET_LOG_MAX] = *report;
}

static struct heap heap; // of all nets, since tests run one at a time

void net_memory_fail(bool fail) {
	if (fail)
		heap_leave(&heap, 0);
	else
		heap_refill(&heap);
}

static const struct ras_memory test_memory = HEAP_MEMORY(&heap);

// The nodes

static void
record_create(struct net *net, uint32_t index, uint64_t start, struct ras_record **ret) {
	// A record without a key is no news.
	struct ras_peer_info info = {.start = start, .key = {1}, .address_count = 1};

	snprintf(info.name, sizeof(info.name), "n%04u", index);
	snprintf(info.host, sizeof(info.host), "h%04u", index);
	info.addresses[0] = (struct sock_addr
	){.address = {127, 0, 0, 1}, .port = (uint16_t)(1 + index), .family = SOCK_ADDR_V4};
	assert_int_equal(ras_record_from_info(net->interner, &info, ret), 0);
}

void net_tell(struct net *net, uint32_t who, uint32_t about, enum ras_state state, uint64_t start) {
	struct ras *ras = &net->nodes[who].ras;
	struct peer_news news = {
		.id = net->ids[about],
		.incarnation = ras_incarnation(start, 0),
		.state = (uint8_t)state,
	};
	enum peers_change change;
	uint32_t slot;

	record_create(net, about, start, &news.record);
	assert_int_equal(peers_merge(&ras->peers, &news, net->now_ns, &change, &slot), 0);
	ras_record_put(net->interner, news.record);
	ras->now_ns = net->now_ns;
	relay_peer_changed(ras, slot);
}

static void node_init(struct net *net, uint32_t index) {
	struct net_node *node = &net->nodes[index];
	struct ras *ras = &node->ras;

	node->net = net;
	node->index = index;
	node->links = calloc(net->count, sizeof(*node->links));
	assert_non_null(node->links);
	ras->profile = &net->profile;
	ras->ops = (struct ras_ops){.deliver = deliver, .report = report};
	ras->ops_ctx = node;
	ras->memory.source = test_memory;
	ras->now_ns = net->now_ns;
	ras->self_id = net->ids[index];
	peers_init(&ras->peers, &ras->memory, net->interner);
	assert_int_equal(relay_create(ras), 0);
	for (uint32_t n = 0; n < net->count; n++) {
		struct peer_news news = {
			.id = net->ids[n],
			.incarnation = ras_incarnation(1, 0),
			.record = net->records[n],
			.state = RAS_ALIVE,
		};
		enum peers_change change;
		uint32_t slot;

		assert_int_equal(peers_merge(&ras->peers, &news, 1, &change, &slot), 0);
	}
	ras->self_slot = peers_find(&ras->peers, ras->self_id);
	ras->links.table = node->table;
}

struct net *net_create(uint32_t count) {
	struct net *net = calloc(1, sizeof(*net));

	assert_non_null(net);
	assert_true(count <= NET_NODES_MAX);
	net->nodes = calloc(count, sizeof(*net->nodes));
	assert_non_null(net->nodes);
	net->count = count;
	net->now_ns = RAS_NS_PER_SEC;
	net->tail = &net->head;
	net->profile = (struct ras_profile
	){.long_rings = true, .relay_retry_ns = 500 * RAS_NS_PER_MS, .relay_tries = 4};
	assert_int_equal(ras_interner_create(&test_memory, &net->interner), 0);
	for (uint32_t n = 0; n < count; n++) {
		record_create(net, n, 1, &net->records[n]);
		net->ids[n] = net->records[n]->id;
	}
	for (uint32_t n = 0; n < count; n++)
		node_init(net, n);
	net_link_ring(net);
	return net;
}

void net_destroy(struct net *net) {
	net_carry(net);
	for (uint32_t n = 0; n < net->count; n++) {
		struct ras *ras = &net->nodes[n].ras;

		relay_destroy(ras);
		peers_fini(&ras->peers);
		assert_int_equal(ras->memory.used_bytes, 0);
		free(net->nodes[n].links);
		ras_record_put(net->interner, net->records[n]);
	}
	ras_interner_destroy(net->interner);
	free(net->nodes);
	free(net);
}

// The links

struct link *net_find_link(struct net *net, uint32_t from, uint32_t to) {
	struct ras *ras = &net->nodes[from].ras;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (ras->links.table[n]->peer == net->ids[to])
			return ras->links.table[n];
	}
	return NULL;
}

static void link_half(struct net *net, uint32_t from, uint32_t to) {
	struct net_node *node = &net->nodes[from];
	struct ras *ras = &node->ras;
	struct link *link = &node->links[ras->links.count];

	link->slot = peers_find(&ras->peers, net->ids[to]);
	link->peer = net->ids[to];
	link->used = true;
	link->current = &some_conn;
	ras->links.table[ras->links.count++] = link;
	net->wires[from][to] = NET_GOOD;
}

void net_link(struct net *net, uint32_t a, uint32_t b) {
	if (a == b || net->wires[a][b] != NET_ABSENT)
		return;
	link_half(net, a, b);
	link_half(net, b, a);
}

void net_link_ring(struct net *net) {
	for (uint32_t n = 0; n < net->count; n++)
		net_link(net, n, (n + 1) % net->count);
}

void net_link_long(struct net *net) {
	for (uint32_t step = 2; step <= net->count / 2; step *= 2) {
		for (uint32_t n = 0; n < net->count; n++)
			net_link(net, n, (n + step) % net->count);
	}
}

static void wire_half(struct net *net, uint32_t from, uint32_t to, enum net_wire wire) {
	struct ras *ras = &net->nodes[from].ras;
	struct link *link = net_find_link(net, from, to);

	net->wires[from][to] = (uint8_t)wire;
	link->current = wire == NET_DOWN ? NULL : &some_conn;
	ras->now_ns = net->now_ns;
	if (wire == NET_DOWN)
		relay_link_lost(ras, link);
	else
		relay_link_flush(ras, link);
}

void net_wire(struct net *net, uint32_t a, uint32_t b, enum net_wire wire) {
	wire_half(net, a, b, wire);
	wire_half(net, b, a, wire);
}

// Time and frames

static void frame_arrive(struct net *net, const struct net_frame *frame) {
	struct ras *ras = &net->nodes[frame->to].ras;
	struct link *link = net_find_link(net, frame->to, frame->from);

	ras->now_ns = net->now_ns;
	assert_int_equal(relay_frame_received(ras, link, frame->bytes, frame->size), 0);
}

void net_carry(struct net *net) {
	while (net->head != NULL) {
		struct net_frame *frame = net->head;
		uint8_t wire = net->wires[frame->from][frame->to];

		net->head = frame->next;
		if (net->head == NULL)
			net->tail = &net->head;
		if (wire != NET_SILENT && wire != NET_DOWN &&
		    (net->filter == NULL || net->filter(net, frame)))
			frame_arrive(net, frame);
		free(frame);
	}
}

static void tick_all(struct net *net) {
	for (uint32_t n = 0; n < net->count; n++) {
		struct ras *ras = &net->nodes[n].ras;

		if (relay_next_ns(ras) > net->now_ns)
			continue;
		ras->now_ns = net->now_ns;
		relay_tick(ras);
		assert_true(relay_next_ns(ras) > net->now_ns);
	}
}

void net_advance(struct net *net, uint64_t by_ns) {
	net_carry(net);
	net->now_ns += by_ns;
	tick_all(net);
	net_carry(net);
}

void net_settle(struct net *net) {
	for (;;) {
		uint64_t next_ns = RAS_NEVER;
		bool pending = false;

		net_carry(net);
		for (uint32_t n = 0; n < net->count; n++) {
			struct ras_relay_stats stats;

			ras_relay_stats(&net->nodes[n].ras, &stats);
			if (stats.pending == 0 && stats.held == 0)
				continue;
			pending = true;
			if (relay_next_ns(&net->nodes[n].ras) < next_ns)
				next_ns = relay_next_ns(&net->nodes[n].ras);
		}
		if (!pending)
			return;
		if (next_ns > net->now_ns)
			net->now_ns = next_ns;
		tick_all(net);
	}
}

int net_send_message(
	struct net *net, uint32_t from, const struct ras_relay_message *message, uint64_t *ret_id
) {
	return ras_relay_send(&net->nodes[from].ras, net->now_ns, message, ret_id);
}

int net_send(struct net *net, uint32_t from, uint32_t to, uint64_t value) {
	struct ras_relay_message message = {
		.destination = net->ids[to],
		.class = RAS_RELAY_EVENT,
		.flags = RAS_RELAY_REPORT,
		.port = NET_PORT,
		.payload = &value,
		.size = sizeof(value),
	};
	uint64_t id;

	return net_send_message(net, from, &message, &id);
}

uint64_t net_random(uint64_t *state) {
	return splitmix_next(state);
}
