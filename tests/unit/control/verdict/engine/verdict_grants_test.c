// SPDX-License-Identifier: BSD-3-Clause
#include "control/verdict/engine/verdict_bed.h"

#include <lib/wire.h>
#include <ras/collective.h>
#include <verdict/grants.h>

#include <string.h>

#define NOTICES_MAX 64
#define ENTRY_BYTES 24
#define RIPE_NS (8 * SEC) // a new verdict on a node is only a warning for five seconds

// The grants of agent `self`, on the engine of a bed.
struct scene {
	struct bed *bed;
	struct grants *grants;
	uint64_t wake_ns;
	uint32_t notices, entries; // notices and grants sent
	uint8_t last[RAS_NOTICE_BYTES_MAX];
	size_t last_size;
	uint32_t given; // grants reported to the caller
	uint64_t bad[4];
	uint32_t changes; // of verdicts
	bool cannot_wake;
};

static void on_tell(void *ctx, const void *bytes, size_t size) {
	struct scene *scene = ctx;

	scene->notices++;
	scene->entries += (uint32_t)(size - 4) / ENTRY_BYTES;
	memcpy(scene->last, bytes, size);
	scene->last_size = size;
}

static bool on_wake(void *ctx, uint64_t at_ns) {
	struct scene *scene = ctx;

	if (!scene->cannot_wake)
		scene->wake_ns = at_ns;
	return !scene->cannot_wake;
}

static bool on_wants(void *ctx, uint64_t now_ns, const struct verdict_view *view) {
	(void)ctx;
	return view->advice == VERDICT_ADVICE_DRAIN ||
	       (view->advice == VERDICT_ADVICE_DRAIN_LATER && now_ns >= view->since_ns + 60 * SEC);
}

static void on_given(void *ctx, uint64_t id) {
	(void)id;
	((struct scene *)ctx)->given++;
}

static const struct grants_ops ops = {
	.tell = on_tell, .wake = on_wake, .wants = on_wants, .given = on_given};

static void begin_as(struct scene *scene, uint32_t count, uint32_t self) {
	const struct verdict_config engine = {.self = bed_id(self)};
	const struct grants_config config = {
		.self = bed_id(self), .rate_percent = 5, .out_percent = 33};

	*scene = (struct scene){.bed = bed_create_with(count, &engine), .wake_ns = RAS_NEVER};
	verdict_self_update(
		scene->bed->engine, scene->bed->now_ns,
		&(struct verdict_self_update){.joined = true}
	);
	assert_int_equal(
		grants_create(
			scene->bed->engine, &config, &scene->bed->memory, &ops, scene,
			&scene->grants
		),
		0
	);
}

static void begin(struct scene *scene, uint32_t count) {
	begin_as(scene, count, 0);
}

static void finish(struct scene *scene) {
	grants_destroy(scene->grants);
	bed_destroy(scene->bed);
}

static bool is_bad(const struct scene *scene, uint32_t agent) {
	return scene->bad[agent / 64] >> agent % 64 & 1;
}

// Advance the time; bad nodes repeat their statements, as agents do.
static void pass(struct scene *scene, uint64_t ns) {
	uint64_t until_ns = scene->bed->now_ns + ns;

	while (scene->bed->now_ns < until_ns) {
		for (uint32_t n = 0; n < scene->bed->count; n++) {
			if (is_bad(scene, n) && scene->bed->now_ns % (5 * SEC) == 0)
				bed_say(scene->bed, n, VERDICT_FABRIC_DOWN, "PortDown");
		}
		bed_pass(scene->bed, 500 * MS);
		if (scene->bed->changes + scene->bed->ripened != scene->changes)
			grants_check_soon(scene->grants, scene->bed->now_ns);
		scene->changes = scene->bed->changes + scene->bed->ripened;
		if (scene->wake_ns <= scene->bed->now_ns) {
			scene->wake_ns = RAS_NEVER;
			grants_tick(scene->grants, scene->bed->now_ns);
		}
	}
}

