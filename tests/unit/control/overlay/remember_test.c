// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/remember.c with a fake table, core and state directory.
#include "overlay/inside.h"

#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_MAX 64
#define SEC RAS_NS_PER_SEC
#define NOW_S 1795000000

static struct {
	struct overlay overlay;
	struct ras_record records[PEERS_MAX];
	struct ras_peer peers[PEERS_MAX];
	char names[PEERS_MAX][8];
	uint32_t peer_count;
	bool joined;
	uint64_t now_ns;
	int64_t clock_step_ns;
	uint64_t timer_ns; // 0: not set
	// The state directory.
	char *file; // NULL: no file
	uint32_t writes;
	// State of the core.
	uint32_t given;
	uint32_t dropped;
	// State of the roster.
	const char *missing;
} stage;

uint64_t ras_self_id(const struct ras *ras) {
	(void)ras;
	return stage.records[0].id;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	struct ras_view view = {.slots_max = stage.peer_count, .joined = stage.joined};

	(void)ras;
	for (uint32_t n = 0; n < stage.peer_count; n++)
		view.alive += stage.peers[n].state == RAS_ALIVE;
	*ret_view = view;
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	(void)ras;
	if (slot >= stage.peer_count || stage.peers[slot].record == NULL)
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

int ras_remembered(struct ras *ras, const struct sock_addr *addresses, uint32_t count) {
	(void)ras;
	(void)addresses;
	stage.given = count;
	return 0;
}

void ras_remembered_drop(struct ras *ras, const struct sock_addr *address) {
	(void)ras;
	(void)address;
	stage.dropped++;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	(void)overlay;
	return stage.now_ns;
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	(void)overlay;
	return (int64_t)(NOW_S * SEC + now_ns) + stage.clock_step_ns;
}

uint32_t overlay_roster_count(const struct overlay *overlay) {
	(void)overlay;
	return stage.missing != NULL ? 2 : 0;
}

const char *overlay_missing_next(const struct overlay *overlay, uint32_t *cursor) {
	(void)overlay;
	return (*cursor)++ == 0 ? stage.missing : NULL;
}

int loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns) {
	(void)loop;
	assert_ptr_equal(timer, &stage.overlay.remember.due);
	stage.timer_ns = at_ns;
	return 0;
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer) {
	(void)loop;
	(void)timer;
	stage.timer_ns = 0;
}

int state_read_text(struct state *state, enum state_text which, char **ret_text) {
	(void)state;
	assert_int_equal(which, STATE_MEMBERS);
	if (stage.file == NULL)
		return -ENOENT;
	*ret_text = strdup(stage.file);
	return 0;
}

void state_save_text(struct state *state, enum state_text which, char *text) {
	(void)state;
	assert_int_equal(which, STATE_MEMBERS);
	free(stage.file);
	stage.file = text;
	stage.writes++;
}

static void add(uint32_t number, uint32_t host) {
	uint32_t n = stage.peer_count++;
	struct ras_record *record = &stage.records[n];

	snprintf(stage.names[n], sizeof(stage.names[n]), "n%u", number);
	*record = (struct ras_record){
		.name = stage.names[n],
		.name_length = (uint8_t)strlen(stage.names[n]),
		.host = stage.names[host],
		.host_length = (uint8_t)strlen(stage.names[host]),
		.address =
			{.family = SOCK_ADDR_V4, .port = 1, .address = {10, 0, 0, (uint8_t)number}},
	};
	record->id = ras_id(record->name, record->name_length);
	stage.peers[n] = (struct ras_peer){.record = record, .slot = n, .state = RAS_ALIVE};
}

static void start(void) {
	stage.overlay = (struct overlay){.state = (struct state *)&stage};
	stage.timer_ns = 0;
	assert_int_equal(overlay_remember_start(&stage.overlay, "c", "n0"), 0);
}

static void restart(void) {
	overlay_remember_fini(&stage.overlay);
	start();
}

static int begin(void **state) {
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	memset(&stage, 0, sizeof(stage));
	stage.now_ns = 100 * SEC;
	stage.joined = true;
	for (uint32_t n = 0; n < 4; n++)
		add(n, n);
	start();
	return 0;
}

static int end(void **state) {
	(void)state;
	overlay_remember_fini(&stage.overlay);
	free(stage.file);
	return 0;
}

static void happen(enum ras_event_kind kind, uint32_t number, uint64_t value) {
	struct ras_event event = {.kind = kind, .value = value};

	snprintf(event.name, sizeof(event.name), "n%u", number);
	overlay_remember_event(&stage.overlay, &event);
}

