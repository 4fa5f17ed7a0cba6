// SPDX-License-Identifier: BSD-3-Clause
// Matching of the rails of two nodes. A node is written as NAME:SUBNET words. A subnet i is
// InfiniBand, e is Ethernet, ? is unknown.
#include "fabric/rail_match.h"

#include <support/cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rail rail_of(const char *name, size_t length, const char *subnet) {
	struct rail rail = {
		.link = subnet[0] == 'i' ? DEVICE_LINK_INFINIBAND : DEVICE_LINK_ETHERNET,
		.subnet.kind = subnet[1] == '?'	  ? DEVICE_SUBNET_UNKNOWN
			       : subnet[0] == 'i' ? DEVICE_SUBNET_INFINIBAND
						  : DEVICE_SUBNET_IP,
	};

	memcpy(rail.name, name, length);
	if (rail.subnet.kind != DEVICE_SUBNET_UNKNOWN) {
		rail.subnet.bits = 64;
		rail.subnet.bytes[7] = (uint8_t)subnet[1];
	}
	return rail;
}

static struct rail_list node_of(const char *text) {
	struct rail_list list = {0};

	while (*text != '\0') {
		const char *colon = strchr(text, ':');

		list.rails[list.count++] = rail_of(text, (size_t)(colon - text), colon + 1);
		text = colon + 3;
		text += *text == ' ';
	}
	return list;
}

// Format "m2 - m0": the peer's rail for each own rail.
static const char *words_of(const struct rail_list *own, const struct rail_list *theirs) {
	static char text[RAILS_MAX * (DEVICE_NAME_MAX + 1) + 1];
	uint32_t places[RAILS_MAX];
	size_t used = 0;

	text[0] = '\0';
	rail_match(own, theirs, places);
	for (uint32_t n = 0; n < own->count; n++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", n > 0 ? " " : "",
			places[n] == RAIL_NONE ? "-" : theirs->rails[places[n]].name
		);
	for (uint32_t n = own->count; n < RAILS_MAX; n++)
		assert_int_equal(places[n], RAIL_NONE);
	return text;
}

static const struct {
	const char *what, *own, *theirs, *ours_get, *theirs_get;
} cases[] = {
	{"one and one", "m0:e1", "m0:e1", "m0", "m0"},
	{"one and one, through a router", "m0:e1", "m0:e2", "m0", "m0"},
	{"one and one, nothing known", "m0:e?", "x7:e?", "x7", "m0"},
	{"another link", "m0:e1", "m0:i1", "-", "-"},
	{"alike", "m0:i1 m1:i2", "m0:i1 m1:i2", "m0 m1", "m0 m1"},
	{"in another order there", "m0:i1 m1:i2 m2:i3", "m0:i3 m1:i1 m2:i2", "m1 m2 m0",
	 "m2 m0 m1"},
	{"all in one subnet: by order, whatever they are called", "m0:e1 m1:e1", "m1:e1 m2:e1",
	 "m1 m2", "m0 m1"},
	{"two in each of two subnets", "a:e1 b:e2 c:e1 d:e2", "a:e2 b:e2 c:e1 d:e1", "c a d b",
	 "b d a c"},
	{"one here and four there", "m0:i3", "m0:i1 m1:i2 m2:i3 m3:i4", "m2", "- - m0 -"},
	{"one here and two there in one subnet", "m0:e1", "m0:e1 m1:e1", "m0", "m0 m0"},
	{"a subnet that the other has not", "m0:i1 m1:i2", "m0:i1 m1:i9", "m0 -", "m0 -"},
	{"a subnet for each cable: routed, by order", "m0:e1 m1:e2", "m0:e3 m1:e4", "m0 m1",
	 "m0 m1"},
	{"of InfiniBand, too", "m0:i1 m1:i2", "m0:i3 m1:i4", "m0 m1", "m0 m1"},
	{"one that is down takes what is left", "m0:i1 m1:i? m2:i3", "m0:i3 m1:i1 m2:i2",
	 "m1 m2 m0", "m2 m0 m1"},
	{"down at both ends", "m0:e1 m1:e?", "m0:e1 m1:e?", "m0 m1", "m0 m1"},
	{"one that is down, and none is left", "m0:i1 m1:i?", "m0:i1", "m0 m0", "m0"},
	{"nothing known: by name, then by order", "m0:e? m2:e?", "m0:e? m1:e? m2:e?", "m0 m2",
	 "m0 m0 m2"},
	{"nothing known of old agents, fewer there", "m0:e? m1:e? m2:e?", "x0:e? x1:e?", "x0 x1 x0",
	 "m0 m1"},
	{"InfiniBand and Ethernet beside each other", "m0:i1 m1:e1", "m0:e1 m1:i1", "m1 m0",
	 "m1 m0"},
	{"nobody there", "m0:e1", "", "-", ""},
	{"known and not known on both sides", "d0:e? d1:e3 d2:e3", "d10:e1 d11:e? d12:e?",
	 "d10 d11 d12", "d0 d1 d2"},
	{"one that is down, and more there than here", "m0:e1 m1:e?", "m0:e1 m1:e1", "m0 m0",
	 "m0 m0"},
	{"more that are elsewhere than may be anywhere", "m0:e1 m1:e2 m2:e3", "x0:e? x1:e4",
	 "x0 x0 x0", "m0 -"},
};

