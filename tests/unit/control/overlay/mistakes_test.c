// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/mistakes.c: configuration mistakes across nodes. The table is fake.
#include "overlay/inside.h"

#include <lib/clock.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PEERS_MAX 24
#define SEC RAS_NS_PER_SEC

static struct {
	struct overlay overlay;
	struct ras_record records[PEERS_MAX];
	struct ras_peer peers[PEERS_MAX];
	uint32_t peer_count;
	struct ras_stranger strangers[3];
	int stranger_err[3];
	uint32_t notes;
	const char *roster; // NULL: no roster
	struct ras_event note;
	char words[STATE_TEXT_BYTES];
} stage;

static struct clock fake_clock;

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.slots_max = stage.peer_count, .joined = true};
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	(void)ras;
	if (slot >= stage.peer_count)
		return -ENOENT;
	*ret_peer = stage.peers[slot];
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	for (uint32_t n = 0; n < stage.peer_count; n++) {
		if (stage.records[n].id == id)
			return ras_peer_at(ras, n, ret_peer);
	}
	return -ENOENT;
}

int ras_stranger_at(const struct ras *ras, uint32_t n, struct ras_stranger *ret_stranger) {
	(void)ras;
	if (n >= COUNT_OF(stage.strangers))
		return -ENOENT;
	*ret_stranger = stage.strangers[n];
	return stage.stranger_err[n];
}

uint64_t ras_self_id(const struct ras *ras) {
	(void)ras;
	return 100;
}

int overlay_note(struct overlay *overlay, const struct ras_event *note, const char *text) {
	(void)overlay;
	stage.note = *note;
	stage.notes++;
	snprintf(stage.words, sizeof(stage.words), "%s", text);
	return 0;
}

uint32_t overlay_roster_count(const struct overlay *overlay) {
	(void)overlay;
	return stage.roster != NULL ? 3 : 0;
}

bool overlay_roster_has_node(const struct overlay *overlay, const char *name, size_t length) {
	char wanted[RAS_NAME_MAX + 3];

	(void)overlay;
	snprintf(wanted, sizeof(wanted), " %.*s ", (int)length, name);
	return strstr(stage.roster, wanted) != NULL;
}

// boot 0: unknown.
static void add_peer(const char *name, uint64_t host_name, uint64_t boot) {
	struct ras_record *record = &stage.records[stage.peer_count];

	*record = (struct ras_record){
		.id = 100 + stage.peer_count,
		.host_name_id = host_name,
		.host_id = boot == 0 ? host_name : 1000 * host_name + boot,
		.name = name,
		.name_length = (uint8_t)strlen(name),
	};
	stage.peers[stage.peer_count] =
		(struct ras_peer){.record = record, .slot = stage.peer_count, .state = RAS_ALIVE};
	stage.peer_count++;
}

static int set_up(void **state) {
	(void)state;
	memset(&stage, 0, sizeof(stage));
	for (size_t n = 0; n < COUNT_OF(stage.strangers); n++)
		stage.stranger_err[n] = -ESTALE;
	clock_init_fake(&fake_clock, SEC);
	return loop_create(&fake_clock, &stage.overlay.loop);
}

static int tear_down(void **state) {
	(void)state;
	overlay_mistakes_stop(&stage.overlay);
	loop_destroy(stage.overlay.loop);
	return 0;
}

static void look(void) {
	const struct ras_event event = {.kind = RAS_EVENT_JOINED};

	overlay_mistakes_event(&stage.overlay, &event);
	clock_advance(&fake_clock, 20 * SEC);
	assert_true(loop_turn(stage.overlay.loop, 0) >= 0);
}

// Count the mistakes, and describe the last one.
static uint32_t mistakes(char words[static STATE_TEXT_BYTES]) {
	uint32_t cursor = 0, count = 0;

	while (overlay_mistake_next(&stage.overlay, &cursor, words))
		count++;
	return count;
}

static void two_live_ones_of_one_host_and_two_boots_are_told_with_what_to_set(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 8, 2);
	add_peer("n3", 7, 3);
	look();
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words, "n1 and n3 have the same host identity but run on different machines: set "
		       "[node] host on each"
	);
	assert_int_equal(stage.notes, 1);
	assert_int_equal(stage.note.kind, RAS_EVENT_HOST_SHARED);
	assert_string_equal(stage.words, words);
	assert_true(overlay_host_has_several_boots(&stage.overlay, 7));
	assert_false(overlay_host_has_several_boots(&stage.overlay, 8));
}

