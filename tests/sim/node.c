// SPDX-License-Identifier: BSD-3-Clause
// A process: one core, its calls to the kernel, its start and end.
#include "verdicts.h"
#include "world.h"

#include <lib/must.h>
#include <support/fake_sign.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE_HISTORY 16 // events kept by a core; few, since the simulator sees every event anyway
#define NODE_CONNS_MAX 1024
#define NODE_KEEP_NS WORLD_SEC
#define NODE_KEEP_GAP_NS (60 * WORLD_SEC)
// Port number of outgoing connections.
#define NODE_PORT_EPHEMERAL 40000

static void node_note(const struct node *node, uint32_t kind, uint32_t other, uint32_t value) {
	struct trace_entry entry = {
		.at_ns = world_now(node->world),
		.node = node->index,
		.other = other,
		.value = value,
		.kind = (uint8_t)kind,
	};

	trace_add(&node->world->trace, &entry);
}

// The address 10.x.y.z encodes the place.
static struct sock_addr node_address(uint32_t place, uint16_t port) {
	struct sock_addr address = {.family = SOCK_ADDR_V4, .port = port};

	place++;
	address.address[0] = 10;
	address.address[1] = (uint8_t)(place >> 16);
	address.address[2] = (uint8_t)(place >> 8);
	address.address[3] = (uint8_t)place;
	return address;
}

static uint32_t node_at_address(const struct world *world, const struct sock_addr *address) {
	uint32_t place = (uint32_t)address->address[1] << 16 | (uint32_t)address->address[2] << 8 |
			 address->address[3];

	if (address->family != SOCK_ADDR_V4 || address->address[0] != 10 ||
	    address->port != WORLD_PORT || place == 0 || place > WORLD_PLACES(world->options.nodes))
		return NET_NOBODY;
	return world->tenants[place - 1];
}

void node_swap_places(struct world *world, uint32_t a, uint32_t b) {
	uint32_t place = world->nodes[a].place;

	world->nodes[a].place = world->nodes[b].place;
	world->nodes[b].place = place;
	world->tenants[world->nodes[a].place] = a;
	world->tenants[world->nodes[b].place] = b;
}

void node_move(struct world *world, uint32_t index) {
	struct node *node = &world->nodes[index];
	uint32_t place = (node->place + world->options.nodes) % WORLD_PLACES(world->options.nodes);
	struct sock_addr old = node_address(node->place, WORLD_PORT);

	if (world->tenants[place] != NET_NOBODY)
		return; // another node has moved to this place
	for (uint32_t n = 0; n < world->seed_count; n++) {
		if (sock_addr_equal(&world->seeds[n], &old))
			world->seeds[n] = node_address(place, WORLD_PORT);
	}
	// Seeds are host names, which agents resolve again from time to time. A stopped process
	// does so later.
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (world->nodes[n].state != NODE_OFF)
			must(ras_set_seeds(world->nodes[n].ras, world->seeds, world->seed_count) ==
			     0);
	}
	world->tenants[node->place] = NET_NOBODY;
	world->tenants[place] = index;
	node->place = place;
}

void node_claim(struct world *world, uint32_t index, uint32_t place) {
	world->nodes[index].claim = place;
}

// Update the addresses of members that are already in the list. Members that left or died stay in
// it.
static void node_prove_members(const struct node *node, struct node_members *members) {
	struct ras_peer peer;

	for (uint32_t n = 0; n < members->count; n++) {
		if (ras_peer_find(node->ras, members->ids[n], &peer) == 0 &&
		    peer.state == RAS_ALIVE)
			members->list[n] = peer.record->address;
	}
}

static bool node_has_member(const struct node_members *members, uint64_t id) {
	for (uint32_t n = 0; n < members->count; n++) {
		if (members->ids[n] == id)
			return true;
	}
	return false;
}

// Save the members in the state directory, as an agent does.
static void node_keep_members(struct node *node) {
	struct node_members *members = &node->directory->members;
	struct ras_view view;
	struct ras_peer peer;

	node->keep_ns = 0;
	ras_view(node->ras, &view);
	if (!view.joined)
		return;
	node->kept_ns = world_now(node->world);
	node_prove_members(node, members);
	for (uint32_t slot = 0; slot < view.slots_max && members->count < NODE_REMEMBERED_MAX;
	     slot++) {
		if (ras_peer_at(node->ras, slot, &peer) != 0 || peer.state != RAS_ALIVE ||
		    peer.record->id == node->record->id ||
		    node_has_member(members, peer.record->id))
			continue;
		members->ids[members->count] = peer.record->id;
		members->list[members->count++] = peer.record->address;
	}
	// The first life also provides the copy that later restores use.
	if (node->directory->earlier.count == 0)
		node->directory->earlier = *members;
}

