// SPDX-License-Identifier: BSD-3-Clause
#include "core/core.h"

#include <lib/must.h>
#include <lib/wire.h>
#include <support/collective_net.h>
#include <support/fake_sign.h>

#include <stdlib.h>

// Bytes of the shared scratch buffer that are overwritten at every send.
#define SPOILT_BYTES 1024

static const struct ras_profile profile = {
	.name = "test",
	.long_rings = true,
	.leg_ns = 5 * RAS_NS_PER_SEC,
	.leg_grace_ns = 5 * RAS_NS_PER_SEC,
};

uint64_t net_id(uint32_t node) {
	return 1000 + UINT64_C(7) * node;
}

static uint32_t node_of_id(uint64_t id) {
	return (uint32_t)((id - 1000) / 7);
}

// Context of an operation of node n: the net and the node's number.
struct net_place {
	struct net *net;
	uint32_t node;
};

static struct net_place places[NET_NODES_MAX];

static struct net_node *node_of(const struct ras *ras) {
	const struct net_place *place = ras->ops_ctx;

	return &place->net->nodes[place->node];
}

// Counted memory of all instances, which fails on demand.

static void *net_allocate(void *ctx, size_t size) {
	struct net *net = ctx;

	if (++net->allocations == net->allocation_fails_at)
		return NULL;
	net->used_bytes += size;
	if (net->used_bytes > net->used_bytes_max)
		net->used_bytes_max = net->used_bytes;
	return calloc(1, size > 0 ? size : 1);
}

static void net_release(void *ctx, void *memory, size_t size) {
	struct net *net = ctx;

	must(net->used_bytes >= size);
	net->used_bytes -= size;
	free(memory);
}

// Operations.

static bool
op_contribute(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer) {
	const struct net_place *place = ctx;
	struct net_node *node = &place->net->nodes[place->node];

	must(wanted->part == 0 || wanted->part < node->part_count);
	node->contributed++;
	if (place->net->contribute != NULL)
		return place->net->contribute(place->net, wanted, writer);
	for (size_t n = 0; n < node->part_bytes; n++)
		wire_put_u8(writer, (uint8_t)(place->node + wanted->part));
	return wanted->part + 1 < node->part_count;
}

static void op_collected(void *ctx, const struct ras_collective_result *result) {
	const struct net_place *place = ctx;
	struct net_node *node = &place->net->nodes[place->node];
	struct net_result *kept = &node->results[node->result_count];
	struct ras_collected_cursor cursor = {0};
	struct ras_collected_part part;

	must(node->result_count < NET_RESULTS_MAX && result->missing_count <= NET_NODES_MAX);
	node->result_count++;
	kept->result = *result;
	if (result->missing_count > 0)
		memcpy(kept->missing, result->missing,
		       result->missing_count * sizeof(kept->missing[0]));
	while (ras_collected_next(result->collected, &cursor, &part)) {
		uint32_t from = node_of_id(part.node);
		uint8_t value = (uint8_t)(from + kept->parts_of[from]);

		if (place->net->arrived != NULL)
			place->net->arrived(place->net, &part);
		// The payload has the contributor's parts in order.
		for (size_t n = 0; place->net->arrived == NULL && n < part.size; n++)
			must(((const uint8_t *)part.payload)[n] == value);
		kept->parts_of[from]++;
		kept->parts++;
		kept->bytes += part.size;
	}
	must(!ras_collected_next(result->collected, &cursor, &part));
}

static void op_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	const struct net_place *place = ctx;
	struct net_node *node = &place->net->nodes[place->node];

	(void)payload;
	(void)size;
	node->noticed++;
	node->notice_origin = origin;
	node->notice_kind = kind;
}

// All nodes of the net have the key of the records, which is 0.
static void op_sign(void *ctx, const void *bytes, size_t size, uint8_t *ret_signature) {
	static const uint8_t key[RAS_KEY_BYTES];

	(void)ctx;
	fake_sign(key, bytes, size, ret_signature);
}

static const struct ras_ops ops = {
	.contribute = op_contribute,
	.collected = op_collected,
	.notice = op_notice,
	.sign = op_sign,
	.verify = fake_verify_op,
};

// Functions of the core that the parts under test call.