static void rails_are_matched_by_subnet_then_by_order(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct rail_list own = node_of(cases[n].own), theirs = node_of(cases[n].theirs);

		print_message("# %s\n", cases[n].what);
		assert_string_equal(words_of(&own, &theirs), cases[n].ours_get);
		assert_string_equal(words_of(&theirs, &own), cases[n].theirs_get);
	}
}

static uint64_t draw(uint64_t *state, uint64_t below) {
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

static struct rail_list draw_node(uint64_t *state) {
	static const char *const subnets[] = {"e?", "e1", "e2", "e3", "i?", "i1"};
	struct rail_list list = {.count = 1 + (uint32_t)draw(state, 5)};
	uint32_t first = (uint32_t)draw(state, 3), links = draw(state, 4) == 0 ? 6 : 4;

	for (uint32_t n = 0; n < list.count; n++) {
		char name[] = {'d', (char)('0' + first + n), '\0'};

		list.rails[n] = rail_of(name, 2, subnets[draw(state, links)]);
	}
	return list;
}

// Return whether the match is mutual: the chosen rail chooses this one, or one with the same
// choice.
static bool is_answered(uint32_t own, const uint32_t *places, const uint32_t *back) {
	return places[own] == RAIL_NONE ||
	       (back[places[own]] != RAIL_NONE && places[back[places[own]]] == places[own]);
}

static void both_sides_come_to_the_same_pairs(void **state) {
	uint64_t numbers = 20251126;
	uint32_t disagreements = 0;

	(void)state;
	for (uint32_t n = 0; n < 200000; n++) {
		struct rail_list own = draw_node(&numbers), theirs = draw_node(&numbers);
		uint32_t places[RAILS_MAX], back[RAILS_MAX];
		bool agree = true;

		rail_match(&own, &theirs, places);
		rail_match(&theirs, &own, back);
		for (uint32_t k = 0; k < RAILS_MAX; k++)
			agree = agree && is_answered(k, places, back) &&
				is_answered(k, back, places);
		disagreements += !agree;
	}
	assert_int_equal(disagreements, 0);
}

static void each_of_sixteen_finds_its_own_in_any_order(void **state) {
	struct rail_list own = {.count = RAILS_MAX}, theirs = {.count = RAILS_MAX};
	uint32_t places[RAILS_MAX];

	(void)state;
	for (uint32_t n = 0; n < RAILS_MAX; n++) {
		char subnet[] = {'i', (char)('a' + n), '\0'};

		own.rails[n] = rail_of("m", 1, subnet);
		theirs.rails[(n * 5 + 3) % RAILS_MAX] = own.rails[n];
	}
	rail_match(&own, &theirs, places);
	for (uint32_t n = 0; n < RAILS_MAX; n++)
		assert_int_equal(places[n], (n * 5 + 3) % RAILS_MAX);
}

static void across_are_the_others_of_the_same_subnet(void **state) {
	struct rail_list own = node_of("m0:e1 m1:e2 m2:e1");
	struct rail_list theirs = node_of("m0:e1 m1:e1 m2:e2 m3:e1 m4:e?");

	(void)state;
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 0, 0), 1);
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 0, 1), 3);
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 0, 2), RAIL_NONE);
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 1, 0), RAIL_NONE);
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 2, 0), 0);
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 2, 1), 3);
	own = node_of("m0:e?");
	assert_int_equal(rail_other_in_subnet(&own, &theirs, 0, 0), RAIL_NONE);
}

static void lists_are_the_same_if_all_facts_are(void **state) {
	struct rail_list own = node_of("m0:e1 m1:e2"), other = node_of("m0:e1 m1:e2");

	(void)state;
	assert_true(rail_list_same(&own, &other));
	other.rails[1].subnet.bits = 24;
	assert_false(rail_list_same(&own, &other));
	other = node_of("m0:e1 m2:e2");
	assert_false(rail_list_same(&own, &other));
	other = node_of("m0:e1 m1:i2");
	assert_false(rail_list_same(&own, &other));
	other = node_of("m0:e1");
	assert_false(rail_list_same(&own, &other));
}

UNIT_GROUP(rail_match) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rails_are_matched_by_subnet_then_by_order),
		cmocka_unit_test(both_sides_come_to_the_same_pairs),
		cmocka_unit_test(each_of_sixteen_finds_its_own_in_any_order),
		cmocka_unit_test(across_are_the_others_of_the_same_subnet),
		cmocka_unit_test(lists_are_the_same_if_all_facts_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
