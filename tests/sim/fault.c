// SPDX-License-Identifier: BSD-3-Clause
#include "fault.h"

#include "verdicts.h"
#include "world.h"

#include <lib/must.h>

#include <stdlib.h>

// After a pause ends, late news of the node's presumed death may still arrive for this long.
#define FAULT_ECHO_NS (10 * WORLD_SEC)
// Lost data arrives even later: TCP retransmits with a backoff up to the user timeout, and all
// data behind the lost segment waits as well.
#define FAULT_LOSS_ECHO_NS (30 * WORLD_SEC)

enum fault_phase {
	FAULT_BEGINS,
	FAULT_ENDS,
	FAULT_ECHOED,
	FAULT_PAUSES,
	FAULT_RESUMES,
};

void faults_fini(struct faults *faults) {
	free(faults->list);
	free(faults->lagging);
	gaps_fini(&faults->gaps);
}

static void
fault_push(struct world *world, uint32_t index, enum fault_phase phase, uint64_t at_ns) {
	struct event *event = queue_event(&world->queue, WORLD_FAULT, 0);

	event->target = index;
	event->code = (uint16_t)phase;
	queue_push(&world->queue, event, at_ns);
}

void fault_add(struct world *world, const struct fault *fault) {
	struct faults *faults = &world->faults;
	uint64_t at_ns = faults->begin_ns + fault->at_ns;

	must(fault->node < world->options.nodes);
	if (faults->count == faults->capacity) {
		faults->capacity = faults->capacity > 0 ? 2 * faults->capacity : 64;
		faults->list = realloc(faults->list, faults->capacity * sizeof(*faults->list));
		must(faults->list != NULL);
	}
	faults->list[faults->count] = *fault;
	fault_push(world, faults->count, FAULT_BEGINS, at_ns);
	faults->count++;
	if (at_ns + fault->duration_ns > faults->end_ns)
		faults->end_ns = at_ns + fault->duration_ns;
}

// While a fault affects a node, its death counts as expected and not as a false alarm.
static void fault_ails(struct world *world, uint32_t node, bool ails) {
	struct node *victim = &world->nodes[node];

	if (ails) {
		victim->ailing++;
		return;
	}
	victim->ailing--;
	victim->ailed_ns = world_now(world);
	victim->healthy_ns = world_now(world);
}

// The profile's timers decide whether a pause of this length must be survived, must end in death,
// or may do either.
static void fault_pauses(struct world *world, const struct fault *fault, uint32_t node) {
	const struct ras_profile *profile = world->options.profile;

	if (fault->duration_ns == 0 || fault->duration_ns > profile->dead_ns + WORLD_SEC)
		measure_expect_death(world, node, true);
	else if (fault->duration_ns + 2 * WORLD_SEC > profile->dead_ns)
		world->measure.nodes[node].expected = true;
}

static enum node_memory fault_memory(enum fault_kind kind) {
	switch (kind) {
	case FAULT_FORGET:
		return NODE_FORGETS;
	case FAULT_STALE:
		return NODE_STALE;
	case FAULT_CLONE:
		return NODE_CLONED;
	default:
		return NODE_REMEMBERS;
	}
}

static void fault_process(struct world *world, const struct fault *fault, bool begins) {
	bool is_up = world->nodes[fault->node].state != NODE_OFF;

	if (!begins || fault->kind == FAULT_START) {
		if (fault->kind == FAULT_MOVE && !is_up)
			node_move(world, fault->node);
		world->nodes[fault->node].model = fault->value;
		node_start(world, fault->node, NULL, fault_memory(fault->kind));
		return;
	}
	// A stopped process cannot handle a request to leave.
	if (fault->kind == FAULT_LEAVE && world->nodes[fault->node].state != NODE_UP)
		return;
	if (is_up)
		measure_expect_death(world, fault->node, false);
	if (fault->kind == FAULT_LEAVE)
		node_leave(world, fault->node);
	else
		node_kill(world, fault->node);
}

// Swap the addresses of two nodes, as when two repaired machines come back in each other's place.
static void fault_swap(struct world *world, const struct fault *fault, bool begins) {
	uint32_t nodes[] = {fault->node, fault->value};

	for (uint32_t n = 0; n < 2; n++) {
		if (begins && world->nodes[nodes[n]].state != NODE_OFF) {
			measure_expect_death(world, nodes[n], false);
			node_kill(world, nodes[n]);
		}
	}
	if (begins)
		node_swap_places(world, fault->node, fault->value);
	for (uint32_t n = 0; n < 2 && !begins; n++)
		node_start(world, nodes[n], NULL, NODE_REMEMBERS);
}