// Advance to the timer, which must be set.
static void pass(void) {
	assert_int_not_equal(stage.timer_ns, 0);
	stage.now_ns = stage.timer_ns;
	stage.timer_ns = 0;
	stage.overlay.remember.due.expired(&stage.overlay.remember.due, stage.now_ns);
}

static void members_are_written_a_second_after_the_join_without_ourselves(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	assert_int_equal(stage.timer_ns, 101 * SEC);
	pass();
	assert_int_equal(stage.writes, 1);
	assert_int_equal(overlay_remembered_count(&stage.overlay), 3);
	assert_null(strstr(stage.file, "10.0.0.0:"));
	restart();
	assert_int_equal(stage.given, 3);
}

static void set_that_changes_all_the_time_is_written_once_a_minute(void **state) {
	uint64_t since_ns = stage.now_ns;

	(void)state;
	for (uint32_t n = 4; n < 24; n++) {
		add(n, n);
		happen(RAS_EVENT_JOINED, n, 0);
		pass();
	}
	assert_int_equal(stage.writes, 20);
	assert_in_range((stage.now_ns - since_ns) / SEC, 19 * 60, 20 * 60);
}

static void set_that_stays_is_written_each_hour_for_its_times(void **state) {
	uint64_t first_ns;

	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	first_ns = stage.now_ns;
	happen(RAS_EVENT_REJOINED, 2, 0);
	pass();
	assert_int_equal(stage.writes, 1);
	while (stage.writes == 1)
		pass();
	assert_in_range(stage.now_ns - first_ns, 3600 * SEC, 3700 * SEC);
}

static void one_that_is_forgotten_by_a_person_is_remembered_no_more(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	for (uint32_t expired = 0; expired < 2; expired++) {
		stage.peers[2 + expired].record = NULL;
		stage.peers[2 + expired].state = RAS_UNKNOWN;
		happen(RAS_EVENT_FORGOTTEN, 2 + expired, expired);
	}
	pass();
	assert_int_equal(stage.writes, 2);
	assert_null(strstr(stage.file, "\"n2\""));
	assert_non_null(strstr(stage.file, "\"n3\""));
}

static void only_another_cluster_is_a_reason_to_forget_who_refuses(void **state) {
	static const enum ras_cause causes[] = {
		RAS_CAUSE_PROOF, RAS_CAUSE_VERSION, RAS_CAUSE_CONFLICT, RAS_CAUSE_CLUSTER};
	char words[STATE_TEXT_BYTES];

	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	for (size_t n = 0; n < COUNT_OF(causes); n++) {
		struct ras_event event = {
			.kind = RAS_EVENT_JOIN_DROPPED,
			.cause = causes[n],
			.other = stage.records[2].address,
		};

		assert_int_equal(overlay_remembered_count(&stage.overlay), 3);
		overlay_dropped_words(&stage.overlay, &event, words);
		assert_string_equal(
			words, "the agent at 10.0.0.2:1, remembered as n2, refused this node"
		);
		overlay_remember_event(&stage.overlay, &event);
	}
	assert_int_equal(overlay_remembered_count(&stage.overlay), 2);
}

static void what_is_not_proven_for_seven_days_is_remembered_nowhere(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	stage.peers[2].state = RAS_DEAD;
	stage.clock_step_ns = INT64_C(700000) * (int64_t)SEC;
	while (stage.writes == 1)
		pass();
	assert_int_equal(overlay_remembered_count(&stage.overlay), 2);
	assert_int_equal(stage.dropped, 1);
}

// Restart with n1 as the only peer. The clock is off by this much until after the first look.
static void restart_with_a_clock_off_by(int64_t off_s) {
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	stage.peer_count = 2;
	stage.clock_step_ns = off_s * (int64_t)SEC;
	restart();
	assert_int_equal(stage.given, 3);
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	assert_int_equal(overlay_remembered_count(&stage.overlay), 3);
	stage.clock_step_ns = 0;
	happen(RAS_EVENT_JOINED, 1, 0);
	pass();
	pass(); // one hour later
	assert_int_equal(overlay_remembered_count(&stage.overlay), 3);
	assert_int_equal(stage.dropped, 0);
	assert_non_null(strstr(stage.file, "\"n3\""));
}

static void clock_that_is_behind_when_the_agent_starts_expires_nobody(void **state) {
	(void)state;
	restart_with_a_clock_off_by(-1794000000);
}

static void clock_that_is_ahead_when_the_agent_starts_expires_nobody(void **state) {
	(void)state;
	restart_with_a_clock_off_by(1000000000);
}

