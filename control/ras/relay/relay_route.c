// SPDX-License-Identifier: BSD-3-Clause
// The next hop: nearest in the ring, and nearer than we are, but for one detour.
//
// Why it ends: every hop lowers the ring distance or spends the detour, which is not given back.
// Why not straight back: else the detour of a node whose only near neighbour is dead would be
// its own predecessor. A list of nodes visited would add nothing to these two rules.
#include "relay/relay_state.h"

static uint32_t ceil_log2(uint32_t value) {
	uint32_t bits = 0;

	while (bits < 32 && (UINT64_C(1) << bits) < value)
		bits++;
	return bits;
}

uint32_t relay_hops_max(uint32_t members, bool long_rings) {
	return (long_rings ? ceil_log2(members) : members / 2) + 4;
}

static bool slot_avoided(uint32_t slot, const uint32_t *avoid, uint32_t avoid_count) {
	for (uint32_t n = 0; n < avoid_count; n++) {
		if (avoid[n] == slot)
			return true;
	}
	return false;
}

// Every hop asks this of every link: looked up once per change of the ring.
static uint32_t link_position(struct ras *ras, struct link *link) {
	if (link->position_ring != ras->peers.ring_number) {
		link->position_ring = ras->peers.ring_number;
		link->position =
			peers_ring_position(&ras->peers, ras_entry(ras, link->slot)->record);
	}
	return link->position;
}

// No way on: is that so, or do we and the source see different rings?
static enum ras_relay_reason no_route(const struct ras *ras, const struct relay_header *header) {
	return header->view == peers_digest(&ras->peers) ? RAS_RELAY_NO_ROUTE
							 : RAS_RELAY_STALE_VIEW;
}

enum ras_relay_reason relay_route(
	struct ras *ras,
	const struct relay_packet *packet,
	const uint32_t *avoid,
	uint32_t avoid_count,
	struct link **ret_link,
	bool *ret_detour
) {
	uint32_t slot = peers_find(&ras->peers, packet->header.destination);
	uint32_t count = peers_ring_count(&ras->peers);
	uint32_t position, self, nearest = UINT32_MAX;
	struct link *best = NULL;

	if (slot == RAS_NO_SLOT)
		return no_route(ras, &packet->header);
	if (!peer_is_member(ras_entry(ras, slot)))
		return RAS_RELAY_DESTINATION_DOWN;

	position = peers_ring_position(&ras->peers, ras_entry(ras, slot)->record);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];
		uint32_t distance;

		if (!link_is_good(link) || !peer_is_member(ras_entry(ras, link->slot)))
			continue;
		if (link->slot == packet->from || slot_avoided(link->slot, avoid, avoid_count))
			continue;
		distance = ring_distance(link_position(ras, link), position, count);
		if (link->slot == packet->back) {
			nearest = distance;
			best = link;
			break;
		}
		if (best != NULL &&
		    (distance > nearest || (distance == nearest && link->peer > best->peer)))
			continue;
		nearest = distance;
		best = link;
	}
	if (best == NULL)
		return no_route(ras, &packet->header);

	self = peers_ring_position(&ras->peers, ras_self(ras)->record);
	*ret_detour = nearest >= ring_distance(self, position, count);
	if (*ret_detour && packet->header.detours == 0)
		return no_route(ras, &packet->header);
	*ret_link = best;
	return RAS_RELAY_REASON_NONE;
}
