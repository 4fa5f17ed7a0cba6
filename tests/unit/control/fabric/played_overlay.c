// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/played_overlay.h"

#include <control/pairing.h>
#include <ras/payload.h>
#include <ras/relay.h>
#include <support/cmocka.h>
#include <support/heap.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MESSAGES_MAX 1024
#define MESSAGE_BYTES 1024
#define START 7

struct played played;

const struct ras *overlay_ras(const struct overlay *overlay) {
	return (const struct ras *)(const void *)overlay;
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	(void)overlay;
	return played.realtime_ns + (int64_t)now_ns;
}

static const struct overlay *overlay_of_ras(const struct ras *ras) {
	return (const struct overlay *)(const void *)ras;
}

uint64_t ras_self_id(const struct ras *ras) {
	return overlay_of_ras(ras)->record->id;
}

uint64_t ras_self_incarnation(const struct ras *ras) {
	return overlay_of_ras(ras)->incarnation;
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	return slot < played.count ? ras_peer_find(ras, played_id(slot), ret_peer) : -ENOENT;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.number = 1, .slots_max = played.count};
}

int overlay_add_evidence(struct overlay *overlay, uint64_t subject, bool alive, uint64_t age_ns) {
	(void)age_ns;
	for (uint32_t n = 0; n < played.count; n++) {
		if (played_id(n) != subject)
			continue;
		overlay->proofs[n] += alive;
		overlay->doubts[n] += !alive;
		return 0;
	}
	return -ENOENT;
}

void overlay_tcp_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_reach
) {
	*ret_reach = (struct overlay_tcp_reach){.quiet_ns = RAS_NEVER};
	for (uint32_t n = 0; n < played.count; n++) {
		if (played_id(n) == peer)
			*ret_reach = overlay->tcp_found[n];
	}
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	for (uint32_t n = 0; n < played.count; n++) {
		const struct overlay *overlay = &played.agents[n];

		if (overlay->record->id != id)
			continue;
		*ret_peer = (struct ras_peer){
			.record = overlay->record,
			.slot = n,
			.incarnation = overlay->incarnation,
			.state = overlay_of_ras(ras)->states[n],
			.cause = played.cause,
		};
		return 0;
	}
	return -ENOENT;
}

int ras_link_at(const struct ras *ras, uint32_t place, struct ras_link_info *ret_info) {
	for (uint32_t n = 0; n < played.count; n++) {
		if (!overlay_of_ras(ras)->links[n] || place-- > 0)
			continue;
		*ret_info = (struct ras_link_info){.peer = played_id(n), .mine = RAS_USE_RING};
		return 0;
	}
	return -ENOENT;
}

const char *ras_relay_reason_name(enum ras_relay_reason reason) {
	return reason == RAS_RELAY_NO_ROUTE ? "no-route" : "no-answer";
}

void overlay_listen(struct overlay *overlay, struct overlay_listener *listener) {
	assert_null(overlay->listener);
	overlay->listener = listener;
}

void overlay_unlisten(struct overlay *overlay, struct overlay_listener *listener) {
	if (overlay->listener == listener)
		overlay->listener = NULL;
}

void overlay_contributor(
	struct overlay *overlay, enum ras_collect_kind kind, overlay_contribute_fn *fn, void *ctx
) {
	if (kind == RAS_COLLECT_PATHS) {
		overlay->contribute_paths = fn;
		overlay->contribute_paths_ctx = ctx;
		return;
	}
	assert_int_equal(kind, RAS_COLLECT_CONNS);
	overlay->contribute = fn;
	overlay->contribute_ctx = ctx;
}

static struct overlay_port **port_at(struct overlay *overlay, uint32_t number) {
	assert_in_range(number, OVERLAY_PORT_PAIRING, OVERLAY_PORT_RAILS);
	return &overlay->ports[number - OVERLAY_PORT_PAIRING];
}

void overlay_port_open(struct overlay *overlay, struct overlay_port *port) {
	port->overlay = overlay;
	*port_at(overlay, port->number) = port;
}

void overlay_port_close(struct overlay_port *port) {
	if (port->overlay != NULL)
		*port_at(port->overlay, port->number) = NULL;
	port->overlay = NULL;
}

struct message {
	struct overlay *from;
	uint64_t to;
	uint64_t incarnation; // of the sender
	uint32_t port, tag;
	size_t size;
	uint8_t bytes[MESSAGE_BYTES];
};

static struct message messages[MESSAGES_MAX];
static uint32_t message_count;

int overlay_port_send(struct overlay_port *port, const struct overlay_port_message *message) {
	struct message *kept = &messages[message_count];

	if (message_count == MESSAGES_MAX)
		return -EAGAIN;
	message_count++;
	*kept = (struct message){
		.from = port->overlay,
		.to = message->node,
		.incarnation = port->overlay->incarnation,
		.port = port->number,
		.tag = message->tag,
		.size = message->size,
	};
	memcpy(kept->bytes, message->bytes, message->size);
	return 0;
}

