// SPDX-License-Identifier: BSD-3-Clause
// Packets of one read and of one connection test, and retransmissions of TCP.
#include "random.h"
#include "verdicts.h"
#include "world.h"

#include <string.h>

// RC parameters of the agent: its timeout, and the number of retries without progress.
#define RC_TIMEOUT_NS (UINT64_C(4096) << 14)
#define RC_RETRIES 6
#define KNOCK_TRIES 2 // SYN, and once more after a second
#define PLACE_LARGE 2 // from this size index on, packets count as large

// Number of packets of an answer, by size index: 8 B, 1 KiB, the MTU, 64 KiB.
static const uint32_t answer_packets[PATH_SIZES] = {1, 1, 1, 16};

static const struct path_fault *
fault_between(const struct verdicts *verdicts, uint32_t a, uint32_t b) {
	for (uint32_t n = 0; n < verdicts->fault_count; n++) {
		const struct path_fault *fault = &verdicts->faults[n];

		if ((fault->a == a && fault->b == b) || (fault->a == b && fault->b == a))
			return fault;
	}
	return NULL;
}

static uint32_t slowest(uint32_t a, uint32_t b) {
	uint32_t slow = a > b ? a : b;

	return slow > 0 ? slow : 100;
}

// Draw whether a packet arrives.
static bool packet(struct verdicts *verdicts, double passes) {
	return passes >= 1 ||
	       (double)random_below(&verdicts->random, 1u << 30) < passes * (1u << 30);
}

// Simulate one request and return how many wanted packets arrive in order. A gap followed by
// other packets is reported at once; a loss at the end only by the timer.
static uint32_t one_try(struct verdicts *verdicts, double passes, uint32_t left, bool *ret_told) {
	uint32_t came = 0;
	bool gap = false;

	*ret_told = false;
	if (!packet(verdicts, passes))
		return 0;
	for (uint32_t n = 0; n < left; n++) {
		bool arrives = packet(verdicts, passes);

		came += arrives && !gap;
		*ret_told = *ret_told || (arrives && gap);
		gap = gap || !arrives;
	}
	return came;
}

// Return the duration with all retransmissions; a read beyond the limit is not answered.
static uint64_t transfer_ns(struct verdicts *verdicts, double passes, uint32_t packets) {
	uint64_t waited_ns = 0;
	uint32_t tries = 0;

	while (waited_ns < VERDICTS_READ_LIMIT_NS && tries <= RC_RETRIES) {
		bool told;
		uint32_t came = one_try(verdicts, passes, packets, &told);

		packets -= came;
		if (packets == 0)
			return waited_ns;
		tries = came > 0 ? 1 : tries + 1;
		waited_ns += told ? VERDICTS_BASE_NS : RC_TIMEOUT_NS;
	}
	return VERDICTS_READ_LIMIT_NS;
}

static bool is_readable(
	const struct verdicts *verdicts,
	const struct verdict_node *own,
	const struct verdict_node *far,
	const struct path_fault *fault
) {
	if (own->cut || far->cut || (fault != NULL && fault->cut) || far->node->state == NODE_OFF)
		return false;
	if ((own->node->index < verdicts->island) != (far->node->index < verdicts->island))
		return false;
	return far->node->state != NODE_FROZEN ||
	       far->responder != OBSERVATION_RESPONDER_IN_PROCESS;
}

void verdicts_read(
	struct world *world,
	const struct verdict_node *own,
	uint32_t peer,
	uint32_t size,
	struct found *ret_found
) {
	struct verdicts *verdicts = world->verdicts;
	const struct verdict_node *far = &verdicts->nodes[peer];
	const struct path_fault *fault = fault_between(verdicts, own->node->index, peer);
	bool lossy = own->lossy || far->lossy || (fault != NULL && fault->lossy);
	bool hole = own->hole || far->hole || (fault != NULL && fault->hole);
	uint64_t ran_ns = far->node->state == NODE_FROZEN ? far->frozen_ns : world_now(world);
	uint32_t slow = slowest(slowest(own->slow, far->slow), fault != NULL ? fault->slow : 0);
	uint64_t waited_ns;

	ret_found->beats = 1 + ran_ns / VERDICTS_BEAT_NS;
	ret_found->answered = false;
	if (!is_readable(verdicts, own, far, fault) || (size >= PLACE_LARGE && hole) ||
	    (size >= PLACE_LARGE && lossy && random_below(&verdicts->random, 8) != 0))
		return;
	waited_ns = transfer_ns(
		verdicts, net_passes(&world->net, own->node->index, peer), answer_packets[size]
	);
	ret_found->answered = waited_ns < VERDICTS_READ_LIMIT_NS;
	ret_found->latency_ns =
		waited_ns + (uint64_t)slow *
				    (VERDICTS_BASE_NS + 200 * size +
				     random_below(&verdicts->random, VERDICTS_BASE_NS / 5)) /
				    100;
}