// Like an agent, save a second after the members changed, at most once a minute.
static void node_members_changed(struct node *node) {
	uint64_t now_ns = world_now(node->world);

	if (node->directory == NULL || node->keep_ns != 0)
		return;
	node->keep_ns = now_ns + NODE_KEEP_NS;
	if (node->kept_ns != 0 && node->keep_ns < node->kept_ns + NODE_KEEP_GAP_NS)
		node->keep_ns = node->kept_ns + NODE_KEEP_GAP_NS;
}

// Make the key of a node. A node whose state directory is lost makes another one.
static void node_key(const struct node *node, uint8_t ret_key[static RAS_KEY_BYTES]) {
	fake_key(node->key_seed != 0 ? node->key_seed : node->index + 1, ret_key);
}

static void node_info(const struct world *world, uint32_t index, struct ras_peer_info *ret_info) {
	const struct node *node = &world->nodes[index];

	memset(ret_info, 0, sizeof(*ret_info));
	trace_node_name(index, ret_info->name);
	snprintf(ret_info->host, sizeof(ret_info->host), "h%05u", world->net.nodes[index].host + 1);
	memcpy(ret_info->boot_id, &world->net.nodes[index].host, sizeof(uint32_t));
	ret_info->pid = 1000 + index + (node->start << 16);
	snprintf(ret_info->version, sizeof(ret_info->version), "0.1.0");
	ret_info->start = node->start;
	node_key(node, ret_info->key);
	ret_info->address_count = 1;
	ret_info->addresses[0] =
		node_address(node->claim != NET_NOBODY ? node->claim : node->place, WORLD_PORT);
}

int node_record(struct world *world, uint32_t index, struct ras_record **ret_record) {
	struct ras_peer_info info;

	node_info(world, index, &info);
	return ras_record_from_info(world->interner, &info, ret_record);
}

// Calls of the core into its environment. While the core is destroyed, its process has already
// ended.

static void node_op_open(void *ctx, uint32_t handle, const struct sock_addr *to) {
	struct node *node = ctx;
	uint32_t other = node_at_address(node->world, to);

	node_note(node, TRACE_OPEN, other, handle);
	net_open(&node->world->net, node->index, handle, other);
}

static int node_op_send(void *ctx, uint32_t handle, const void *frame, size_t size) {
	struct node *node = ctx;

	must(size > 0 && size <= RAS_FRAME_MAX);
	return net_send(&node->world->net, node->index, handle, frame, (uint32_t)size);
}

static void node_op_close(void *ctx, uint32_t handle, enum ras_close how) {
	struct node *node = ctx;

	// In both modes the kernel sends what it has accepted. Modes differ only in how long a
	// real process keeps reading.
	(void)how;
	if (node->world->net.nodes[node->index].process != NET_PROCESS_NONE)
		net_close(&node->world->net, node->index, handle);
}

// Make sure that an event exists at or before the requested wake-up. An earlier event re-arms
// when it runs, so most changes need no new event.
static void node_arm(struct node *node) {
	struct world *world = node->world;
	struct event *event;

	if (node->timer_ns <= node->wake_ns)
		return;
	node->timer_ns = node->wake_ns;
	event = queue_event(&world->queue, WORLD_TIMER, 0);
	event->target = node->index;
	event->generation = ++node->timer_generation;
	queue_push(&world->queue, event, node->timer_ns);
}

static void node_op_wake(void *ctx, uint64_t at_ns) {
	struct node *node = ctx;
	uint64_t now_ns = world_now(node->world);

	node->wake_ns = at_ns;
	if (at_ns == RAS_NEVER)
		return;
	node->wake_ns = at_ns > node->leap_ns ? at_ns - node->leap_ns : 0;
	if (node->wake_ns < now_ns)
		node->wake_ns = now_ns;
	node_arm(node);
}

// In a world of thousands of nodes, keep only the latest views.
static uint32_t node_views_most(const struct node *node) {
	uint32_t most = (4u << 20) / node->world->options.nodes;

	return most < NODE_VIEWS_MAX ? most : NODE_VIEWS_MAX;
}

