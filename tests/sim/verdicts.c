// SPDX-License-Identifier: BSD-3-Clause
#include "verdicts.h"

#include "random.h"
#include "world.h"

#include <lib/must.h>
#include <ras/collective.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Time after which a confirmed drain-later counts as a drain.
#define DRAIN_AFTER_NS (60 * WORLD_SEC)
// A node is well after the time to be declared dead and this margin without a fault.
#define WELL_MARGIN_NS (5 * WORLD_SEC)
// The agent's grace after an own pause (control/verdict/store/peers.c).
#define PAUSE_GRACE_NS (2 * WORLD_SEC)
#define PHASE_NS (WORLD_SEC / VERDICTS_PHASES)

// Codes of WORLD_VERDICT.
enum verdicts_code {
	VERDICTS_WAKE,
	VERDICTS_LOOK,
	VERDICTS_MISSED,
	VERDICTS_FEED,
	VERDICTS_LOSSES,
};

struct missed {
	uint32_t peer, size;
	uint64_t begun_ns;
};

static void *verdicts_allocate(void *ctx, size_t size) {
	struct verdicts *verdicts = ctx;

	verdicts->bytes += size;
	if (verdicts->bytes > verdicts->bytes_max)
		verdicts->bytes_max = verdicts->bytes;
	return pool_take_zeroed(verdicts->world->pool, size);
}

static void verdicts_release(void *ctx, void *memory, size_t size) {
	struct verdicts *verdicts = ctx;

	if (memory == NULL)
		return;
	verdicts->bytes -= size;
	pool_give(verdicts->world->pool, memory, size);
}

static struct event *
verdicts_event_new(struct verdict_node *own, enum verdicts_code code, uint32_t bytes) {
	struct event *event = queue_event(&own->node->world->queue, WORLD_VERDICT, bytes);

	event->target = own->node->index;
	event->generation = own->generation;
	event->code = (uint16_t)code;
	return event;
}

static void verdicts_arm(struct verdict_node *own) {
	struct world *world = own->node->world;
	uint64_t at_ns = own->engine_wake_ns < own->exchange_wake_ns ? own->engine_wake_ns
								     : own->exchange_wake_ns;

	if (own->grants_wake_ns < at_ns)
		at_ns = own->grants_wake_ns;
	if (at_ns < world_now(world))
		at_ns = world_now(world);
	if (at_ns == RAS_NEVER || own->timer_ns <= at_ns)
		return;
	own->timer_ns = at_ns;
	queue_push(&world->queue, verdicts_event_new(own, VERDICTS_WAKE, 0), at_ns);
}

static void on_engine_wake(void *ctx, uint64_t at_ns) {
	struct verdict_node *own = ctx;

	own->engine_wake_ns = at_ns;
	verdicts_arm(own);
}

static void on_exchange_wake(void *ctx, uint64_t at_ns) {
	struct verdict_node *own = ctx;

	own->exchange_wake_ns = at_ns;
	verdicts_arm(own);
}

static void on_links(void *ctx, uint64_t peer, struct verdict_links *ret_links) {
	const struct verdict_node *own = ctx;
	const struct ras *ras = own->node->ras;
	struct ras_link_info link;
	struct ras_peer found;

	*ret_links = (struct verdict_links){0};
	for (uint32_t n = 0; ras_link_at(ras, n, &link) == 0; n++) {
		if (!link.ready || link.quiet_ns < VERDICT_QUIET_NS)
			continue;
		ret_links->peer_is_quiet = ret_links->peer_is_quiet || link.peer == peer;
		if (ras_peer_find(ras, link.peer, &found) == 0 && found.state == RAS_ALIVE)
			ret_links->quiet++;
	}
}

static bool on_grants_wake(void *ctx, uint64_t at_ns) {
	struct verdict_node *own = ctx;

	own->grants_wake_ns = at_ns;
	verdicts_arm(own);
	return true;
}

static void on_grants_tell(void *ctx, const void *bytes, size_t size) {
	struct verdict_node *own = ctx;
	struct node *node = own->node;

	(void)ras_notice(node->ras, node_now(node), VERDICTS_GRANTS, bytes, size);
}