// Return a place that no node uses. Each node owns two places, and another node gets one of them
// only by a swap.
static uint32_t fault_nowhere(const struct world *world, uint32_t node) {
	uint32_t place = world->nodes[node].place;

	return (place + world->options.nodes) % WORLD_PLACES(world->options.nodes);
}

// The node's configuration claims a wrong address and is corrected later. Each change is preceded
// by downtime of a quarter of the fault's duration: peers reject a new address while they believe
// that the previous run is alive.
static void fault_wrong(struct world *world, uint32_t index, enum fault_phase phase) {
	const struct fault *fault = &world->faults.list[index];
	uint32_t node = fault->node;
	uint64_t now_ns = world_now(world);
	bool is_up = world->nodes[node].state != NODE_OFF;
	uint32_t other = fault->value == node ? fault_nowhere(world, node)
					      : world->nodes[fault->value].place;

	if ((phase == FAULT_BEGINS || phase == FAULT_RESUMES) && is_up) {
		measure_expect_death(world, node, false);
		node_kill(world, node);
	}
	if (phase == FAULT_BEGINS) {
		fault_ails(world, node, true);
		fault_push(world, index, FAULT_PAUSES, now_ns + fault->duration_ns / 4);
	} else if (phase == FAULT_PAUSES) {
		node_claim(world, node, other);
		node_start(world, node, NULL, NODE_REMEMBERS);
		world->measure.nodes[node].expected = true;
		fault_push(world, index, FAULT_RESUMES, now_ns + fault->duration_ns / 2);
	} else {
		node_claim(world, node, NET_NOBODY);
	}
	if (phase != FAULT_ENDS)
		return;
	fault_ails(world, node, false);
	if (is_up) // started meanwhile by another fault
		node_kill(world, node);
	node_start(world, node, NULL, NODE_REMEMBERS);
	fault_push(world, index, FAULT_ECHOED, now_ns + FAULT_ECHO_NS);
}

// Freeze or thaw one process, as a part of a fault.
static void fault_freeze_node(struct world *world, uint32_t index, uint32_t victim, bool begins) {
	struct node *node = &world->nodes[victim];

	fault_ails(world, victim, begins);
	if (begins && node->state != NODE_OFF) {
		fault_pauses(world, &world->faults.list[index], victim);
		node_freeze(world, victim);
	} else if (!begins && node->state == NODE_FROZEN) {
		if (world->measure.nodes[victim].death != 0)
			measure_expect_return(world, victim);
		node_thaw(world, victim);
	}
}

// A stopped machine stops its kernel and all of its processes.
static void fault_freeze(struct world *world, uint32_t index, bool begins) {
	const struct fault *fault = &world->faults.list[index];
	uint32_t host = world->net.nodes[fault->node].host;

	if (fault->kind == FAULT_STOP)
		net_host_down(&world->net, host, begins, true);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (n == fault->node ||
		    (fault->kind == FAULT_STOP && world->net.nodes[n].host == host))
			fault_freeze_node(world, index, n, begins);
	}
	if (!begins)
		fault_push(world, index, FAULT_ECHOED, world_now(world) + FAULT_ECHO_NS);
}

#define FAULT_LAG_PERIOD_NS WORLD_SEC

// The process stops for a moment in each second. Such short pauses must not get it declared dead.
static void fault_lag(struct world *world, uint32_t index, enum fault_phase phase) {
	struct faults *faults = &world->faults;
	const struct fault *fault = &faults->list[index];
	uint64_t pause_ns = fault->value * WORLD_MS;
	uint64_t now_ns = world_now(world);
	uint64_t ends_ns = faults->begin_ns + fault->at_ns + fault->duration_ns;
	bool stands = phase == FAULT_BEGINS || phase == FAULT_PAUSES;

	if (faults->lagging == NULL) {
		faults->lagging = calloc(world->options.nodes, sizeof(*faults->lagging));
		must(faults->lagging != NULL);
	}
	if (stands && world->nodes[fault->node].state == NODE_UP) {
		faults->lagging[fault->node] = index + 1;
		node_freeze(world, fault->node);
	} else if (!stands && faults->lagging[fault->node] == index + 1) {
		faults->lagging[fault->node] = 0;
		node_thaw(world, fault->node);
	}
	if (stands)
		fault_push(world, index, FAULT_RESUMES, now_ns + pause_ns);
	else if (phase == FAULT_RESUMES && now_ns + FAULT_LAG_PERIOD_NS < ends_ns)
		fault_push(world, index, FAULT_PAUSES, now_ns + FAULT_LAG_PERIOD_NS - pause_ns);
}

