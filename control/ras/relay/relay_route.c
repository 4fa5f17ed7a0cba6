// SPDX-License-Identifier: BSD-3-Clause
// Chooses the next hop: the neighbour nearest to the destination in the ring.
//
// The next hop must be nearer than this node, except for one detour. So every route ends: each hop
// lowers the ring distance or spends the detour. A packet is not sent straight back to its last
// hop. Otherwise a node whose only near neighbour is dead would detour to its predecessor. A list
// of visited nodes would add nothing to these two rules.
#include "relay/relay_state.h"

uint32_t relay_hops_max(uint32_t members, bool long_rings) {
	uint32_t bits = 0; // ceil(log2(members))

	while (bits < 32 && (UINT64_C(1) << bits) < members)
		bits++;
	return (long_rings ? bits : members / 2) + 4;
}

static bool slot_is_avoided(uint32_t slot, const uint32_t *avoid, uint32_t avoid_count) {
	for (uint32_t n = 0; n < avoid_count; n++) {
		if (avoid[n] == slot)
			return true;
	}
	return false;
}

// Return the reason for a missing route: STALE_VIEW if the source has another table than we.
static enum ras_relay_reason
missing_route_reason(const struct ras *ras, const struct relay_header *header) {
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
		return missing_route_reason(ras, &packet->header);
	if (!peer_is_member(ras_entry(ras, slot)))
		return RAS_RELAY_DESTINATION_DOWN;

	position = peers_ring_position(&ras->peers, ras_entry(ras, slot)->record);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];
		uint32_t distance;

		if (!link_is_good(link) || !peer_is_member(ras_entry(ras, link->slot)))
			continue;
		if (link->slot == packet->from || slot_is_avoided(link->slot, avoid, avoid_count))
			continue;
		// Each routing needs the position of every link, so it is cached until the ring
		// changes.
		if (link->position_ring_number != ras->peers.ring_number) {
			link->position_ring_number = ras->peers.ring_number;
			link->position = peers_ring_position(
				&ras->peers, ras_entry(ras, link->slot)->record
			);
		}
		distance = ring_distance(link->position, position, count);
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
		return missing_route_reason(ras, &packet->header);

	self = peers_ring_position(&ras->peers, ras_self(ras)->record);
	*ret_detour = nearest >= ring_distance(self, position, count);
	if (*ret_detour && packet->header.detours == 0)
		return missing_route_reason(ras, &packet->header);
	*ret_link = best;
	return RAS_RELAY_REASON_NONE;
}