static bool wants_drain(void *ctx, uint64_t now_ns, const struct verdict_view *view) {
	(void)ctx;
	return view->advice == VERDICT_ADVICE_DRAIN ||
	       (view->advice == VERDICT_ADVICE_DRAIN_LATER &&
		now_ns >= view->since_ns + DRAIN_AFTER_NS);
}

static void on_given(void *ctx, uint64_t id) {
	(void)ctx;
	(void)id; // the audit reads the verdicts itself
}

static void on_tell(void *ctx, const void *bytes, size_t size) {
	struct verdict_node *own = ctx;
	struct node *node = own->node;

	(void)ras_notice(node->ras, node_now(node), VERDICTS_NOTICE, bytes, size);
}

// Return whether another node reaches this one in both directions, through all partitions.
static bool is_reached_unfenced(const struct world *world, uint32_t node) {
	const struct net *net = &world->net;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (n != node && world->nodes[n].state == NODE_UP && net_reaches(net, n, node) &&
		    net_reaches(net, node, n) &&
		    net->hosts[net->nodes[n].host].fence == net->hosts[net->nodes[node].host].fence)
			return true;
	}
	return false;
}

bool verdicts_is_well(const struct world *world, uint32_t node) {
	uint64_t patience_ns = world->options.profile->dead_ns + WELL_MARGIN_NS;
	const struct verdict_node *own = &world->verdicts->nodes[node];
	const struct node *self = &world->nodes[node];

	// Each partition in progress counts as an ailment of all nodes.
	return self->state == NODE_UP && !self->leaving && self->ailing == world->faults.splits &&
	       !own->cut && world_now(world) > self->healthy_ns + patience_ns &&
	       world_now(world) > own->uncut_ns + patience_ns && is_reached_unfenced(world, node);
}

static bool is_sick(const struct verdicts *verdicts, uint32_t node) {
	return verdicts->nodes[node].sick ||
	       (verdicts->by_faults && !verdicts_is_well(verdicts->world, node));
}

// Check whether a scheduler would act on the verdict although the node has no fault.
static void
verdicts_check(struct verdicts *verdicts, uint32_t by, const struct verdict_view *view) {
	uint64_t now_ns = world_now(verdicts->world);
	uint32_t node = world_node_of_id(verdicts->world, view->subject);
	bool acts = wants_drain(NULL, now_ns, view) &&
		    grants_decide(verdicts->nodes[by].grants, now_ns, view->subject) == GRANT_GIVEN;

	if (!acts || node == NET_NOBODY || is_sick(verdicts, node) || verdicts->drained[node])
		return;
	verdicts->drained[node] = 1;
	if (verdicts->healthy_drained++ > 0)
		return;
	verdicts->drained_node = node;
	snprintf(
		verdicts->drained_text, sizeof(verdicts->drained_text),
		"n%05u, by n%05u, at %.3f s, as %s (%s): %s", node + 1, by + 1,
		(double)now_ns / 1e9, verdict_name(view->verdict), view->reason, view->evidence
	);
}

static void on_changed(void *ctx, const struct verdict_change *change) {
	struct verdict_node *own = ctx;

	grants_check_soon(own->grants, world_now(own->node->world));
	verdicts_check(own->node->world->verdicts, own->node->index, change->now);
}

void verdicts_audit(struct world *world) {
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct verdict_node *own = &world->verdicts->nodes[n];
		struct verdict_view view;
		uint32_t cursor = 0;

		// A frozen agent drains no node.
		while (own->engine != NULL && own->node->state == NODE_UP &&
		       verdict_unhealthy_next(own->engine, &cursor, &view))
			verdicts_check(world->verdicts, n, &view);
	}
}

// Name the host only if nodes share hosts. In a simulation of thousands, the names would take
// most of the memory.
static const char *host_of(const struct world *world, uint32_t node, char text[16]) {
	text[0] = '\0';
	if (world->options.hosts < world->options.nodes)
		snprintf(text, 16, "h%05u", world->net.nodes[node].host + 1);
	return text;
}