static void members_that_the_roster_does_not_name_are_told(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 0);
	add_peer("n4", 8, 0);
	look();
	assert_int_equal(mistakes(words), 0);
	stage.roster = " n1 n2 n3 ";
	look();
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words,
		"members missing in [overlay] expect: n4; add them there, or stop their agents"
	);
	add_peer("n9", 9, 0);
	add_peer("login", 9, 0);
	look();
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words,
		"members missing in [overlay] expect: login and 2 more; add them there, or stop "
		"their agents"
	);
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_DEVICE, "a device");
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_RELOAD, "a key");
	look();
	assert_int_equal(mistakes(words), 3);
	stage.peers[1].state = RAS_LEFT;
	stage.peers[2].state = RAS_DEAD;
	stage.peers[3].state = RAS_LEFT;
	look();
	assert_int_equal(mistakes(words), 2);
	assert_string_equal(words, "a key");
}

static void members_with_one_agent_key_are_told_until_one_has_another(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 0);
	add_peer("n2", 8, 0);
	add_peer("n3", 9, 0);
	add_peer("n4", 10, 0);
	look();
	assert_int_equal(mistakes(words), 0); // members of a release without keys
	for (uint32_t n = 0; n < 4; n++)
		stage.records[n].key[0] = (uint8_t)(1 + n);
	look();
	assert_int_equal(stage.notes, 0);
	stage.records[3].key[0] = stage.records[1].key[0];
	look();
	look();
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words,
		"n2 and n4 have one agent key and can speak for each other: remove agent.key "
		"from the state directory of one, and restart its agent"
	);
	assert_int_equal(stage.notes, 1);
	assert_int_equal(stage.note.kind, RAS_EVENT_KEY_SHARED);
	assert_string_equal(stage.words, words);
	stage.records[2].key[0] = stage.records[1].key[0];
	look();
	assert_int_equal(mistakes(words), 1);
	assert_non_null(strstr(words, "n2 and n3 have"));
	assert_non_null(strstr(words, "(3 nodes share keys)"));
	assert_int_equal(stage.notes, 2);
	// A dead member no longer speaks.
	stage.peers[2].state = stage.peers[3].state = RAS_DEAD;
	look();
	assert_int_equal(mistakes(words), 0);
	assert_int_equal(stage.notes, 2);
}

static void those_of_one_boot_or_of_an_unknown_one_are_no_mistake(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 7, 1);
	add_peer("n3", 7, 0);
	look();
	assert_int_equal(mistakes(words), 0);
	assert_int_equal(stage.notes, 0);
}

static void one_that_is_dead_shares_no_host(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 7, 2);
	look();
	assert_int_equal(mistakes(words), 1);
	stage.peers[1].state = RAS_DEAD;
	look();
	assert_int_equal(mistakes(words), 0);
}

static void one_that_was_forgotten_shares_no_host(void **state) {
	const struct ras_event event = {.kind = RAS_EVENT_FORGOTTEN};
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 7, 2);
	look();
	stage.peer_count = 1;
	overlay_mistakes_event(&stage.overlay, &event);
	clock_advance(&fake_clock, 20 * SEC);
	assert_true(loop_turn(stage.overlay.loop, 0) >= 0);
	assert_int_equal(mistakes(words), 0);
}

static void pair_in_the_place_of_another_one_is_told(void **state) {
	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 7, 2);
	add_peer("n3", 8, 3);
	add_peer("n4", 8, 4);
	stage.peers[3].state = RAS_DEAD;
	look();
	assert_int_equal(stage.notes, 1);
	stage.peers[1].state = RAS_DEAD;
	stage.peers[3].state = RAS_ALIVE;
	look();
	assert_int_equal(stage.notes, 2);
	assert_non_null(strstr(stage.words, "n3 and n4"));
}

static void of_many_two_are_named_and_the_others_counted(void **state) {
	static const char *const names[] = {"n1", "n2", "n3", "n4", "n5"};
	char words[STATE_TEXT_BYTES];

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(names); n++)
		add_peer(names[n], 7, n + 1);
	look();
	look();
	assert_int_equal(mistakes(words), 1);
	assert_non_null(strstr(words, "n1 and n2 (and 3 more)"));
	assert_int_equal(stage.notes, 1); // reported once
}

static void another_one_at_an_address_is_told_with_both_and_the_address(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	add_peer("n2", 8, 2);
	stage.strangers[1] = (struct ras_stranger){
		.peer = 100,
		.found = 101,
		.address = {.address = {10, 0, 0, 2}, .port = 28030, .family = SOCK_ADDR_V4},
	};
	stage.stranger_err[1] = 0;
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words,
		"at 10.0.0.2:28030, the address of n1, n2 answers: check listen and advertise "
		"of both nodes"
	);
	stage.strangers[1].found = 4711;
	assert_int_equal(mistakes(words), 1);
	assert_non_null(strstr(words, "of n1, another agent answers"));
}