// Record the digest of the node's view each time the view changes.
static void node_note_view(struct node *node) {
	uint32_t most = node_views_most(node);
	struct ras_view view;

	must(most > 0);
	ras_view(node->ras, &view);
	if (node->view_count > 0 && node->views[(node->view_count - 1) % most] == view.digest)
		return;
	if (node->view_count == node->view_capacity && node->view_capacity < most) {
		uint32_t wanted = node->view_capacity > 0 ? 2 * node->view_capacity : 16;

		node->view_capacity = wanted < most ? wanted : most;
		node->views = realloc(node->views, node->view_capacity * sizeof(*node->views));
		must(node->views != NULL);
	}
	node->views[node->view_count++ % most] = view.digest;
}

void node_fini(struct node *node) {
	free(node->views);
}

static void node_op_event(void *ctx, const struct ras_event *event) {
	struct node *node = ctx;
	struct world *world = node->world;
	struct trace_entry entry = {
		.at_ns = world_now(world),
		.node = node->index,
		.other = NET_NOBODY,
		.value = (uint32_t)event->kind,
		.kind = TRACE_RAS_EVENT,
		.detail = (uint16_t)event->cause,
	};

	if (event->peer != 0)
		entry.other = world_node_of_id(world, event->peer);
	trace_add(&world->trace, &entry);
	if (event->kind == RAS_EVENT_JOIN_REFUSED)
		node->refused = true;
	if (event->kind == RAS_EVENT_JOIN_DONE || event->kind == RAS_EVENT_JOINED ||
	    event->kind == RAS_EVENT_REJOINED || event->kind == RAS_EVENT_LEFT)
		node_members_changed(node);
	if (world->options.check) {
		node_note_view(node);
		invariants_event(world, node, event);
	}
	measure_event(world, node, event);
	verdicts_event(world, node, event);
}

static int node_op_deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	struct node *node = ctx;

	return load_deliver(node->world, node, delivery);
}

static void node_op_report(void *ctx, const struct ras_relay_report *report) {
	struct node *node = ctx;

	load_report(node->world, node, report);
}

static bool node_op_contribute(
	void *ctx, const struct ras_contribution *contribution, struct wire_writer *writer
) {
	struct node *node = ctx;

	return load_contribute(node->world, node, contribution, writer);
}

static void node_op_collected(void *ctx, const struct ras_collective_result *result) {
	struct node *node = ctx;

	load_collected(node->world, node, result);
}

static void
node_op_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	struct node *node = ctx;

	if (kind == VERDICTS_NOTICE)
		verdicts_notice(node->world, node, origin, payload, size);
	else if (kind == VERDICTS_GRANTS)
		verdicts_granted(node->world, node, payload, size);
	else
		load_notice(node->world, node, payload, size);
}

static int node_op_transfer_read(void *ctx, struct ras_transfer_read *read) {
	struct node *node = ctx;

	return load_transfer_read(node->world, node, read);
}

static int node_op_transfer_take(void *ctx, const struct ras_transfer_segment *segment) {
	struct node *node = ctx;

	return load_transfer_take(node->world, node, segment);
}

static void node_op_transfer_ended(void *ctx, const struct ras_transfer_end *end) {
	struct node *node = ctx;

	load_transfer_ended(node->world, node, end);
}

static void node_op_sign(void *ctx, const void *bytes, size_t size, uint8_t *ret_signature) {
	uint8_t key[RAS_KEY_BYTES];

	node_key(ctx, key);
	fake_sign(key, bytes, size, ret_signature);
}

static const struct ras_ops node_ops = {
	.open = node_op_open,
	.send = node_op_send,
	.close = node_op_close,
	.wake = node_op_wake,
	.event = node_op_event,
	.deliver = node_op_deliver,
	.report = node_op_report,
	.contribute = node_op_contribute,
	.collected = node_op_collected,
	.notice = node_op_notice,
	.sign = node_op_sign,
	.verify = fake_verify_op,
	.transfer_read = node_op_transfer_read,
	.transfer_take = node_op_transfer_take,
	.transfer_ended = node_op_transfer_ended,
};

// Callbacks of the network.

static void node_opened(void *ctx, uint32_t index, uint32_t handle) {
	struct node *node = &((struct world *)ctx)->nodes[index];

	ras_conn_opened(node->ras, node_now(node), handle);
	node_settle(node);
}

static int node_accepted(void *ctx, uint32_t index, uint32_t from, uint32_t *ret_handle) {
	struct node *node = &((struct world *)ctx)->nodes[index];
	struct sock_addr address = node_address(
		node->world->nodes[from].place, (uint16_t)(NODE_PORT_EPHEMERAL + from % 20000)
	);

	return ras_conn_accepted(node->ras, node_now(node), &address, ret_handle);
}