static void verdicts_peer(
	struct world *world,
	struct verdict_node *own,
	uint32_t peer,
	const struct verdict_peer_update *said
) {
	struct verdict_peer_update whole = *said;
	char host[16];

	whole.host = host_of(world, peer, host);
	whole.leaf = "";
	must(verdict_peer_update(own->engine, world_now(world), &whole) == 0);
}

void verdicts_of_self(struct world *world, struct verdict_node *own) {
	struct verdict_self_update self = {
		.brake = own->braking,
		.loses = own->losses->ourselves,
		.paused_until_ns = own->paused_until_ns,
		.paused_ns = own->paused_ns,
	};
	struct ras_view view;

	ras_view(own->node->ras, &view);
	self.joined = view.joined;
	self.silent = own->braking ? view.silent : 0;
	verdict_self_update(own->engine, world_now(world), &self);
}

// Pass the whole table of the core to the engine.
static void verdicts_feed(struct world *world, struct verdict_node *own) {
	const struct ras *ras = own->node->ras;
	struct ras_view view;

	own->feeding = false;
	ras_view(ras, &view);
	verdicts_of_self(world, own);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		struct verdict_peer_update said = {0};
		struct ras_peer peer;
		uint32_t node;

		if (ras_peer_at(ras, slot, &peer) != 0)
			continue;
		node = world_node_of_id(world, peer.record->id);
		if (node == NET_NOBODY)
			continue;
		said.id = peer.record->id;
		said.incarnation = peer.incarnation;
		said.state = node == own->node->index ? RAS_ALIVE : peer.state;
		said.cause = peer.cause;
		said.sole = peer.sole;
		said.maint = peer.maint;
		said.observer_count = peer.observer_count;
		memcpy(said.observers, peer.observers, sizeof(said.observers));
		verdicts_peer(world, own, node, &said);
	}
}

static void verdicts_start_node(struct world *world, struct verdict_node *own) {
	static const struct verdict_ops engine_ops = {
		.changed = on_changed, .wake = on_engine_wake, .links = on_links};
	static const struct observation_exchange_ops exchange_ops = {
		.tell = on_tell, .wake = on_exchange_wake};
	struct verdicts *verdicts = world->verdicts;
	uint64_t self = own->node->record->id;
	static const struct grants_ops grants_ops = {
		.tell = on_grants_tell,
		.wake = on_grants_wake,
		.given = on_given,
		.wants = wants_drain,
	};
	const struct grants_config limits = {.self = self, .rate_percent = 5, .out_percent = 33};
	struct verdict_config config = {.self = self};
	struct event *event;
	int err;

	own->generation++;
	own->engine_wake_ns = own->exchange_wake_ns = own->grants_wake_ns = RAS_NEVER;
	own->timer_ns = RAS_NEVER;
	own->braking = false;
	own->paused_until_ns = own->paused_ns = 0;
	err = verdict_engine_create(&config, &verdicts->memory, &engine_ops, own, &own->engine);
	must(err == 0);
	err = observation_exchange_create(
		own->engine, self, splitmix_next(&verdicts->random), &verdicts->memory,
		&exchange_ops, own, &own->exchange
	);
	must(err == 0);
	err = grants_create(
		own->engine, &limits, &verdicts->memory, &grants_ops, own, &own->grants
	);
	must(err == 0);
	grants_member_alive(own->grants, world_now(world), self);
	own->losses = verdicts->memory.allocate(verdicts, sizeof(*own->losses));
	must(own->losses != NULL);
	own->losses_look_ns = 0;
	event = verdicts_event_new(own, VERDICTS_LOSSES, 0);
	queue_push(
		&world->queue, event,
		world_now(world) + random_below(&verdicts->random, (uint32_t)(LOSS_ROUND_NS / 2))
	);
	// Spread the starts over a phase, as for agents that were not started at the same
	// instant.
	event = verdicts_event_new(own, VERDICTS_LOOK, 0);
	queue_push(
		&world->queue, event, world_now(world) + random_below(&verdicts->random, PHASE_NS)
	);
}