void ras_enter(struct ras *ras, uint64_t now_ns) {
	ras->now_ns = now_ns;
}

void ras_exit(struct ras *ras) {
	(void)ras;
}

void ras_emit(
	struct ras *ras,
	enum ras_event_kind kind,
	uint32_t slot,
	enum ras_cause cause,
	uint64_t value
) {
	(void)cause;
	(void)value;
	must(kind == RAS_EVENT_FORGED);
	node_of(ras)->forged++;
	node_of(ras)->forged_by = net_id(slot);
}

bool ras_forget_apply(struct ras *ras, uint64_t id, uint64_t incarnation) {
	(void)id;
	(void)incarnation;
	node_of(ras)->forgotten++;
	return true;
}

void ras_forget_order_received(struct ras *ras) {
	node_of(ras)->forgotten++;
}

// Store a census result, in place of the brake.
void brake_own_census_done(struct ras *ras, uint64_t from_ns, struct census_result *result) {
	(void)from_ns;
	ras->liveness.census.word.reached = result->reached;
	ras->liveness.census.word.heard = result->heard;
}

void liveness_suspicion_delegated(struct ras *ras, uint64_t subject) {
	(void)ras;
	(void)subject;
}

void votes_reported_voteless(struct ras *ras, uint64_t origin) {
	(void)origin;
	ras->uncounted = true;
}

bool votes_reported_late(struct ras *ras, uint64_t origin, uint64_t view_digest) {
	(void)origin;
	return view_digest == peers_digest(&ras->peers);
}

void votes_end_late_report(
	struct ras *ras, uint64_t origin, const struct collect_request *request
) {
	(void)ras;
	(void)origin;
	(void)request;
}

bool votes_self_has_none(const struct ras *ras) {
	return ras->uncounted;
}

void brake_peer_census_done(struct ras *ras, uint64_t origin, const struct census_result *result) {
	ras->liveness.census.word.origin = origin;
	ras->liveness.census.word.reached = result->reached;
	ras->liveness.census.word.members = result->members;
}

bool census_list_is_usable(const struct ras *ras, const struct collect_request *request) {
	(void)ras;
	(void)request;
	return true;
}

void brake_census_started(struct ras *ras, uint64_t origin, bool serves) {
	(void)serves;
	ras->liveness.census.starts[0] =
		(struct census_start){.origin = origin, .at_ns = ras->observed_ns};
}

void liveness_weak_evidence(struct ras *ras, uint32_t slot) {
	node_of(ras)->weak[slot]++;
}

uint32_t peers_find(const struct peers *peers, uint64_t id) {
	for (uint32_t slot = 0; slot < peers->entry_count; slot++) {
		if (peers->entries[slot].record != NULL && peers->entries[slot].record->id == id)
			return slot;
	}
	return RAS_NO_SLOT;
}

struct link *link_find(const struct ras *ras, uint32_t slot) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (ras->links.table[n]->slot == slot)
			return ras->links.table[n];
	}
	return NULL;
}

// Every linked peer counts as speaking.
bool link_has_live_peer(const struct ras *ras, const struct link *link) {
	(void)ras;
	return link_is_good(link);
}

void link_send(struct ras *ras, struct link *link, const void *frame, size_t size) {
	const struct net_place *place = ras->ops_ctx;
	struct net *net = place->net;
	struct net_frame **last = &net->first;
	struct net_frame *sent;

	must(size > 0 && size <= RAS_FRAME_MAX);
	net->sent_frames++;
	if (!link_is_ready(link))
		return;
	sent = malloc(sizeof(*sent) + size);
	must(sent != NULL);
	sent->next = NULL;
	sent->from = place->node;
	sent->to = node_of_id(link->peer);
	sent->size = size;
	memcpy(sent->bytes, frame, size);
	while (*last != NULL)
		last = &(*last)->next;
	*last = sent;
	// Overwrite the shared scratch buffer: no code may rely on it across a send.
	memset(ras->scratch, 0xee, SPOILT_BYTES);
}

// The net.

static struct ras *instance_create(struct net *net, uint32_t node) {
	struct ras *ras = calloc(1, sizeof(*ras));