static void one_that_is_alone_expires_nobody(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	for (uint32_t n = 1; n < stage.peer_count; n++)
		stage.peers[n].state = RAS_DEAD;
	stage.clock_step_ns = INT64_C(700000) * (int64_t)SEC;
	pass(); // one hour later
	pass();
	assert_int_equal(overlay_remembered_count(&stage.overlay), 3);
	stage.peers[1].state = RAS_ALIVE;
	pass();
	assert_int_equal(overlay_remembered_count(&stage.overlay), 1);
}

static void table_is_looked_through_once_in_ten_seconds(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	stage.now_ns = 300 * SEC;
	for (uint64_t at_s = 301; at_s < 400; at_s += 10) {
		happen(RAS_EVENT_REJOINED, 2, 0);
		assert_int_equal(stage.timer_ns, at_s * SEC);
		pass();
	}
	assert_int_equal(stage.writes, 1);
}

static void clock_that_is_wrong_until_the_join_expires_nobody(void **state) {
	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	stage.joined = false;
	stage.clock_step_ns = -INT64_C(1794000000) * (int64_t)SEC;
	restart();
	assert_int_equal(stage.given, 3);
	overlay_remember_end(&stage.overlay);
	assert_int_equal(stage.writes, 1);
	stage.clock_step_ns = 0;
	restart();
	assert_int_equal(stage.given, 3);
}

// A list of forty members, some of which share a host.
static void full_list_has_as_many_hosts_as_there_are(void **state) {
	uint32_t hosts = 0;

	(void)state;
	for (uint32_t n = 4; n < 44; n++)
		add(n, n < 24 ? 4 : n);
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	assert_int_equal(overlay_remembered_count(&stage.overlay), MEMBER_LIST_MAX);
	for (uint32_t host = 1; host < 44; host++) {
		char text[32];

		snprintf(text, sizeof(text), "\"host\":\"n%u\"", host);
		hosts += strstr(stage.file, text) != NULL;
	}
	assert_int_equal(hosts, 3 + 1 + 20);
}

static void alone_is_who_remembers_or_expects_others_that_did_not_leave(void **state) {
	char words[STATE_TEXT_BYTES];

	(void)state;
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	pass();
	assert_false(overlay_is_alone(&stage.overlay)); // not alone: three members
	stage.peers[3].state = RAS_LEFT;
	happen(RAS_EVENT_LEFT, 3, 0);
	pass();
	restart();
	stage.peer_count = 1; // the former members are in no table
	assert_true(overlay_is_alone(&stage.overlay));
	overlay_alone_words(&stage.overlay, words);
	assert_non_null(strstr(words, "remembers 2 other members: n"));
	assert_null(strstr(words, "n3"));
	assert_int_equal(overlay_forget_remembered(&stage.overlay), 3);
	assert_false(overlay_is_alone(&stage.overlay));
	stage.missing = "n9";
	assert_true(overlay_is_alone(&stage.overlay));
	overlay_alone_words(&stage.overlay, words);
	assert_string_equal(words, "this node is alone, but 2 nodes are expected");
	stage.joined = false;
	assert_false(overlay_is_alone(&stage.overlay)); // waiting is reported separately
}

static void node_without_a_state_directory_keeps_nothing(void **state) {
	(void)state;
	overlay_remember_fini(&stage.overlay);
	stage.overlay = (struct overlay){.state = NULL};
	assert_int_equal(overlay_remember_start(&stage.overlay, "c", "n0"), 0);
	happen(RAS_EVENT_JOIN_DONE, 0, 0);
	assert_int_equal(stage.timer_ns, 0);
	overlay_remember_end(&stage.overlay);
	overlay_forget_remembered(&stage.overlay);
	assert_int_equal(stage.writes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(remember) {
	const struct CMUnitTest tests[] = {
		TEST(members_are_written_a_second_after_the_join_without_ourselves),
		TEST(set_that_changes_all_the_time_is_written_once_a_minute),
		TEST(set_that_stays_is_written_each_hour_for_its_times),
		TEST(one_that_is_forgotten_by_a_person_is_remembered_no_more),
		TEST(only_another_cluster_is_a_reason_to_forget_who_refuses),
		TEST(what_is_not_proven_for_seven_days_is_remembered_nowhere),
		TEST(clock_that_is_wrong_until_the_join_expires_nobody),
		TEST(clock_that_is_behind_when_the_agent_starts_expires_nobody),
		TEST(clock_that_is_ahead_when_the_agent_starts_expires_nobody),
		TEST(one_that_is_alone_expires_nobody),
		TEST(table_is_looked_through_once_in_ten_seconds),
		TEST(full_list_has_as_many_hosts_as_there_are),
		TEST(alone_is_who_remembers_or_expects_others_that_did_not_leave),
		TEST(node_without_a_state_directory_keeps_nothing),
	};

	return cmocka_run_group_tests_name("remember", tests, NULL, NULL);
}