int verdicts_begin(struct world *world) {
	struct verdicts *verdicts = calloc(1, sizeof(*verdicts));

	if (verdicts == NULL)
		return -ENOMEM;
	world->verdicts = verdicts;
	world->net.counts = true;
	verdicts->world = world;
	verdicts->random = random_stream(world->options.seed, 7);
	verdicts->memory = (struct ras_memory
	){.allocate = verdicts_allocate, .release = verdicts_release, .ctx = verdicts};
	verdicts->nodes = calloc(world->options.nodes, sizeof(*verdicts->nodes));
	verdicts->drained = calloc(world->options.nodes, 1);
	if (verdicts->nodes == NULL || verdicts->drained == NULL) {
		verdicts_end(world);
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		struct verdict_node *own = &verdicts->nodes[n];

		own->node = &world->nodes[n];
		own->responder = OBSERVATION_RESPONDER_HARDWARE;
		if (own->node->state == NODE_OFF)
			continue;
		verdicts_start_node(world, own);
		verdicts_feed(world, own);
	}
	return 0;
}

static void verdicts_stop_node(struct world *world, struct verdict_node *own) {
	const struct observation_exchange_counters *counters;

	if (own->engine == NULL)
		return;
	counters = observation_exchange_counters(own->exchange);
	world->verdicts->told += counters->told;
	world->verdicts->told_bytes += counters->told_bytes;
	own->generation++;
	verdicts_forget_paths(world, own);
	world->verdicts->granted += grants_counters(own->grants)->given;
	own->grants = grants_destroy(own->grants);
	verdicts_release(world->verdicts, own->losses, sizeof(*own->losses));
	own->losses = NULL;
	own->exchange = observation_exchange_destroy(own->exchange);
	own->engine = verdict_engine_destroy(own->engine);
}

void verdicts_end(struct world *world) {
	struct verdicts *verdicts = world->verdicts;

	if (verdicts == NULL)
		return;
	for (uint32_t n = 0; verdicts->nodes != NULL && n < world->options.nodes; n++) {
		if (verdicts->nodes[n].node != NULL)
			verdicts_stop_node(world, &verdicts->nodes[n]);
	}
	must(verdicts->bytes == 0);
	free(verdicts->nodes);
	free(verdicts->drained);
	free(verdicts);
	world->verdicts = NULL;
}

void verdicts_started(struct world *world, struct node *node) {
	if (world->verdicts != NULL)
		verdicts_start_node(world, &world->verdicts->nodes[node->index]);
}

void verdicts_stopped(struct world *world, struct node *node) {
	if (world->verdicts != NULL)
		verdicts_stop_node(world, &world->verdicts->nodes[node->index]);
}

void verdicts_frozen(struct world *world, struct node *node, bool frozen) {
	struct verdict_node *own;

	if (world->verdicts == NULL)
		return;
	own = &world->verdicts->nodes[node->index];
	own->frozen_ns = world_now(world);
	if (!frozen && own->engine != NULL)
		verdicts_resume(world, own);
}

void verdicts_fabric_cut(struct world *world, uint32_t node, bool cut) {
	struct verdict_node *own;

	if (world->verdicts == NULL)
		return;
	own = &world->verdicts->nodes[node];
	own->cut = cut;
	if (!cut)
		own->uncut_ns = world_now(world);
}

// Return the state that an event reports; false if it reports none.
static bool state_of_event(const struct ras_event *event, enum ras_state *ret_state) {
	switch (event->kind) {
	case RAS_EVENT_JOINED:
	case RAS_EVENT_ALIVE:
	case RAS_EVENT_REFUTED:
	case RAS_EVENT_REJOINED:
		*ret_state = RAS_ALIVE;
		return true;
	case RAS_EVENT_SUSPECT:
		*ret_state = RAS_SUSPECT;
		return true;
	case RAS_EVENT_UNREACHABLE:
		*ret_state = RAS_UNREACHABLE;
		return true;
	case RAS_EVENT_DEAD:
		*ret_state = RAS_DEAD;
		return true;
	case RAS_EVENT_LEFT:
		*ret_state = RAS_LEFT;
		return true;
	default:
		return false;
	}
}