static struct overlay *overlay_of(uint64_t id) {
	for (uint32_t n = 0; n < played.count; n++) {
		if (played_id(n) == id)
			return &played.agents[n];
	}
	fail_msg("a message to nobody");
	return NULL;
}

static void deliver(const struct message *message) {
	struct overlay *to = overlay_of(message->to);
	struct overlay_port *from_port = *port_at(message->from, message->port);
	struct overlay_port *to_port = *port_at(to, message->port);
	struct ras_relay_report report = {
		.destination = message->to,
		.reason = RAS_RELAY_NO_ROUTE,
	};

	if (message->port == OVERLAY_PORT_RAILS && to->knows_no_rails)
		to_port = NULL;
	if (to_port != NULL && !to->deaf)
		to_port->message(
			to_port, message->from->record->id, message->incarnation, message->bytes,
			message->size
		);
	else if (from_port != NULL)
		from_port->undelivered(from_port, message->tag, &report);
}

void played_deliver(void) {
	static struct message now[MESSAGES_MAX];
	uint32_t count = message_count;

	memcpy(now, messages, count * sizeof(now[0]));
	message_count = 0;
	for (uint32_t n = 0; n < count; n++)
		deliver(&now[n]);
}

uint64_t played_id(uint32_t agent) {
	return played.agents[agent].record->id;
}

void played_link(uint32_t a, uint32_t b, bool linked) {
	played.agents[a].links[b] = linked;
	played.agents[b].links[a] = linked;
}

bool played_is_silent(void) {
	return message_count == 0;
}

void played_say(uint32_t observer, uint32_t agent, enum ras_state state) {
	struct overlay *overlay = &played.agents[observer];
	struct ras_event event = {
		.kind = state == RAS_DEAD      ? RAS_EVENT_DEAD
			: state == RAS_LEFT    ? RAS_EVENT_LEFT
			: state == RAS_UNKNOWN ? RAS_EVENT_FORGOTTEN
					       : RAS_EVENT_REJOINED,
		.cause = played.cause,
		.peer = played_id(agent),
		.incarnation = played.agents[agent].incarnation,
	};

	overlay->states[agent] = state;
	if (overlay->listener != NULL)
		overlay->listener->event(overlay->listener, &event);
}

static const struct ras_memory memory = HEAP_MEMORY(NULL);

void played_device_name(uint32_t agent, uint32_t device, char name[static 16]) {
	if (device < 2)
		snprintf(name, 16, "rdma%u", agent * 2 + device);
	else
		snprintf(name, 16, "rdma%u_%u", agent % 10, device % 100);
}

void overlay_note_rails(
	struct overlay *overlay, uint64_t node, uint64_t count, const char *sentence
) {
	(void)count;
	overlay->notes++;
	overlay->note_of = node;
	snprintf(overlay->note, sizeof(overlay->note), "%s", sentence);
}

void played_has_devices(uint32_t number, uint32_t devices) {
	struct ras_peer_info info = {.start = START, .address_count = 1, .device_count = devices};
	struct overlay *overlay = &played.agents[number];

	if (overlay->record != NULL)
		ras_record_put(played.interner, overlay->record);
	snprintf(info.name, sizeof(info.name), "n%u", number);
	snprintf(info.host, sizeof(info.host), "h%u", number);
	info.addresses[0].family = SOCK_ADDR_V4;
	for (uint32_t n = 0; n < devices; n++)
		played_device_name(number, n, info.devices[n].name);
	assert_int_equal(ras_record_from_info(played.interner, &info, &overlay->record), 0);
}

static void begin_agent(uint32_t number, uint32_t devices) {
	struct overlay *overlay = &played.agents[number];

	played_has_devices(number, devices);
	overlay->incarnation = ras_incarnation(START, 0);
	for (uint32_t n = 0; n < PLAYED_MAX; n++) {
		overlay->states[n] = RAS_ALIVE;
		overlay->tcp_found[n].quiet_ns = RAS_NEVER;
	}
}

void played_begin(uint32_t agents, uint32_t devices) {
	memset(&played, 0, sizeof(played));
	message_count = 0;
	played.count = agents;
	assert_int_equal(ras_interner_create(&memory, &played.interner), 0);
	for (uint32_t n = 0; n < agents; n++)
		begin_agent(n, devices);
}

void played_end(void) {
	for (uint32_t n = 0; n < played.count; n++) {
		const struct overlay *overlay = &played.agents[n];

		assert_null(overlay->listener);
		assert_null(overlay->ports[0]);
		assert_null(overlay->ports[1]);
		assert_null(overlay->contribute);
		assert_null(overlay->contribute_paths);
		ras_record_put(played.interner, overlay->record);
	}
	ras_interner_destroy(played.interner);
}