static void fault_host(struct world *world, const struct fault *fault, bool begins) {
	uint32_t host = world->net.nodes[fault->node].host;

	if (!begins)
		net_host_down(&world->net, host, false, false);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (world->net.nodes[n].host != host)
			continue;
		if (begins && world->nodes[n].state != NODE_OFF) {
			measure_expect_death(world, n, false);
			node_vanish(world, n);
		} else if (!begins) {
			node_start(world, n, NULL, NODE_REMEMBERS);
		}
	}
	if (begins)
		net_host_down(&world->net, host, true, false);
}

static uint32_t fault_nodes_of(const struct world *world, uint32_t host) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < world->options.nodes; n++)
		count += world->net.nodes[n].host == host;
	return count;
}

// Mark the nodes of a deaf or mute host as dark. Such a node is cut off in at least one
// direction, so peers may declare it dead in the end. Several nodes on one host form a partition
// side, possibly the larger side.
static void fault_dark(struct world *world, uint32_t host, bool begins) {
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (world->net.nodes[n].host == host)
			node_dark(&world->nodes[n], begins);
	}
}

static void fault_hard_to_reach(struct world *world, uint32_t index, bool begins) {
	const struct fault *fault = &world->faults.list[index];
	uint32_t host = world->net.nodes[fault->node].host;
	struct net_host wanted = world->net.hosts[host];
	bool is_part = fault_nodes_of(world, host) > 1;
	uint64_t echo_ns = FAULT_LOSS_ECHO_NS;

	if (fault->kind == FAULT_DEAF)
		wanted.deaf = begins;
	else if (fault->kind == FAULT_MUTE)
		wanted.mute = begins;
	else if (fault->kind != FAULT_LOSSOUT)
		wanted.loss_in_percent = begins ? fault->value : 0;
	if (fault->kind == FAULT_LOSS || fault->kind == FAULT_LOSSOUT)
		wanted.loss_out_percent = begins ? fault->value : 0;
	net_host_set(&world->net, host, &wanted);
	if (fault->kind == FAULT_DEAF || fault->kind == FAULT_MUTE)
		fault_dark(world, host, begins);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (!is_part && world->net.nodes[n].host != host)
			continue;
		fault_ails(world, n, begins);
		if (begins)
			world->measure.nodes[n].expected = true;
	}
	if (begins)
		return;
	if (fault->kind == FAULT_DEAF || fault->kind == FAULT_MUTE)
		echo_ns = FAULT_ECHO_NS;
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (is_part || world->net.nodes[n].host == host)
			world->nodes[n].echo_ns = world_now(world) + echo_ns;
	}
	fault_push(world, index, FAULT_ECHOED, world_now(world) + echo_ns);
}

// An island is a percentage of the hosts, in ring order. Invariant K judges which side may
// declare which members dead, because that depends on other faults, too.
static void fault_split(struct world *world, uint32_t index, bool begins) {
	const struct fault *fault = &world->faults.list[index];
	uint32_t hosts = world->options.hosts;
	struct gap_sides sides = gaps_now(&world->faults.gaps);
	struct gap_side *side = fault->kind == FAULT_FENCE ? &sides.fence : &sides.island;

	side->first = world->net.nodes[fault->node].host;
	side->count = begins ? (uint32_t)((uint64_t)hosts * fault->value / 100) : 0;
	for (uint32_t n = 0; n < hosts; n++) {
		world->net.hosts[n].fence = gap_side_has(&sides.fence, n, hosts);
		world->net.hosts[n].island = gap_side_has(&sides.island, n, hosts);
	}
	sides.at_ns = world_now(world);
	gaps_change(&world->faults.gaps, &sides, hosts);
	world->faults.declaring = 0; // the sides change when two partitions overlap
	world->faults.splits += begins ? 1 : -1u;
	net_faults_changed(&world->net);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		fault_ails(world, n, begins);
		if (begins)
			world->measure.nodes[n].expected = true;
	}
	if (!begins)
		fault_push(world, index, FAULT_ECHOED, world_now(world) + FAULT_ECHO_NS);
}

// Each of two nodes that cannot reach each other sees the other one as dead.
static void fault_cut(struct world *world, const struct fault *fault, bool begins) {
	uint32_t nodes[] = {fault->node, fault->value};
	struct net_cut cut = {fault->node, fault->value, fault->kind == FAULT_ONEWAY};

	for (uint32_t n = 0; n < 2 && !begins; n++) {
		if (!world_is_reached(world, nodes[n]))
			world->nodes[nodes[n]].healthy_ns = world_now(world);
	}
	net_pair_cut(&world->net, &cut, begins);
}