void verdicts_event(struct world *world, struct node *node, const struct ras_event *event) {
	struct verdict_peer_update said = {.id = event->peer};
	struct verdict_node *own;
	uint32_t peer;

	if (world->verdicts == NULL || world->verdicts->nodes[node->index].engine == NULL)
		return;
	own = &world->verdicts->nodes[node->index];
	if (event->kind == RAS_EVENT_BRAKE_ON || event->kind == RAS_EVENT_BRAKE_OFF)
		own->braking = event->kind == RAS_EVENT_BRAKE_ON;
	if (event->kind == RAS_EVENT_PAUSED) {
		if (world_now(world) >= own->paused_until_ns || event->value > own->paused_ns)
			own->paused_ns = event->value;
		own->paused_until_ns = world_now(world) + PAUSE_GRACE_NS;
	}
	if (event->kind == RAS_EVENT_JOIN_DONE)
		grants_member_alive(own->grants, world_now(world), node->record->id);
	if (event->kind == RAS_EVENT_JOINED || event->kind == RAS_EVENT_REJOINED)
		grants_member_alive(own->grants, world_now(world), event->peer);
	if (event->kind == RAS_EVENT_BRAKE_ON || event->kind == RAS_EVENT_BRAKE_OFF ||
	    event->kind == RAS_EVENT_PAUSED || event->kind == RAS_EVENT_JOIN_DONE) {
		// The core must not be queried from inside one of its calls.
		if (!own->feeding)
			queue_push(
				&world->queue, verdicts_event_new(own, VERDICTS_FEED, 0),
				world_now(world)
			);
		own->feeding = true;
		return;
	}
	peer = event->peer != 0 ? world_node_of_id(world, event->peer) : NET_NOBODY;
	if (peer == NET_NOBODY || peer == node->index)
		return;
	if (event->kind == RAS_EVENT_FORGOTTEN) {
		verdict_peer_forget(own->engine, world_now(world), event->peer);
		return;
	}
	if (!state_of_event(event, &said.state))
		return;
	said.incarnation = event->incarnation;
	said.cause = event->cause;
	said.observer_count = event->observer_count;
	memcpy(said.observers, event->observers, sizeof(said.observers));
	said.sole = said.state == RAS_DEAD && event->observer_count == 1;
	verdicts_peer(world, own, peer, &said);
	grants_check_soon(own->grants, world_now(world));
}

void verdicts_granted(struct world *world, struct node *node, const void *bytes, size_t size) {
	struct verdict_node *own;

	if (world->verdicts == NULL)
		return;
	own = &world->verdicts->nodes[node->index];
	if (own->grants != NULL)
		must(grants_receive(own->grants, world_now(world), bytes, size) == 0);
}

uint64_t verdicts_grants(const struct world *world) {
	uint64_t granted = world->verdicts->granted;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (world->verdicts->nodes[n].grants != NULL)
			granted += grants_counters(world->verdicts->nodes[n].grants)->given;
	}
	return granted;
}

void verdicts_notice(
	struct world *world, struct node *node, uint64_t origin, const void *bytes, size_t size
) {
	struct verdict_node *own;

	if (world->verdicts == NULL)
		return;
	own = &world->verdicts->nodes[node->index];
	if (own->exchange != NULL)
		must(observation_exchange_receive(
			     own->exchange, world_now(world), origin, ras_notice_number(node->ras),
			     bytes, size
		     ) == 0);
}

static void verdicts_wake(struct world *world, struct verdict_node *own) {
	uint64_t now_ns = world_now(world);

	own->timer_ns = RAS_NEVER;
	if (own->engine_wake_ns <= now_ns) {
		own->engine_wake_ns = RAS_NEVER;
		verdict_tick(own->engine, now_ns);
	}
	if (own->exchange_wake_ns <= now_ns) {
		own->exchange_wake_ns = RAS_NEVER;
		observation_exchange_tick(own->exchange, now_ns);
		node_settle(own->node);
	}
	if (own->grants_wake_ns <= now_ns) {
		own->grants_wake_ns = RAS_NEVER;
		grants_tick(own->grants, now_ns);
		node_settle(own->node);
	}
	if (own->engine != NULL)
		verdicts_arm(own);
}