// Let the agent report its own fault, so that no evidence has to be repeated.
static void ail(struct scene *scene, uint32_t agent) {
	assert_int_equal(bed_say(scene->bed, agent, VERDICT_FABRIC_DOWN, "PortDown"), 0);
	scene->bad[agent / 64] |= UINT64_C(1) << agent % 64;
	grants_check_soon(scene->grants, scene->bed->now_ns);
}

static void ail_all(struct scene *scene, uint32_t from, uint32_t count) {
	for (uint32_t n = 0; n < count; n++)
		ail(scene, from + n);
}

// Faults are so far apart that they are not one event.
static void ail_in_turn(struct scene *scene, uint32_t from, uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		ail(scene, from + n);
		pass(scene, 70 * SEC);
	}
}

static enum grant grant_of(const struct scene *scene, uint32_t agent) {
	return grants_decide(scene->grants, scene->bed->now_ns, bed_id(agent));
}

static uint32_t given_of(const struct scene *scene, uint32_t from, uint32_t count) {
	uint32_t given = 0;

	for (uint32_t n = 0; n < count; n++)
		given += grant_of(scene, from + n) == GRANT_GIVEN;
	return given;
}

static void hear(struct scene *scene, uint32_t agent, uint64_t start, uint32_t ago_s, uint32_t s) {
	uint8_t notice[4 + ENTRY_BYTES] = {1, 0, 1, 0};
	struct wire_writer writer;

	wire_writer_init(&writer, notice + 4, ENTRY_BYTES);
	wire_put_u64(&writer, bed_id(agent));
	wire_put_u64(&writer, start);
	wire_put_u32(&writer, ago_s);
	wire_put_u32(&writer, s);
	assert_int_equal(
		grants_receive(scene->grants, scene->bed->now_ns, notice, sizeof(notice)), 0
	);
}

static void one_that_is_bad_is_granted_once_its_verdict_is_ripe_and_told_to_all(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 5);
	ail(&scene, 3);
	assert_int_equal(grant_of(&scene, 3), GRANT_PENDING);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	assert_int_equal(scene.entries, 1);
	assert_int_equal(scene.given, 1);
	finish(&scene);
}

static void no_more_than_the_rate_are_granted_in_ten_minutes_of_any_size(void **state) {
	static const struct {
		uint32_t nodes, bad, granted, after_ten_minutes;
	} rows[] = {{3, 1, 1, 1}, {6, 3, 1, 2}, {20, 5, 1, 2}, {100, 7, 5, 7}, {200, 8, 8, 8}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene;

		begin(&scene, rows[n].nodes);
		ail_in_turn(&scene, 1, rows[n].bad);
		assert_int_equal(given_of(&scene, 1, rows[n].bad), rows[n].granted);
		if (rows[n].granted < rows[n].bad)
			assert_int_equal(grant_of(&scene, rows[n].bad), GRANT_RATE_LIMIT);
		pass(&scene, 601 * SEC);
		assert_int_equal(given_of(&scene, 1, rows[n].bad), rows[n].after_ten_minutes);
		finish(&scene);
	}
}

static void no_more_than_a_third_are_out_of_service_the_dead_counted(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 6);
	bed_state(scene.bed, 4, RAS_DEAD, RAS_CAUSE_SILENT);
	ail_all(&scene, 1, 2);
	pass(&scene, 2000 * SEC);
	assert_int_equal(given_of(&scene, 1, 2), 1);
	assert_int_equal(grant_of(&scene, 2), GRANT_TOO_MANY_OUT);
	bed_state(scene.bed, 4, RAS_LEFT, RAS_CAUSE_LEAVE);
	pass(&scene, 2 * SEC);
	assert_int_equal(given_of(&scene, 1, 2), 1); // a third of five is one node
	finish(&scene);
}

