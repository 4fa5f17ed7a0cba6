// SPDX-License-Identifier: BSD-3-Clause
// Matches rails of two nodes by subnet, then by order. Pure.
#include "rail_match.h"

#include <string.h>

// A choice of rails: a bit for each place.
typedef uint32_t rail_set;

static bool has(rail_set set, uint32_t place) {
	return (set >> place & 1) != 0;
}

static bool is_known(const struct rail *rail) {
	return rail->subnet.kind != DEVICE_SUBNET_UNKNOWN;
}

static rail_set of_link(const struct rail_list *list, enum device_link link) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		set |= list->rails[n].link == link ? (rail_set)1 << n : 0;
	return set;
}

static rail_set in_subnet(const struct rail_list *list, const struct rail *like) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		if (list->rails[n].link == like->link &&
		    device_subnet_same(&list->rails[n].subnet, &like->subnet))
			set |= (rail_set)1 << n;
	return set;
}

static rail_set known_in(const struct rail_list *list, rail_set among) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		set |= has(among, n) && is_known(&list->rails[n]) ? (rail_set)1 << n : 0;
	return set;
}

static uint32_t count_of(rail_set set) {
	return (uint32_t)__builtin_popcount(set);
}

// The nth of a set that is not empty, and again from the first one on.
static uint32_t nth_of(rail_set set, uint32_t nth) {
	for (nth %= count_of(set); nth > 0; nth--)
		set &= set - 1;
	return (uint32_t)__builtin_ctz(set);
}

// Of those before it: how many there are.
static uint32_t place_in(rail_set set, uint32_t place) {
	return count_of(set & (((rail_set)1 << place) - 1));
}

static void by_order(rail_set own, rail_set theirs, uint32_t places[static RAILS_MAX]) {
	if (theirs == 0)
		return;
	for (uint32_t n = 0; n < RAILS_MAX; n++)
		if (has(own, n))
			places[n] = nth_of(theirs, place_in(own, n));
}

// Of what is not known both sides take the same name first, and then the order of the rest.
static void
by_name(const struct rail_list *own_list,
	const struct rail_list *their_list,
	rail_set own,
	rail_set theirs,
	uint32_t places[static RAILS_MAX]) {
	rail_set all = theirs;

	for (uint32_t n = 0; n < own_list->count; n++) {
		for (uint32_t k = 0; k < their_list->count && has(own, n); k++) {
			if (!has(theirs, k) ||
			    strcmp(own_list->rails[n].name, their_list->rails[k].name) != 0)
				continue;
			places[n] = k;
			own &= ~((rail_set)1 << n);
			theirs &= ~((rail_set)1 << k);
		}
	}
	by_order(own, theirs != 0 ? theirs : all, places);
}

static rail_set
by_subnet(const struct rail_list *own, const struct rail_list *theirs, uint32_t *places) {
	rail_set taken = 0;

	for (uint32_t n = 0; n < own->count; n++) {
		rail_set here = in_subnet(own, &own->rails[n]);
		rail_set there = in_subnet(theirs, &own->rails[n]);

		if (there == 0)
			continue;
		places[n] = nth_of(there, place_in(here, n));
		taken |= there;
	}
	return taken;
}

static rail_set unmatched(const struct rail_list *own, const uint32_t *places) {
	rail_set set = 0;

	for (uint32_t n = 0; n < own->count; n++)
		set |= places[n] == RAIL_NONE ? (rail_set)1 << n : 0;
	return set;
}

// Those of one kind of link that no subnet has brought together.
static void match_rest(
	const struct rail_list *own,
	const struct rail_list *theirs,
	enum device_link link,
	rail_set taken,
	uint32_t *places
) {
	rail_set here = of_link(own, link) & unmatched(own, places);
	rail_set all = of_link(theirs, link), there = all & ~taken;
	rail_set here_known = known_in(own, here), there_known = known_in(theirs, there);

	if ((all & taken) == 0 && here == here_known && there == there_known) {
		by_order(here, there, places); // through routers, if at all
		return;
	}
	// One that is known to be elsewhere waits for one that may be anywhere.
	by_name(own, theirs, here & ~here_known, there != 0 ? there : all, places);
	by_name(own, theirs, here_known, there & ~there_known, places);
}

void rail_match(
	const struct rail_list *own,
	const struct rail_list *theirs,
	uint32_t ret_places[static RAILS_MAX]
) {
	rail_set taken;

	for (uint32_t n = 0; n < RAILS_MAX; n++)
		ret_places[n] = RAIL_NONE;
	taken = by_subnet(own, theirs, ret_places);
	match_rest(own, theirs, DEVICE_LINK_INFINIBAND, taken, ret_places);
	match_rest(own, theirs, DEVICE_LINK_ETHERNET, taken, ret_places);
}

uint32_t rail_across(
	const struct rail_list *own, const struct rail_list *theirs, uint32_t rail, uint32_t nth
) {
	rail_set there = in_subnet(theirs, &own->rails[rail]);
	uint32_t places[RAILS_MAX];

	rail_match(own, theirs, places);
	if (places[rail] != RAIL_NONE)
		there &= ~((rail_set)1 << places[rail]);
	return nth < count_of(there) ? nth_of(there, nth) : RAIL_NONE;
}

bool rail_list_same(const struct rail_list *a, const struct rail_list *b) {
	if (a->count != b->count)
		return false;
	for (uint32_t n = 0; n < a->count; n++) {
		const struct rail *one = &a->rails[n], *other = &b->rails[n];

		if (strcmp(one->name, other->name) != 0 || one->link != other->link ||
		    one->subnet.kind != other->subnet.kind ||
		    one->subnet.bits != other->subnet.bits ||
		    memcmp(one->subnet.bytes, other->subnet.bytes, 16) != 0)
			return false;
	}
	return true;
}