// Postpone the event of a frozen node until the node resumes.
static void verdicts_later(struct world *world, struct verdict_node *own, struct event *event) {
	uint64_t at_ns = world_now(world) + PHASE_NS;

	if (event->code == VERDICTS_WAKE)
		own->timer_ns = at_ns;
	queue_push(&world->queue, event, at_ns);
}

// Return whether an earlier wake-up has replaced this one. If both ran, each would schedule a
// successor.
static bool is_outdone(const struct verdict_node *own, const struct event *event) {
	return event->code == VERDICTS_WAKE && own->timer_ns != world_now(own->node->world);
}

void verdicts_happen(struct world *world, struct event *event) {
	struct verdict_node *own =
		world->verdicts != NULL ? &world->verdicts->nodes[event->target] : NULL;
	struct missed missed = {0};
	uint64_t at_ns;

	if (own == NULL || own->engine == NULL || event->generation != own->generation ||
	    is_outdone(own, event)) {
		queue_release(&world->queue, event);
		return;
	}
	if (own->node->state == NODE_FROZEN && event->code != VERDICTS_MISSED) {
		verdicts_later(world, own, event);
		return;
	}
	switch (event->code) {
	case VERDICTS_WAKE:
		queue_release(&world->queue, event);
		verdicts_wake(world, own);
		return;
	case VERDICTS_LOOK:
		verdicts_look(
			world, own,
			(uint32_t
			)((world_now(world) / PHASE_NS + own->node->index) % VERDICTS_PHASES)
		);
		verdicts_later(world, own, event);
		return;
	case VERDICTS_FEED:
		queue_release(&world->queue, event);
		verdicts_feed(world, own);
		return;
	case VERDICTS_LOSSES:
		at_ns = verdicts_losses(world, own);
		node_settle(own->node);
		queue_push(&world->queue, event, at_ns);
		return;
	default:
		memcpy(&missed, event->bytes, sizeof(missed));
		queue_release(&world->queue, event);
		if (own->node->state == NODE_UP)
			verdicts_missed(world, own, missed.peer, missed.size, missed.begun_ns);
		return;
	}
}

void verdicts_miss_at(struct verdict_node *own, uint32_t peer, uint32_t size, uint64_t at_ns) {
	struct world *world = own->node->world;
	struct missed missed = {.peer = peer, .size = size, .begun_ns = world_now(world)};
	struct event *event = verdicts_event_new(own, VERDICTS_MISSED, sizeof(missed));

	memcpy(event->bytes, &missed, sizeof(missed));
	queue_push(&world->queue, event, at_ns);
}

void verdicts_sum(const struct world *world, double *ret_told, double *ret_bytes) {
	uint64_t told = world->verdicts->told;
	uint64_t bytes = world->verdicts->told_bytes;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct observation_exchange *exchange = world->verdicts->nodes[n].exchange;

		if (exchange == NULL)
			continue;
		told += observation_exchange_counters(exchange)->told;
		bytes += observation_exchange_counters(exchange)->told_bytes;
	}
	*ret_told = (double)told;
	*ret_bytes = (double)bytes;
}

void verdicts_say(
	struct world *world,
	uint32_t node,
	enum verdict verdict,
	const char *reason,
	const char *evidence
) {
	struct verdict_node *own = &world->verdicts->nodes[node];
	struct statement statement = {.verdict = verdict};

	if (own->engine == NULL || own->node->state != NODE_UP)
		return;
	statement.subject = own->node->record->id;
	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	snprintf(statement.evidence, sizeof(statement.evidence), "%s", evidence);
	(void)observation_exchange_statement(own->exchange, world_now(world), &statement);
}