static void
node_frame(void *ctx, uint32_t index, uint32_t handle, const void *frame, uint32_t size) {
	struct node *node = &((struct world *)ctx)->nodes[index];

	ras_conn_frame(node->ras, node_now(node), handle, frame, size);
	node_settle(node);
}

static void node_writable(void *ctx, uint32_t index, uint32_t handle) {
	struct node *node = &((struct world *)ctx)->nodes[index];

	ras_conn_writable(node->ras, node_now(node), handle);
	node_settle(node);
}

static void node_ended(void *ctx, uint32_t index, uint32_t handle, int error) {
	struct node *node = &((struct world *)ctx)->nodes[index];

	ras_conn_ended(
		node->ras, node_now(node), handle,
		error == NET_REFUSED_HERE ? RAS_CAUSE_EXITED : ras_cause_of_errno(error)
	);
	node_settle(node);
}

// Prefetch the instance: usually several other events run before the frame is delivered.
static void node_coming(void *ctx, uint32_t index) {
	const struct world *world = ctx;

	__builtin_prefetch(&world->net.nodes[index]);
	__builtin_prefetch((const char *)&world->net.nodes[index + 1] - 1);
	if (world->nodes[index].ras != NULL)
		ras_prefetch_frame(world->nodes[index].ras, 0, 0);
}

const struct net_sink node_sink = {
	.coming = node_coming,
	.opened = node_opened,
	.accepted = node_accepted,
	.frame = node_frame,
	.writable = node_writable,
	.ended = node_ended,
};

static void node_tick(struct node *node) {
	// A wake-up for a later time remains valid, since the core requests only changes.
	if (node->wake_ns <= world_now(node->world))
		node->wake_ns = RAS_NEVER;
	if (node->keep_ns != 0 && node->keep_ns <= world_now(node->world))
		node_keep_members(node);
	ras_tick(node->ras, node_now(node));
	node_settle(node);
}

void node_timer(struct world *world, struct event *event) {
	struct node *node = &world->nodes[event->target];
	bool valid = event->generation == node->timer_generation;

	queue_release(&world->queue, event);
	if (!valid)
		return;
	node->timer_ns = RAS_NEVER;
	if (node->state != NODE_UP)
		return;
	if (node->wake_ns > world_now(world)) {
		node_arm(node);
		return;
	}
	node_note(node, TRACE_TICK, NET_NOBODY, 0);
	node_tick(node);
}

static void node_stop(struct node *node) {
	// A process that leaves saves its members; a killed one keeps what it saved before.
	if (node->leaving && node->directory != NULL)
		node_keep_members(node);
	node->keep_ns = 0;
	node->kept_ns = 0;
	verdicts_stopped(node->world, node);
	node->state = NODE_OFF;
	node->ended_ns = world_now(node->world);
	node->left = node->leaving;
	node->leaving = false;
	node->timer_generation++;
	node->timer_ns = RAS_NEVER;
	node->wake_ns = RAS_NEVER;
	node->ras = ras_destroy(node->ras);
}

void node_settle(struct node *node) {
	if ((node->leaving && ras_is_shut_down(node->ras)) || node->refused) {
		net_process_end(&node->world->net, node->index);
		node_stop(node);
	}
}

struct ras_table *world_table(struct world *world) {
	uint32_t count = world->options.nodes;
	struct ras_record **records = calloc(count, sizeof(struct ras_record *));
	struct ras_table *table;

	must(records != NULL);
	for (uint32_t n = 0; n < count; n++)
		records[n] = world->nodes[n].record;
	must(ras_table_create(&world->memory, world->interner, records, count, &table) == 0);
	free(records);
	return table;
}

// Configure the core from the state directory, or from an old copy of it.
static void node_recall(struct node *node, enum node_memory memory, struct ras_config *config) {
	const struct node *model = &node->world->nodes[node->model];
	struct node_directory *directory = node->directory;
	struct node_members kept;

	// An old copy has the start counter of two runs before, or 1.
	if (memory == NODE_STALE)
		config->self.start = node->start > 3 ? node->start - 2 : 1;
	if (memory == NODE_FORGETS)
		config->self.start = 0;
	if (memory == NODE_CLONED) {
		if (model->start >= node->start)
			node->start = model->start + 1;
		config->self.start = model->start + 1;
	}
	if (directory == NULL)
		return;
	kept = directory->members;
	if (memory == NODE_STALE)
		directory->members = directory->earlier;
	// A copied directory contributes no list of members.
	if (memory == NODE_FORGETS || memory == NODE_CLONED)
		directory->members.count = 0;
	if (kept.count > 0)
		directory->earlier = kept;
}