// A member that floods grants makes other members count no more than twice the rate.
static void no_more_than_twice_the_rate_is_believed(void **state) {
	struct scene scene;

	(void)state;
	begin_as(&scene, 40, 1);
	for (uint32_t n = 2; n < 40; n++)
		hear(&scene, n, 1, 0, 600);
	assert_int_equal(given_of(&scene, 2, 38), 4);
	assert_int_equal(grant_of(&scene, 39), GRANT_RATE_LIMIT);
	finish(&scene);
	begin_as(&scene, 40, 1);
	for (uint32_t n = 2; n < 40; n++)
		hear(&scene, n, 1, 700, 600); // granted more than ten minutes ago
	assert_int_equal(given_of(&scene, 2, 38), 4 + 40 / 3);
	finish(&scene);
}

static void agent_that_is_gone_takes_nothing_out_of_service(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 3);
	bed_state(scene.bed, 2, RAS_DEAD, RAS_CAUSE_GONE);
	bed_see_reach(scene.bed, 0, 2, OBSERVATION_NO_PAIR, VERDICT_REACH_REFUSES);
	bed_expect(scene.bed, 2, VERDICT_AGENT_DOWN, NULL);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_GIVEN);
	finish(&scene);
}

// Regression: a machine with the address of another one joined and was killed. The other machine's
// kernel accepted connections, so a node that did not exist was drained. The drain of a real node
// was withheld for it.
static void node_whose_address_another_one_has_takes_nothing_out_of_service(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 4);
	bed_state(scene.bed, 3, RAS_DEAD, RAS_CAUSE_SILENT);
	for (uint32_t n = 0; n < 3; n++)
		bed_see_reach(scene.bed, n, 3, OBSERVATION_NO_PAIR, VERDICT_REACH_ACCEPTS);
	bed_expect(scene.bed, 3, VERDICT_AGENT_FROZEN, "AgentMute");
	pass(&scene, 70 * SEC);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	// One observer found who answers there; the others go by the kernel.
	bed_see_reach(scene.bed, 1, 3, OBSERVATION_NO_PAIR, VERDICT_REACH_OTHER);
	bed_expect(scene.bed, 3, VERDICT_UNKNOWN, "AddressConflict");
	pass(&scene, 600 * SEC);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_GIVEN);
	finish(&scene);
}

// After its drain the node went into maintenance, or no observer knows its state: it still takes
// no jobs.
static void node_counts_as_out_until_it_is_healthy(void **state) {
	struct verdict_peer_update maint = bed_peer(1, RAS_ALIVE, RAS_CAUSE_NONE);
	struct scene scene;

	(void)state;
	begin(&scene, 5);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_GIVEN);
	maint.maint = true;
	assert_int_equal(verdict_peer_update(scene.bed->engine, scene.bed->now_ns, &maint), 0);
	pass(&scene, 1000 * SEC);
	ail(&scene, 2);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 2), GRANT_TOO_MANY_OUT);
	maint.maint = false;
	assert_int_equal(verdict_peer_update(scene.bed->engine, scene.bed->now_ns, &maint), 0);
	scene.bad[0] &= ~UINT64_C(2);
	bed_say(scene.bed, 1, VERDICT_HEALTHY, "PortDown");
	pass(&scene, 60 * SEC);
	assert_int_equal(grant_of(&scene, 2), GRANT_GIVEN);
	finish(&scene);
}

static void part_of_what_is_expected_is_no_cluster(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 6);
	grants_expect(scene.grants, 20, false);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_MINORITY);
	finish(&scene);
	begin(&scene, 1);
	grants_expect(scene.grants, 0, true);
	ail(&scene, 0);
	assert_int_not_equal(grant_of(&scene, 0), GRANT_GIVEN);
	finish(&scene);
}

static void where_all_are_critical_nobody_grants_and_it_says_so(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 3);
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(bed_say(scene.bed, n, VERDICT_CHECK_FAILED, "DiskFull"), 0);
	assert_int_equal(grant_of(&scene, 1), GRANT_NO_GRANTER);
	finish(&scene);
}

static void wake_that_failed_is_asked_for_again(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 5);
	scene.cannot_wake = true;
	ail(&scene, 3);
	scene.cannot_wake = false;
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	finish(&scene);
}