bool verdicts_latency_matters(const struct world *world, uint32_t a, uint32_t b) {
	const struct verdicts *verdicts = world->verdicts;
	const struct path_fault *fault = fault_between(verdicts, a, b);
	const struct verdict_node *ends[2] = {&verdicts->nodes[a], &verdicts->nodes[b]};

	for (uint32_t n = 0; n < 2; n++) {
		if (ends[n]->slow > 0 || ends[n]->lossy || ends[n]->hole)
			return true;
	}
	return net_passes(&world->net, a, b) < 1 ||
	       (fault != NULL && (fault->slow > 0 || fault->lossy || fault->hole));
}

// The kernel reports loss also for an open connection.
enum verdict_reach verdicts_knock(
	struct world *world, const struct verdict_node *own, const struct verdict_node *far
) {
	const struct net *net = &world->net;
	uint32_t a = own->node->index;
	uint32_t b = far->node->index;
	double passes = net_passes(net, a, b), back = net_passes(net, b, a);
	bool answered = false;

	if (!net_reaches(net, a, b) || !net_reaches(net, b, a))
		return VERDICT_REACH_NONE;
	for (uint32_t n = 0; n < KNOCK_TRIES && !answered; n++)
		answered = packet(world->verdicts, passes) && packet(world->verdicts, back);
	if (!answered)
		return VERDICT_REACH_NONE;
	if (far->node->state == NODE_OFF)
		return VERDICT_REACH_REFUSES;
	return far->node->state == NODE_FROZEN ? VERDICT_REACH_ACCEPTS : VERDICT_REACH_UNKNOWN;
}

struct losses_look {
	struct world *world;
	struct verdict_node *own;
};

// Do the same as control/verdict/store/losses.c.
static void on_losses(void *ctx, uint64_t peer, bool loses, uint32_t permille) {
	struct losses_look *look = ctx;
	struct ras_peer found;
	struct observation observation = {
		.observer = look->own->node->record->id,
		.subject = peer,
		.kind = OBSERVATION_NO_PAIR,
		.reach = loses ? VERDICT_REACH_LOSES : VERDICT_REACH_ANSWERS,
		.own_good = true,
		.lost_permille = permille,
	};

	if (ras_peer_find(look->own->node->ras, peer, &found) != 0 || found.state != RAS_ALIVE)
		return;
	observation.incarnation = found.incarnation;
	(void
	)observation_exchange_update(look->own->exchange, world_now(look->world), &observation);
}

static void look_at_links(struct world *world, struct verdict_node *own) {
	struct losses_look look = {world, own};
	bool ourselves = own->losses->ourselves;
	struct ras_link_info link;
	struct ras_peer peer;

	loss_round_begin(own->losses);
	for (uint32_t n = 0; ras_link_at(own->node->ras, n, &link) == 0; n++) {
		uint32_t to = world_node_of_id(world, link.peer);
		struct loss_count count = {0};

		if (!link.ready || to == NET_NOBODY || link.silent_ns >= LOSS_ROUND_NS ||
		    ras_peer_find(own->node->ras, link.peer, &peer) != 0 || peer.state != RAS_ALIVE)
			continue;
		count.connections =
			net_sent(&world->net, own->node->index, to, &count.sent, &count.again);
		loss_round_add(own->losses, link.peer, &count);
	}
	loss_round_end(own->losses, on_losses, &look);
	if (own->losses->ourselves != ourselves)
		verdicts_of_self(world, own);
}

// Look at the links that are probed for losses. Returns whether there are any.
static bool look_between(struct world *world, struct verdict_node *own) {
	struct losses_look look = {world, own};
	uint32_t cursor = 0;
	uint64_t peer;
	bool any = false;

	while (loss_next_to_probe(own->losses, &cursor, &peer)) {
		uint32_t to = world_node_of_id(world, peer);
		struct ras_peer found;
		struct loss_count count = {0};

		any = true;
		if (to == NET_NOBODY || ras_peer_find(own->node->ras, peer, &found) != 0 ||
		    found.state != RAS_ALIVE)
			continue;
		count.connections =
			net_sent(&world->net, own->node->index, to, &count.sent, &count.again);
		loss_recheck_link(own->losses, peer, &count, on_losses, &look);
		(void)ras_link_ping(own->node->ras, node_now(own->node), peer);
	}
	return any;
}

uint64_t verdicts_losses(struct world *world, struct verdict_node *own) {
	uint64_t now_ns = world_now(world), ask_ns = now_ns + LOSS_PROBE_NS;

	if (now_ns >= own->losses_look_ns) {
		look_at_links(world, own);
		// The number of missed members changes without an event.
		verdicts_of_self(world, own);
		own->losses_look_ns = now_ns + LOSS_ROUND_NS;
	}
	if (look_between(world, own) && ask_ns < own->losses_look_ns)
		return ask_ns;
	return own->losses_look_ns;
}