	must(ras != NULL);
	places[node] = (struct net_place){.net = net, .node = node};
	ras->profile = &profile;
	ras->ops = ops;
	ras->ops_ctx = &places[node];
	ras->memory.source =
		(struct ras_memory){.allocate = net_allocate, .release = net_release, .ctx = net};
	ras->self_id = net_id(node);
	ras->self_slot = node;
	ras->started = ras->joined = true;
	ras->scratch = malloc(RAS_FRAME_MAX);
	ras->peers.entries = calloc(net->count, sizeof(*ras->peers.entries));
	ras->peers.entry_count = net->count;
	ras->peers.state_counts[RAS_ALIVE] = net->count;
	ras->peers.ranges[0] = 0xd16e57;
	ras->peers.view_number = 5;
	ras->links.table = calloc(NET_LINKS_MAX, sizeof(struct link *));
	must(ras->scratch != NULL && ras->peers.entries != NULL && ras->links.table != NULL);
	for (uint32_t peer = 0; peer < net->count; peer++) {
		struct ras_record *record = calloc(1, sizeof(*record));

		must(record != NULL);
		record->id = net_id(peer);
		ras->peers.entries[peer].record = record;
		ras->peers.entries[peer].state = RAS_ALIVE;
		ras->peers.entries[peer].incarnation = ras_incarnation(1, 0);
	}
	must(collective_create(ras) == 0);
	return ras;
}

static void instance_destroy(struct ras *ras) {
	collective_destroy(ras);
	flood_fini(ras);
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++)
		free(ras->peers.entries[slot].record);
	for (uint32_t n = 0; n < ras->links.count; n++)
		free(ras->links.table[n]);
	must(ras->memory.used_bytes == 0);
	free(ras->peers.entries);
	free(ras->links.table);
	free(ras->scratch);
	free(ras);
}

struct net *net_create(uint32_t count) {
	struct net *net = calloc(1, sizeof(*net));

	must(net != NULL && count <= NET_NODES_MAX);
	net->count = count;
	net->nodes = calloc(count, sizeof(*net->nodes));
	must(net->nodes != NULL);
	net->now_ns = RAS_NS_PER_SEC;
	for (uint32_t n = 0; n < count; n++) {
		net->nodes[n].part_count = 1;
		net->nodes[n].part_bytes = 40;
		net->nodes[n].ras = instance_create(net, n);
		net->nodes[n].ras->now_ns = net->now_ns;
		net->nodes[n].ras->observed_ns = net->now_ns;
	}
	return net;
}

static void frame_take(struct net_frame **at) {
	struct net_frame *frame = *at;

	*at = frame->next;
	free(frame);
}

void net_destroy(struct net *net) {
	while (net->first != NULL)
		frame_take(&net->first);
	for (uint32_t n = 0; n < net->count; n++)
		instance_destroy(net->nodes[n].ras);
	must(net->used_bytes == 0);
	free(net->nodes);
	free(net);
}

struct link *net_link(struct net *net, uint32_t from, uint32_t to) {
	return link_find(net->nodes[from].ras, to);
}

static void half_connect(struct net *net, uint32_t from, uint32_t to) {
	struct ras *ras = net->nodes[from].ras;
	struct link *link = calloc(1, sizeof(*link));

	must(link != NULL && ras->links.count < NET_LINKS_MAX);
	link->slot = to;
	link->peer = net_id(to);
	link->used = true;
	// The code only tests whether there is one.
	link->current = (struct conn *)link;
	ras->links.table[ras->links.count++] = link;
}

void net_connect(struct net *net, uint32_t a, uint32_t b) {
	if (a == b || net_link(net, a, b) != NULL)
		return;
	half_connect(net, a, b);
	half_connect(net, b, a);
}

void net_ring(struct net *net) {
	for (uint32_t n = 0; n < net->count; n++)
		net_connect(net, n, (n + 1) % net->count);
}

void net_chords(struct net *net) {
	for (uint32_t n = 0; n < net->count; n++) {
		for (uint32_t step = 1; step < net->count; step *= 2)
			net_connect(net, n, (n + step) % net->count);
	}
}

void net_tree(struct net *net) {
	for (uint32_t n = 1; n < net->count; n++)
		net_connect(net, n, (n - 1) / 2);
}