static void those_that_fall_silent_together_are_not_drained_for_ten_minutes(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 40); // two drains in ten minutes
	ail_all(&scene, 1, 3);
	pass(&scene, 300 * SEC);
	assert_int_equal(given_of(&scene, 1, 3), 0);
	assert_int_equal(grant_of(&scene, 1), GRANT_COMMON_EVENT);
	// A node that fails much later is not part of the event.
	ail(&scene, 9);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 9), GRANT_GIVEN);
	pass(&scene, 300 * SEC);
	assert_int_equal(given_of(&scene, 1, 3), 1);
	finish(&scene);
}

static void die(struct scene *scene, uint32_t agent) {
	for (uint32_t by = 20; by < 22; by++)
		bed_see_reach(scene->bed, by, agent, OBSERVATION_SILENT, VERDICT_REACH_NONE);
	bed_state(scene->bed, agent, RAS_DEAD, RAS_CAUSE_SILENT);
}

// Regression: at the end of a split two of three nodes were heard again first. In that moment a
// drain of the third was granted, for 90 s.
static void one_that_died_beside_others_whose_doubt_is_just_over_is_not_drained(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 30); // one drain in ten minutes
	for (uint32_t agent = 1; agent <= 3; agent++)
		bed_state(scene.bed, agent, RAS_SUSPECT, RAS_CAUSE_SILENT);
	pass(&scene, 5 * SEC);
	die(&scene, 2);
	pass(&scene, SEC);
	bed_state(scene.bed, 1, RAS_ALIVE, RAS_CAUSE_REFUTED);
	bed_state(scene.bed, 3, RAS_ALIVE, RAS_CAUSE_REFUTED);
	pass(&scene, 12 * SEC);
	assert_int_equal(bed_view(scene.bed, 2).advice, VERDICT_ADVICE_DRAIN);
	assert_int_equal(grant_of(&scene, 2), GRANT_COMMON_EVENT);
	pass(&scene, 5 * SEC); // the two stay alive
	assert_int_equal(grant_of(&scene, 2), GRANT_GIVEN);
	finish(&scene);
}

// Let observers from..from + 2 report the node unread; bad observations must be repeated while
// they last.
static void unread(struct scene *scene, uint32_t agent, uint32_t from, uint64_t ns) {
	for (uint64_t passed = 0; passed < ns; passed += 5 * SEC) {
		for (uint32_t n = from; n < from + 3; n++)
			bed_see(scene->bed, n, agent, OBSERVATION_SILENT);
		grants_check_soon(scene->grants, scene->bed->now_ns);
		pass(scene, 5 * SEC);
	}
}

// Regression: the node was cut off from the other half of the fabric, like its whole half. All
// its observers were there.
static void one_whose_observers_are_all_across_a_split_is_not_drained(void **state) {
	static const struct {
		uint32_t also; // number of nodes that some observers cannot read, while others can
		enum grant grant;
	} rows[] = {{0, GRANT_GIVEN}, {1, GRANT_GIVEN}, {2, GRANT_COMMON_EVENT}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct scene scene;

		begin(&scene, 40); // two drains in ten minutes
		for (uint64_t turn = 0; turn < 6; turn++) {
			for (uint32_t also = 0; also < rows[n].also; also++) {
				for (uint32_t by = 20; by < 24; by++)
					bed_see(scene.bed, by, 10 + also,
						by < 22 ? OBSERVATION_SILENT : OBSERVATION_GOOD);
			}
			unread(&scene, 3, 20, 5 * SEC);
		}
		bed_expect(scene.bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
		assert_int_equal(grant_of(&scene, 3), rows[n].grant);
		finish(&scene);
	}
}

// Regression: a verdict is held for some seconds after its evidence is gone, and a drain was
// granted in that time.
static void what_is_better_already_is_not_drained(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 40);
	bed_see(scene.bed, 20, 3, OBSERVATION_SILENT);
	bed_see(scene.bed, 21, 3, OBSERVATION_SILENT);
	pass(&scene, SEC);
	bed_expect(scene.bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_see(scene.bed, 20, 3, OBSERVATION_GOOD);
	bed_see(scene.bed, 21, 3, OBSERVATION_GOOD);
	pass(&scene, SEC);
	bed_expect(scene.bed, 3, VERDICT_FABRIC_DOWN, "PulseUnread");
	assert_int_equal(grant_of(&scene, 3), GRANT_IMPROVING);
	finish(&scene);
}

static void nobody_is_granted_under_the_brake_or_in_a_part_of_half(void **state) {
	const struct verdict_self_update braked = {.joined = true, .brake = true};
	const struct verdict_self_update free = {.joined = true};
	struct scene scene;

	(void)state;
	begin(&scene, 6);
	verdict_self_update(scene.bed->engine, scene.bed->now_ns, &braked);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_BRAKE);
	verdict_self_update(scene.bed->engine, scene.bed->now_ns, &free);
	for (uint32_t n = 3; n < 6; n++)
		bed_state(scene.bed, n, RAS_UNREACHABLE, RAS_CAUSE_SILENT);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 1), GRANT_MINORITY);
	for (uint32_t n = 3; n < 6; n++)
		bed_state(scene.bed, n, RAS_ALIVE, RAS_CAUSE_NONE);
	pass(&scene, 16 * SEC); // they stay alive
	assert_int_equal(grant_of(&scene, 1), GRANT_GIVEN);
	finish(&scene);
}