static void what_a_node_finds_of_itself_is_told_until_it_is_mended(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_RELOAD, "cannot be read");
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(words, "cannot be read");
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_DEVICE, "stays behind");
	assert_int_equal(mistakes(words), 2);
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_RELOAD, "");
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(words, "stays behind");
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_DEVICE, "");
	assert_int_equal(mistakes(words), 0);
}

// 10.0.0.n
static struct sock_addr ten(uint8_t n, uint16_t port) {
	return (struct sock_addr){.address = {10, 0, 0, n}, .port = port, .family = SOCK_ADDR_V4};
}

static void add_peer_at(const char *name, uint64_t host, struct sock_addr address) {
	add_peer(name, host, host);
	stage.records[stage.peer_count - 1].address = address;
}

static void machine_has(const struct sock_addr *addresses, size_t count) {
	assert_int_equal(overlay_set_own_addresses(&stage.overlay, addresses, count), 0);
	clock_advance(&fake_clock, 10 * SEC);
	assert_true(loop_turn(stage.overlay.loop, 0) >= 0);
}

static void an_address_of_two_machines_is_told_once_with_both_nodes(void **state) {
	const struct sock_addr both[] = {ten(3, 0), ten(1, 0)};
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer_at("n1", 1, ten(1, 28030));
	add_peer_at("n2", 2, ten(2, 28030));
	add_peer_at("n3", 3, ten(3, 28030));
	machine_has(both + 1, 1);
	assert_int_equal(mistakes(words), 0);
	machine_has(both, 2);
	assert_int_equal(mistakes(words), 1);
	assert_string_equal(
		words,
		"10.0.0.3 is the address of n3, but the machine of n1 has it, too: remove it "
		"from one of them"
	);
	assert_int_equal(stage.notes, 1);
	assert_int_equal(stage.note.kind, RAS_EVENT_ADDRESS_SHARED);
	assert_int_equal(stage.note.peer, 102);
	assert_string_equal(stage.words, words);
	stage.peers[2].state = RAS_SUSPECT;
	machine_has(both, 2);
	look();
	assert_int_equal(mistakes(words), 1);
	assert_int_equal(stage.notes, 1);
	machine_has(both + 1, 1);
	assert_int_equal(mistakes(words), 0);
}

static void a_member_that_comes_with_an_address_of_this_machine_is_told(void **state) {
	const struct sock_addr both[] = {ten(1, 0), ten(3, 0)};
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer_at("n1", 1, ten(1, 28030));
	machine_has(both, 2);
	assert_int_equal(mistakes(words), 0);
	add_peer_at("n3", 3, ten(3, 28030));
	look();
	assert_int_equal(mistakes(words), 1);
	stage.records[1].address = ten(4, 28030); // the member has moved
	look();
	assert_int_equal(mistakes(words), 0);
}