static void fault_wire(struct world *world, const struct fault *fault, bool begins) {
	uint32_t host = world->net.nodes[fault->node].host;
	struct net_host wanted = world->net.hosts[host];

	switch (fault->kind) {
	case FAULT_CUT:
	case FAULT_ONEWAY:
		fault_cut(world, fault, begins);
		return;
	case FAULT_STALL:
		world->net.config.stall_ppm = begins ? fault->value : world->options.stall_ppm;
		return;
	case FAULT_SLOW:
		wanted.slow_ns = begins ? fault->value * WORLD_MS : 0;
		break;
	default:
		wanted.refuses = begins;
		break;
	}
	net_host_set(&world->net, host, &wanted);
}

// Return whether the fault may get nodes on other hosts declared dead.
static bool fault_parts(enum fault_kind kind) {
	return kind == FAULT_SPLIT || kind == FAULT_FENCE || kind == FAULT_DEAF ||
	       kind == FAULT_MUTE || kind == FAULT_LOSS || kind == FAULT_LOSSIN ||
	       kind == FAULT_LOSSOUT;
}

// End the grace period after a fault. A later death of the fault's nodes is a false alarm again;
// some fault kinds affect all nodes.
static void fault_echoed(struct world *world, const struct fault *fault) {
	uint32_t host = world->net.nodes[fault->node].host;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		bool concerned = fault_parts(fault->kind) || n == fault->node ||
				 world->net.nodes[n].host == host;

		// A later fault may have extended the node's grace period.
		if (concerned && world->nodes[n].ailing == 0 &&
		    world_now(world) >= world->nodes[n].echo_ns &&
		    world_now(world) >= world->nodes[n].healthy_ns + FAULT_ECHO_NS)
			measure_expect_life(world, n);
	}
}

static void fault_apply(struct world *world, uint32_t index, bool begins) {
	const struct fault *fault = &world->faults.list[index];

	switch (fault->kind) {
	case FAULT_KILL:
	case FAULT_FORGET:
	case FAULT_LEAVE:
	case FAULT_START:
	case FAULT_STALE:
	case FAULT_MOVE:
	case FAULT_CLONE:
		fault_process(world, fault, begins);
		break;
	case FAULT_WRONG:
		fault_wrong(world, index, begins ? FAULT_BEGINS : FAULT_ENDS);
		break;
	case FAULT_LAG:
		fault_lag(world, index, begins ? FAULT_BEGINS : FAULT_ENDS);
		break;
	case FAULT_FREEZE:
	case FAULT_STOP:
		fault_freeze(world, index, begins);
		break;
	case FAULT_HOST:
		fault_host(world, fault, begins);
		break;
	case FAULT_DEAF:
	case FAULT_MUTE:
	case FAULT_LOSS:
	case FAULT_LOSSIN:
	case FAULT_LOSSOUT:
		fault_hard_to_reach(world, index, begins);
		break;
	case FAULT_SWAP:
		fault_swap(world, fault, begins);
		break;
	case FAULT_SPLIT:
	case FAULT_FENCE:
		fault_split(world, index, begins);
		break;
	case FAULT_RESET:
		// Peers can reach the node again once connections are re-established in either
		// direction.
		net_process_cut(&world->net, fault->node);
		world->nodes[fault->node].healthy_ns = world_now(world);
		world->measure.nodes[fault->node].expected = true;
		fault_push(world, index, FAULT_ECHOED, world_now(world) + FAULT_ECHO_NS);
		break;
	case FAULT_FABRIC:
		verdicts_fabric_cut(world, fault->node, begins);
		break;
	case FAULT_LEAP:
		node_leap(world, fault->node, fault->value * WORLD_MS);
		break;
	default:
		fault_wire(world, fault, begins);
		break;
	}
}

void fault_happen(struct world *world, struct event *event) {
	uint32_t index = event->target;
	enum fault_phase phase = event->code;
	struct fault fault = world->faults.list[index];
	struct trace_entry entry = {
		.at_ns = world_now(world),
		.node = fault.node,
		.other = NET_NOBODY,
		.value = fault.kind,
		.kind = TRACE_FAULT,
		.detail = (uint16_t)phase,
	};

	queue_release(&world->queue, event);
	trace_add(&world->trace, &entry);
	if (phase == FAULT_ECHOED) {
		fault_echoed(world, &fault);
		return;
	}
	if (phase == FAULT_PAUSES || phase == FAULT_RESUMES) {
		if (fault.kind == FAULT_WRONG)
			fault_wrong(world, index, phase);
		else
			fault_lag(world, index, phase);
		return;
	}
	fault_apply(world, index, phase == FAULT_BEGINS);
	if (phase == FAULT_BEGINS && fault.duration_ns > 0)
		fault_push(world, index, FAULT_ENDS, world_now(world) + fault.duration_ns);
}