static void only_the_lowest_of_those_who_may_grants(void **state) {
	struct scene scene;

	(void)state;
	begin_as(&scene, 5, 2);
	ail_in_turn(&scene, 4, 1);
	assert_int_equal(scene.notices, 0);
	assert_false(grants_are_ours(scene.grants, scene.bed->now_ns));
	// One of the members with lower ids is suspected, and the other one has a fault itself.
	bed_state(scene.bed, 0, RAS_SUSPECT, RAS_CAUSE_SILENT);
	ail(&scene, 1);
	pass(&scene, RIPE_NS);
	assert_true(grants_are_ours(scene.grants, scene.bed->now_ns));
	assert_int_equal(given_of(&scene, 1, 4), 1);
	finish(&scene);
}

static void who_came_lately_grants_nothing_and_hinders_nobody(void **state) {
	struct scene scene;

	(void)state;
	begin_as(&scene, 5, 1);
	grants_member_alive(scene.grants, scene.bed->now_ns, bed_id(0));
	assert_true(grants_are_ours(scene.grants, scene.bed->now_ns));
	pass(&scene, GRANTS_MEMBER_MIN_AGE_NS);
	assert_false(grants_are_ours(scene.grants, scene.bed->now_ns));
	finish(&scene);
	begin(&scene, 5);
	grants_member_alive(scene.grants, scene.bed->now_ns, bed_id(0));
	assert_false(grants_are_ours(scene.grants, scene.bed->now_ns));
	pass(&scene, GRANTS_MEMBER_MIN_AGE_NS);
	assert_true(grants_are_ours(scene.grants, scene.bed->now_ns));
	finish(&scene);
}

static void who_takes_over_counts_what_was_granted_before(void **state) {
	struct scene first, second;

	(void)state;
	begin(&first, 5);
	ail(&first, 3);
	pass(&first, RIPE_NS);
	begin_as(&second, 5, 1);
	assert_int_equal(
		grants_receive(second.grants, second.bed->now_ns, first.last, first.last_size), 0
	);
	assert_int_equal(grant_of(&second, 3), GRANT_GIVEN);
	assert_int_equal(second.given, 1);
	bed_state(second.bed, 0, RAS_LEFT, RAS_CAUSE_LEAVE);
	ail_all(&second, 3, 2);
	pass(&second, 60 * SEC);
	assert_int_equal(grant_of(&second, 4), GRANT_TOO_MANY_OUT);
	// The agent also holds on to the grant, for members that join later.
	assert_true(second.entries > 0);
	pass(&second, 2000 * SEC);
	assert_int_equal(grant_of(&second, 3), GRANT_GIVEN);
	finish(&first);
	finish(&second);
}