static void addresses_that_are_rightly_at_two_agents_are_no_mistake(void **state) {
	static const struct {
		struct sock_addr own, peer;
		uint64_t peer_host;
		enum ras_state state;
		uint32_t mistakes;
	} cases[] = {
		{{.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 2,
		 RAS_ALIVE,
		 1},
		// Two hosts by configuration, but one machine.
		{{.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 2},
		 2,
		 RAS_ALIVE,
		 0},
		// Both on one host.
		{{.address = {10, 0, 0, 2}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 1,
		 RAS_ALIVE,
		 0},
		// The address was reassigned.
		{{.address = {10, 0, 0, 2}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 2,
		 RAS_LEFT,
		 0},
		{{.address = {10, 0, 0, 2}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {10, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 2,
		 RAS_DEAD,
		 0},
		// Loopback addresses exist on every machine.
		{{.address = {127, 0, 0, 2}, .family = SOCK_ADDR_V4, .port = 1},
		 {.address = {127, 0, 0, 1}, .family = SOCK_ADDR_V4, .port = 1},
		 2,
		 RAS_ALIVE,
		 0},
		{{.address = {0xfe, 0x80, [15] = 2}, .family = SOCK_ADDR_V6, .port = 1},
		 {.address = {0xfe, 0x80, [15] = 1}, .family = SOCK_ADDR_V6, .port = 1},
		 2,
		 RAS_ALIVE,
		 0},
		{{.address = {0xfd, 0x80, [15] = 2}, .family = SOCK_ADDR_V6, .port = 1},
		 {.address = {0xfd, 0x80, [15] = 1}, .family = SOCK_ADDR_V6, .port = 1},
		 2,
		 RAS_ALIVE,
		 1},
	};
	char words[STATE_TEXT_BYTES];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		const struct sock_addr machine[] = {cases[n].own, cases[n].peer};

		stage.peer_count = 0;
		add_peer_at("n1", 1, cases[n].own);
		add_peer_at("n2", cases[n].peer_host, cases[n].peer);
		stage.peers[1].state = cases[n].state;
		machine_has(machine, 2);
		if (mistakes(words) != cases[n].mistakes)
			fail_msg("case %zu", n);
	}
}

static void an_address_stays_told_while_its_other_node_is_held_for_dead(void **state) {
	const struct sock_addr both[] = {ten(1, 0), ten(3, 0)};
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer_at("n1", 1, ten(1, 28030));
	add_peer_at("n3", 3, ten(3, 28030));
	machine_has(both, 2);
	stage.peers[1].state = RAS_DEAD;
	look();
	assert_int_equal(mistakes(words), 1);
	assert_int_equal(stage.notes, 1);
	stage.peers[1].state = RAS_LEFT;
	look();
	assert_int_equal(mistakes(words), 0);
}

static void of_many_shared_addresses_as_many_are_told_as_there_is_room_for(void **state) {
	struct sock_addr own[OVERLAY_SHARED_ADDRESSES + 3];
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer_at("n1", 1, ten(1, 28030));
	for (size_t n = 0; n < COUNT_OF(own); n++) {
		own[n] = ten((uint8_t)(100 + n), 0);
		add_peer_at("n", 2 + n, own[n]);
	}
	overlay_set_own_problem(&stage.overlay, OVERLAY_OWN_RELOAD, "cannot be read");
	machine_has(own, COUNT_OF(own));
	assert_int_equal(mistakes(words), OVERLAY_SHARED_ADDRESSES + 1);
	assert_string_equal(words, "cannot be read");
}

static void two_of_one_name_are_told_with_where_both_are(void **state) {
	struct ras_event event = {
		.kind = RAS_EVENT_CONFLICT,
		.peer = 100,
		.other = {.address = {10, 0, 0, 9}, .port = 47262, .family = SOCK_ADDR_V4},
	};
	char words[STATE_TEXT_BYTES];

	(void)state;
	add_peer("n1", 7, 1);
	stage.records[0].address =
		(struct sock_addr){.address = {10, 0, 0, 2}, .port = 28030, .family = SOCK_ADDR_V4};
	overlay_conflict_words(&stage.overlay, &event, words);
	assert_string_equal(
		words, "the agent at 10.0.0.2:28030 has this name, and another agent at "
		       "10.0.0.9:47262 uses it, too"
	);
	event.other.port = 0; // its listening port is unknown
	overlay_conflict_words(&stage.overlay, &event, words);
	assert_string_equal(
		words,
		"the agent at 10.0.0.2:28030 has this name, and another agent at 10.0.0.9 uses "
		"it, too"
	);
	event.other = stage.records[0].address;
	overlay_conflict_words(&stage.overlay, &event, words);
	assert_string_equal(words, ""); // the event already says everything
	event.other.family = SOCK_ADDR_NONE;
	overlay_conflict_words(&stage.overlay, &event, words);
	assert_string_equal(words, "");
}

UNIT_GROUP(mistakes) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(two_live_ones_of_one_host_and_two_boots_are_told_with_what_to_set),
		CASE(members_that_the_roster_does_not_name_are_told),
		CASE(members_with_one_agent_key_are_told_until_one_has_another),
		CASE(those_of_one_boot_or_of_an_unknown_one_are_no_mistake),
		CASE(one_that_is_dead_shares_no_host),
		CASE(one_that_was_forgotten_shares_no_host),
		CASE(pair_in_the_place_of_another_one_is_told),
		CASE(of_many_two_are_named_and_the_others_counted),
		CASE(another_one_at_an_address_is_told_with_both_and_the_address),
		CASE(an_address_of_two_machines_is_told_once_with_both_nodes),
		CASE(a_member_that_comes_with_an_address_of_this_machine_is_told),
		CASE(addresses_that_are_rightly_at_two_agents_are_no_mistake),
		CASE(an_address_stays_told_while_its_other_node_is_held_for_dead),
		CASE(of_many_shared_addresses_as_many_are_told_as_there_is_room_for),
		CASE(two_of_one_name_are_told_with_where_both_are),
		CASE(what_a_node_finds_of_itself_is_told_until_it_is_mended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