void node_start(
	struct world *world, uint32_t index, const struct ras_table *table, enum node_memory memory
) {
	struct node *node = &world->nodes[index];
	struct ras_config config = {
		.profile = world->options.profile,
		.cluster = "sim",
		.seeds = world->seeds,
		.seed_count = world->seed_count,
		.random_seed = world->options.seed ^ (uint64_t)index << 20 ^ node->timer_generation,
		.history_events = NODE_HISTORY,
		.conns_max = NODE_CONNS_MAX,
		.version_min = node->version_min,
		.version_max = node->version_max,
	};
	int err;

	if (node->state != NODE_OFF || world->net.hosts[world->net.nodes[index].host].down)
		return;
	if (node->started_ns != 0)
		node->start++;
	if (memory == NODE_FORGETS)
		node->key_seed = (uint64_t)node->start << 32 | (index + 1);
	if (memory == NODE_CLONED)
		node->key_seed = world->nodes[node->model].key_seed != 0
					 ? world->nodes[node->model].key_seed
					 : node->model + 1;
	node_info(world, index, &config.self);
	node_recall(node, memory, &config);
	err = ras_create(&config, &world->memory, world->interner, &node_ops, node, &node->ras);
	must(err == 0);
	if (table != NULL)
		must(ras_preload_table(node->ras, table) == 0);
	node->state = NODE_UP;
	node->refused = false;
	node->left = false;
	node->leap_ns = 0;
	node->started_ns = world_now(world);
	node->view_count = 0;
	node->healthy_ns = node->started_ns;
	net_process_start(&world->net, index);
	verdicts_started(world, node);
	measure_started(world, node);
	load_started(world, node);
	if (world->options.check)
		invariants_started(world, node, table != NULL);
	if (node->directory != NULL && node->directory->members.count > 0)
		must(ras_remembered(
			     node->ras, node->directory->members.list,
			     node->directory->members.count
		     ) == 0);
	if (table != NULL)
		node_members_changed(node);
	ras_start(node->ras, node_now(node));
	node_settle(node);
}

void node_kill(struct world *world, uint32_t index) {
	struct node *node = &world->nodes[index];

	if (node->state == NODE_OFF)
		return;
	net_process_end(&world->net, index);
	node_stop(node);
}

void node_vanish(struct world *world, uint32_t index) {
	if (world->nodes[index].state != NODE_OFF)
		node_stop(&world->nodes[index]);
}

void node_leave(struct world *world, uint32_t index) {
	struct node *node = &world->nodes[index];

	if (node->state != NODE_UP || node->leaving)
		return;
	node->leaving = true;
	ras_leave(node->ras, node_now(node));
	node_settle(node);
}

void node_dark(struct node *node, bool begins) {
	if (!begins) {
		node->dark_until_ns = world_now(node->world);
	} else if (node->dark_until_ns != UINT64_MAX) {
		node->dark_ns = world_now(node->world);
		node->dark_until_ns = UINT64_MAX;
	}
}

void node_freeze(struct world *world, uint32_t index) {
	struct node *node = &world->nodes[index];

	if (node->state != NODE_UP)
		return;
	node->state = NODE_FROZEN;
	node_dark(node, true);
	net_process_freeze(&world->net, index);
	verdicts_frozen(world, node, true);
}

void node_thaw(struct world *world, uint32_t index) {
	struct node *node = &world->nodes[index];

	if (node->state != NODE_FROZEN)
		return;
	node->state = NODE_UP;
	node->healthy_ns = world_now(world);
	node_dark(node, false);
	verdicts_frozen(world, node, false);
	net_process_thaw(&world->net, index);
	if (node->state == NODE_UP)
		node_tick(node);
	if (node->state == NODE_UP)
		node_arm(node);
}

void node_leap(struct world *world, uint32_t index, uint64_t leap_ns) {
	struct node *node = &world->nodes[index];

	if (node->state != NODE_UP)
		return;
	node->leap_ns += leap_ns;
	// After a leap of the clock, wake-ups are nearer by the leap, or overdue.
	if (node->wake_ns != RAS_NEVER)
		node_op_wake(node, node->wake_ns + node->leap_ns - leap_ns);
	node_tick(node);
}