static void grants_are_told_again_and_at_once_to_who_joins(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 5);
	ail(&scene, 3);
	pass(&scene, RIPE_NS);
	assert_int_equal(scene.notices, 1);
	pass(&scene, 2 * GRANTS_REPEAT_NS);
	assert_int_equal(scene.notices, 3);
	grants_member_alive(scene.grants, scene.bed->now_ns, bed_id(4));
	pass(&scene, 2 * SEC);
	assert_int_equal(scene.notices, 4);
	finish(&scene);
}

static void grant_that_nobody_tells_again_ends_and_counts_for_ten_minutes(void **state) {
	struct scene scene;

	(void)state;
	begin_as(&scene, 5, 1);
	hear(&scene, 3, 1, 0, 60);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	pass(&scene, 60 * SEC);
	assert_int_equal(grant_of(&scene, 3), GRANT_RATE_LIMIT);
	pass(&scene, 540 * SEC);
	assert_int_equal(grant_of(&scene, 3), GRANT_PENDING);
	finish(&scene);
}

static void grant_is_of_one_start_and_lasts_for_90_seconds(void **state) {
	struct scene scene;

	(void)state;
	begin_as(&scene, 40, 1);
	hear(&scene, 3, 2, 0, 600); // of an unknown grant: it is sent again
	assert_int_equal(grant_of(&scene, 3), GRANT_PENDING);
	hear(&scene, 3, 1, 0, 600);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	hear(&scene, 4, 1, UINT32_MAX, UINT32_MAX);
	assert_int_equal(grant_of(&scene, 4), GRANT_GIVEN);
	pass(&scene, 90 * SEC);
	assert_int_equal(grant_of(&scene, 4), GRANT_PENDING);
	pass(&scene, 510 * SEC);
	hear(&scene, 99, 1, 0, 600); // an unknown member
	assert_int_equal(grants_counters(scene.grants)->kept, 0);
	finish(&scene);
}

static void what_is_malformed_is_taken_nowhere_and_what_is_newer_is_left(void **state) {
	static const struct {
		uint8_t bytes[8];
		size_t size;
		int err;
	} rows[] = {
		{{0}, 0, -EBADMSG},	     {{1, 0, 0}, 3, -EBADMSG},
		{{1, 0, 1, 0}, 4, -EBADMSG}, {{1, 0, 0, 0, 9}, 5, -EBADMSG},
		{{1, 0, 0, 0}, 4, 0},	     {{2, 0, 0, 1}, 4, 0},
	};
	struct scene scene;

	(void)state;
	begin(&scene, 3);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(
			grants_receive(
				scene.grants, scene.bed->now_ns, rows[n].bytes, rows[n].size
			),
			rows[n].err
		);
	assert_int_equal(grants_counters(scene.grants)->heard_newer, 1);
	finish(&scene);
}

static void node_with_a_new_key_is_not_drained_on_its_own_word_for_ten_minutes(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 40);
	verdict_peer_key_changed(scene.bed->engine, scene.bed->now_ns, bed_id(99)); // unknown
	verdict_peer_key_changed(scene.bed->engine, scene.bed->now_ns, bed_id(3));
	ail(&scene, 3);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 3), GRANT_KEY_CHANGED);
	hear(&scene, 3, 1, 0, 90); // another granter did not see the change
	assert_int_equal(grant_of(&scene, 3), GRANT_KEY_CHANGED);
	assert_int_equal(scene.entries, 0);
	pass(&scene, GRANTS_NEW_KEY_NS - RIPE_NS);
	assert_int_equal(grant_of(&scene, 3), GRANT_KEY_CHANGED);
	pass(&scene, 5 * SEC);
	assert_int_equal(grant_of(&scene, 3), GRANT_GIVEN);
	// The evidence of others counts at once.
	verdict_peer_key_changed(scene.bed->engine, scene.bed->now_ns, bed_id(5));
	for (uint32_t n = 0; n < 2 * RIPE_NS / SEC; n++) {
		bed_see_two(scene.bed, 5, OBSERVATION_SILENT);
		pass(&scene, SEC);
	}
	assert_int_equal(grant_of(&scene, 5), GRANT_GIVEN);
	finish(&scene);
}