static void half_cut(struct net *net, uint32_t from, uint32_t to) {
	struct link *link = net_link(net, from, to);
	struct net_frame **at = &net->first;

	while (*at != NULL) {
		if ((*at)->from == from && (*at)->to == to)
			frame_take(at);
		else
			at = &(*at)->next;
	}
	link->current = NULL;
	collective_link_lost(net->nodes[from].ras, link);
}

void net_cut(struct net *net, uint32_t a, uint32_t b) {
	half_cut(net, a, b);
	half_cut(net, b, a);
}

void net_delay(struct net *net, uint32_t observer, uint32_t peer) {
	struct link *link = net_link(net, observer, peer);

	link->delayed = true;
	collective_link_lost(net->nodes[observer].ras, link);
}

static int dispatch(struct ras *ras, struct link *link, const void *bytes, size_t size) {
	struct wire_reader reader;

	wire_reader_init(&reader, bytes, size);
	switch (wire_get_u8(&reader)) {
	case MESSAGE_NOTICE:
		return flood_notice(ras, link, bytes, size);
	case MESSAGE_COLLECT:
		return collective_request_received(ras, link, &reader);
	case MESSAGE_COLLECTED:
		return collective_answer_received(ras, link, &reader);
	case MESSAGE_COLLECT_CANCEL:
		return collective_cancel_received(ras, link, &reader);
	default:
		return -EBADMSG;
	}
}

int net_inject(struct net *net, uint32_t from, uint32_t to, const void *frame, size_t size) {
	return dispatch(net->nodes[to].ras, net_link(net, to, from), frame, size);
}

// Choose the first frame of some connection. Frames between two nodes stay in order, others do not.
static struct net_frame **frame_pick(struct net *net) {
	struct net_frame **at = &net->first;
	struct net_frame **picked = at;
	uint64_t seen[NET_NODES_MAX][(NET_NODES_MAX + 63) / 64] = {0};
	uint32_t candidates = 0;

	if (net->random == 0)
		return at;
	for (; *at != NULL; at = &(*at)->next) {
		uint64_t *word = &seen[(*at)->from][(*at)->to / 64];
		uint64_t bit = UINT64_C(1) << ((*at)->to % 64);

		if ((*word & bit) != 0)
			continue;
		*word |= bit;
		net->random = net->random * UINT64_C(6364136223846793005) + 1;
		if ((net->random >> 33) % ++candidates == 0)
			picked = at;
	}
	return picked;
}

bool net_step(struct net *net) {
	struct net_frame **at;
	struct net_frame *frame;
	struct net_node *node;

	if (net->first == NULL)
		return false;
	at = frame_pick(net);
	frame = *at;
	*at = frame->next;
	node = &net->nodes[frame->to];
	if (!node->deaf)
		must(dispatch(
			     node->ras, net_link(net, frame->to, frame->from), frame->bytes,
			     frame->size
		     ) == 0);
	free(frame);
	return true;
}

void net_run(struct net *net) {
	while (net_step(net)) {
	}
}

void net_turn(struct net *net, uint64_t ns) {
	net->now_ns += ns;
	for (uint32_t n = 0; n < net->count; n++) {
		struct ras *ras = net->nodes[n].ras;

		ras->observed_ns += net->now_ns - ras->now_ns;
		ras->now_ns = net->now_ns;
	}
	for (uint32_t n = 0; n < net->count; n++) {
		if (!net->nodes[n].deaf)
			collective_tick(net->nodes[n].ras);
	}
}

static uint64_t next_ns(const struct net *net) {
	uint64_t soonest_ns = RAS_NEVER;

	for (uint32_t n = 0; n < net->count; n++) {
		uint64_t due_ns = collective_next_ns(net->nodes[n].ras);

		if (!net->nodes[n].deaf && due_ns < soonest_ns)
			soonest_ns = due_ns;
	}
	return soonest_ns;
}

void net_run_out(struct net *net) {
	uint64_t due_ns;

	net_run(net);
	while ((due_ns = next_ns(net)) != RAS_NEVER) {
		net_turn(net, due_ns > net->now_ns ? due_ns - net->now_ns : 0);
		net_run(net);
	}
}

bool net_idle(const struct net *net) {
	for (uint32_t n = 0; n < net->count; n++) {
		if (!net->nodes[n].deaf && ras_collect_counters(net->nodes[n].ras)->running > 0)
			return false;
	}
	return true;
}
