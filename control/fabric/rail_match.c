// SPDX-License-Identifier: BSD-3-Clause
// Matches rails of two nodes by subnet, then by order. Pure.
#include "fabric/rail_match.h"

#include <string.h>

// A set of rails, one bit per index.
typedef uint32_t rail_set;

static bool set_has(rail_set set, uint32_t place) {
	return (set >> place & 1) != 0;
}

static rail_set rails_with_link(const struct rail_list *list, enum device_link link) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		set |= list->rails[n].link == link ? (rail_set)1 << n : 0;
	return set;
}

static rail_set rails_in_subnet(const struct rail_list *list, const struct rail *like) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		if (list->rails[n].link == like->link &&
		    device_subnet_equal(&list->rails[n].subnet, &like->subnet))
			set |= (rail_set)1 << n;
	return set;
}

static rail_set rails_with_subnet(const struct rail_list *list, rail_set among) {
	rail_set set = 0;

	for (uint32_t n = 0; n < list->count; n++)
		if (set_has(among, n) && list->rails[n].subnet.kind != DEVICE_SUBNET_UNKNOWN)
			set |= (rail_set)1 << n;
	return set;
}

static uint32_t set_count(rail_set set) {
	return (uint32_t)__builtin_popcount(set);
}

// Return the nth rail of a non-empty set, counting around.
static uint32_t set_nth(rail_set set, uint32_t nth) {
	for (nth %= set_count(set); nth > 0; nth--)
		set &= set - 1;
	return (uint32_t)__builtin_ctz(set);
}

// Return how many rails of the set lie before this index.
static uint32_t set_rank(rail_set set, uint32_t place) {
	return set_count(set & (((rail_set)1 << place) - 1));
}

static void match_by_order(rail_set own, rail_set theirs, uint32_t places[static RAILS_MAX]) {
	if (theirs == 0)
		return;
	for (uint32_t n = 0; n < RAILS_MAX; n++)
		if (set_has(own, n))
			places[n] = set_nth(theirs, set_rank(own, n));
}

static rail_set
match_by_subnet(const struct rail_list *own, const struct rail_list *theirs, uint32_t *places) {
	rail_set taken = 0;

	for (uint32_t n = 0; n < own->count; n++) {
		rail_set here = rails_in_subnet(own, &own->rails[n]);
		rail_set there = rails_in_subnet(theirs, &own->rails[n]);

		if (there == 0)
			continue;
		places[n] = set_nth(there, set_rank(here, n));
		taken |= there;
	}
	return taken;
}

// Return the peer's rails that match back an own rail which matches them. If the peer has more
// rails in a subnet than we have, only its first ones do.
static rail_set rails_matched_back(const struct rail_list *own, const struct rail_list *theirs) {
	rail_set set = 0;

	for (uint32_t n = 0; n < theirs->count; n++) {
		rail_set here = rails_in_subnet(own, &theirs->rails[n]);
		rail_set there = rails_in_subnet(theirs, &theirs->rails[n]);

		if (set_rank(there, n) < set_count(here))
			set |= (rail_set)1 << n;
	}
	return set;
}

// Rails of one link type that no subnet has matched.
struct rest {
	rail_set here, here_unknown;
	rail_set there, there_unknown;
};

static void match_pair(struct rest *left, uint32_t own, uint32_t theirs, uint32_t *places) {
	places[own] = theirs;
	left->here &= ~((rail_set)1 << own);
	left->here_unknown &= ~((rail_set)1 << own);
	left->there &= ~((rail_set)1 << theirs);
	left->there_unknown &= ~((rail_set)1 << theirs);
}

// Match rails of the same name. Two rails with known subnets are no pair, because their subnets
// differ.
static void match_by_name(
	const struct rail_list *own,
	const struct rail_list *theirs,
	struct rest *left,
	uint32_t *places
) {
	for (uint32_t n = 0; n < own->count; n++) {
		for (uint32_t k = 0; k < theirs->count && set_has(left->here, n); k++) {
			if (set_has(left->there, k) &&
			    (set_has(left->here_unknown, n) || set_has(left->there_unknown, k)) &&
			    strcmp(own->rails[n].name, theirs->rails[k].name) == 0)
				match_pair(left, n, k, places);
		}
	}
}

// Match the remaining rails. Each step is symmetric. Rails left over on one side share the matched
// rails of the other side. So both sides get the same pairs.
static void match_rest(
	const struct rail_list *own,
	const struct rail_list *theirs,
	enum device_link link,
	rail_set taken,
	uint32_t *places
) {
	rail_set all = rails_with_link(theirs, link);
	struct rest rest = {
		.here = rails_with_link(own, link),
		.there = all & ~taken,
	};
	rail_set here_known, there_known;
	struct rest left;

	for (uint32_t n = 0; n < own->count; n++) {
		if (places[n] != RAIL_NONE)
			rest.here &= ~((rail_set)1 << n);
	}
	rest.here_unknown = rest.here & ~rails_with_subnet(own, rest.here);
	rest.there_unknown = rest.there & ~rails_with_subnet(theirs, rest.there);
	if ((all & taken) == 0 && rest.here_unknown == 0 && rest.there_unknown == 0) {
		// The rails are reachable through routers, if at all.
		match_by_order(rest.here, rest.there, places);
		return;
	}
	left = rest;
	match_by_name(own, theirs, &left, places);

	// Match one by one while both sides have rails left: known with unknown subnets, then
	// unknown ones.
	while ((here_known = left.here & ~left.here_unknown) != 0 && left.there_unknown != 0)
		match_pair(&left, set_nth(here_known, 0), set_nth(left.there_unknown, 0), places);
	while ((there_known = left.there & ~left.there_unknown) != 0 && left.here_unknown != 0)
		match_pair(&left, set_nth(left.here_unknown, 0), set_nth(there_known, 0), places);
	while (left.here_unknown != 0 && left.there_unknown != 0)
		match_pair(
			&left, set_nth(left.here_unknown, 0), set_nth(left.there_unknown, 0), places
		);

	// A rail with a known subnet can only share a rail with an unknown subnet.
	match_by_order(left.here & ~left.here_unknown, rest.there_unknown, places);
	match_by_order(
		left.here_unknown,
		rest.there != 0 ? rest.there : all & rails_matched_back(own, theirs), places
	);
}

void rail_match(
	const struct rail_list *own,
	const struct rail_list *theirs,
	uint32_t ret_places[static RAILS_MAX]
) {
	rail_set taken;

	for (uint32_t n = 0; n < RAILS_MAX; n++)
		ret_places[n] = RAIL_NONE;
	taken = match_by_subnet(own, theirs, ret_places);
	match_rest(own, theirs, DEVICE_LINK_INFINIBAND, taken, ret_places);
	match_rest(own, theirs, DEVICE_LINK_ETHERNET, taken, ret_places);
}

uint32_t rail_other_in_subnet(
	const struct rail_list *own, const struct rail_list *theirs, uint32_t rail, uint32_t nth
) {
	rail_set there = rails_in_subnet(theirs, &own->rails[rail]);
	uint32_t places[RAILS_MAX];

	rail_match(own, theirs, places);
	if (places[rail] != RAIL_NONE)
		there &= ~((rail_set)1 << places[rail]);
	return nth < set_count(there) ? set_nth(there, nth) : RAIL_NONE;
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
