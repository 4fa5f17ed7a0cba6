// SPDX-License-Identifier: BSD-3-Clause
// The DPDK wire's table of neighbours.
#include "wire/neighbour.h"

#include <string.h>

static struct neighbour *neighbour_set(struct neighbour_table *table, const union ibv_gid *gid) {
	uint64_t hash = 0;

	for (uint32_t i = 0; i < sizeof(gid->raw); i++)
		hash = (hash ^ gid->raw[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return table->places[hash >> 32 & (NEIGHBOUR_SETS - 1)];
}

static struct neighbour *neighbour_entry(struct neighbour *set, const union ibv_gid *gid) {
	for (uint32_t way = 0; way < NEIGHBOUR_WAYS; way++) {
		if (set[way].used && link_gid_equal(&set[way].gid, gid))
			return &set[way];
	}
	return NULL;
}

static uint64_t latest_ns(const struct neighbour *neighbour) {
	return neighbour->heard_ns > neighbour->asked_ns ? neighbour->heard_ns
							 : neighbour->asked_ns;
}

struct neighbour *neighbour_get(
	struct neighbour_table *table, const union ibv_gid *gid, uint64_t now_ns, void **ret_held
) {
	struct neighbour *set = neighbour_set(table, gid);
	struct neighbour *place = neighbour_entry(set, gid);

	*ret_held = NULL;
	if (place != NULL)
		return place;
	// Take a free entry, or evict the one heard or asked least recently.
	place = set;
	for (uint32_t way = 0; way < NEIGHBOUR_WAYS && place->used; way++) {
		if (!set[way].used || latest_ns(&set[way]) < latest_ns(place))
			place = &set[way];
	}
	*ret_held = place->held;
	*place = (struct neighbour){.gid = *gid, .used = true, .heard_ns = now_ns};
	return place;
}

bool neighbour_is_usable(struct neighbour *neighbour, uint64_t now_ns, bool *ret_ask) {
	uint64_t age_ns = now_ns - neighbour->heard_ns;

	*ret_ask = false;
	if (neighbour->known && age_ns < NEIGHBOUR_FRESH_NS)
		return true;
	if (age_ns >= NEIGHBOUR_FRESH_NS + NEIGHBOUR_GRACE_NS)
		neighbour->known = false;
	if (neighbour->asked_ns == 0 || now_ns - neighbour->asked_ns >= NEIGHBOUR_REQUEST_NS) {
		neighbour->asked_ns = now_ns;
		*ret_ask = true;
	}
	return neighbour->known;
}

struct neighbour *neighbour_learn(
	struct neighbour_table *table,
	const struct link_message *talk,
	bool wanted,
	uint64_t now_ns,
	void **ret_held
) {
	struct neighbour *place;

	*ret_held = NULL;
	if (!talk->mac_known)
		return NULL;
	place = neighbour_entry(neighbour_set(table, &talk->about), &talk->about);
	if (place == NULL && wanted)
		place = neighbour_get(table, &talk->about, now_ns, ret_held);
	if (place == NULL)
		return NULL;
	memcpy(place->mac, talk->mac, sizeof(place->mac));
	place->known = true;
	place->heard_ns = now_ns;
	return place;
}

void neighbour_invalidate_all(struct neighbour_table *table) {
	for (uint32_t set = 0; set < NEIGHBOUR_SETS; set++) {
		for (uint32_t way = 0; way < NEIGHBOUR_WAYS; way++) {
			table->places[set][way].known = false;
			table->places[set][way].asked_ns = 0;
		}
	}
}