static void the_word_of_a_node_does_not_hide_what_two_others_see(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 40);
	verdict_peer_key_changed(scene.bed->engine, scene.bed->now_ns, bed_id(7));
	ail(&scene, 7);
	pass(&scene, RIPE_NS);
	assert_int_equal(grant_of(&scene, 7), GRANT_KEY_CHANGED);
	for (uint32_t n = 0; n < 2 * RIPE_NS / SEC; n++) {
		bed_see_two(scene.bed, 7, OBSERVATION_SILENT);
		pass(&scene, SEC);
	}
	bed_expect(scene.bed, 7, VERDICT_FABRIC_DOWN, "PortDown");
	assert_int_equal(grant_of(&scene, 7), GRANT_GIVEN);
	finish(&scene);
}

static void one_alone_drains_itself_by_its_own_word(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 1);
	ail(&scene, 0);
	assert_int_equal(grant_of(&scene, 0), GRANT_GIVEN);
	finish(&scene);
}

// A failed allocation loses only the grant.
static void without_memory_nobody_is_granted(void **state) {
	struct scene scene;

	(void)state;
	begin(&scene, 5);
	ail(&scene, 3);
	heap_leave(&scene.bed->heap, 0);
	pass(&scene, RIPE_NS);
	hear(&scene, 2, 1, 0, 600);
	grants_member_alive(scene.grants, scene.bed->now_ns, bed_id(1));
	assert_int_equal(given_of(&scene, 1, 4), 0);
	heap_refill(&scene.bed->heap);
	pass(&scene, 2 * SEC);
	assert_int_equal(given_of(&scene, 1, 4), 1);
	finish(&scene);
}

UNIT_GROUP(verdict_grants) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_bad_is_granted_once_its_verdict_is_ripe_and_told_to_all
		),
		cmocka_unit_test(no_more_than_the_rate_are_granted_in_ten_minutes_of_any_size),
		cmocka_unit_test(no_more_than_a_third_are_out_of_service_the_dead_counted),
		cmocka_unit_test(no_more_than_twice_the_rate_is_believed),
		cmocka_unit_test(agent_that_is_gone_takes_nothing_out_of_service),
		cmocka_unit_test(node_whose_address_another_one_has_takes_nothing_out_of_service),
		cmocka_unit_test(node_counts_as_out_until_it_is_healthy),
		cmocka_unit_test(part_of_what_is_expected_is_no_cluster),
		cmocka_unit_test(where_all_are_critical_nobody_grants_and_it_says_so),
		cmocka_unit_test(wake_that_failed_is_asked_for_again),
		cmocka_unit_test(those_that_fall_silent_together_are_not_drained_for_ten_minutes),
		cmocka_unit_test(one_that_died_beside_others_whose_doubt_is_just_over_is_not_drained
		),
		cmocka_unit_test(one_whose_observers_are_all_across_a_split_is_not_drained),
		cmocka_unit_test(what_is_better_already_is_not_drained),
		cmocka_unit_test(nobody_is_granted_under_the_brake_or_in_a_part_of_half),
		cmocka_unit_test(only_the_lowest_of_those_who_may_grants),
		cmocka_unit_test(who_came_lately_grants_nothing_and_hinders_nobody),
		cmocka_unit_test(who_takes_over_counts_what_was_granted_before),
		cmocka_unit_test(grants_are_told_again_and_at_once_to_who_joins),
		cmocka_unit_test(grant_that_nobody_tells_again_ends_and_counts_for_ten_minutes),
		cmocka_unit_test(grant_is_of_one_start_and_lasts_for_90_seconds),
		cmocka_unit_test(what_is_malformed_is_taken_nowhere_and_what_is_newer_is_left),
		cmocka_unit_test(node_with_a_new_key_is_not_drained_on_its_own_word_for_ten_minutes
		),
		cmocka_unit_test(the_word_of_a_node_does_not_hide_what_two_others_see),
		cmocka_unit_test(one_alone_drains_itself_by_its_own_word),
		cmocka_unit_test(without_memory_nobody_is_granted),
	};

	return cmocka_run_group_tests_name("verdict_grants", tests, NULL, NULL);
}
