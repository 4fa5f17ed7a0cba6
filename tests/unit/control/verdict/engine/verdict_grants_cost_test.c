// SPDX-License-Identifier: BSD-3-Clause
// Cost of finding the granting member while all members are new, in basic blocks of grants.c.
#include "control/verdict/engine/verdict_bed.h"

#include <verdict/grants.h>

// The static analyser's compiler lacks this attribute, and runs no code.
#if __has_attribute(no_sanitize_coverage)
#define UNCOUNTED __attribute__((no_sanitize_coverage))
#else
#define UNCOUNTED
#endif

#define MEMBERS 4096
#define BLOCKS_PER_MEMBER 256

static uint64_t blocks; // basic blocks executed so far

// The name is fixed by the compiler. NOLINTBEGIN(bugprone-reserved-identifier)
void __sanitizer_cov_trace_pc(void);
// NOLINTEND(bugprone-reserved-identifier)

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
	blocks++;
}

static void on_tell(void *ctx, const void *bytes, size_t size) {
	(void)ctx;
	(void)bytes;
	(void)size;
}

static bool on_wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	(void)at_ns;
	return true;
}

static bool on_wants(void *ctx, uint64_t now_ns, const struct verdict_view *view) {
	(void)ctx;
	(void)now_ns;
	(void)view;
	return false;
}

static void on_given(void *ctx, uint64_t id) {
	(void)ctx;
	(void)id;
}

static const struct grants_ops ops = {
	.tell = on_tell, .wake = on_wake, .wants = on_wants, .given = on_given};

struct scene {
	struct bed *bed;
	struct grants *grants;
};

static void begin(struct scene *scene) {
	const struct verdict_config engine = {.self = bed_id(MEMBERS - 1)};
	const struct grants_config config = {
		.self = engine.self, .rate_percent = 5, .out_percent = 33};

	scene->bed = bed_create_with(MEMBERS, &engine);
	verdict_self_update(
		scene->bed->engine, scene->bed->now_ns,
		&(struct verdict_self_update){.joined = true}
	);
	assert_int_equal(
		grants_create(
			scene->bed->engine, &config, &scene->bed->memory, &ops, NULL, &scene->grants
		),
		0
	);
}

static void finish(struct scene *scene) {
	grants_destroy(scene->grants);
	bed_destroy(scene->bed);
}

// Return the n-th id: each member once, in no order of ids.
static uint64_t nth_id(uint32_t n) {
	return bed_id(n * 1597 % MEMBERS);
}

static void thousands_that_come_together_cost_each_a_little(void **state) {
	struct scene scene;
	uint64_t before;

	(void)state;
	begin(&scene);
	before = blocks;
	for (uint32_t n = 0; n < MEMBERS; n++)
		grants_member_alive(scene.grants, scene.bed->now_ns, nth_id(n));
	assert_true(blocks - before < MEMBERS * BLOCKS_PER_MEMBER);
	before = blocks;
	assert_int_equal(grants_current_granter(scene.grants, scene.bed->now_ns), 0);
	assert_true(blocks - before > MEMBERS); // blocks are counted
	assert_true(blocks - before < MEMBERS * BLOCKS_PER_MEMBER);
	finish(&scene);
}

static void each_is_known_so_long_after_it_came_last(void **state) {
	uint64_t granter = 0;
	struct scene scene;

	(void)state;
	begin(&scene);
	// One member in each millisecond, and the first three again.
	for (uint32_t n = 0; n < MEMBERS + 3; n++) {
		grants_member_alive(scene.grants, scene.bed->now_ns, nth_id(n % MEMBERS));
		bed_pass(scene.bed, MS);
	}
	assert_int_equal(grants_current_granter(scene.grants, scene.bed->now_ns), 0);
	bed_pass(scene.bed, GRANTS_MEMBER_MIN_AGE_NS - (MEMBERS + 1) * MS);
	for (uint32_t n = 3; n < MEMBERS; n++) {
		if (n % 64 == 3)
			assert_int_equal(
				grants_current_granter(scene.grants, scene.bed->now_ns), granter
			);
		if (granter == 0 || nth_id(n) < granter)
			granter = nth_id(n);
		bed_pass(scene.bed, MS);
	}
	bed_pass(scene.bed, 3 * MS);
	assert_int_equal(grants_current_granter(scene.grants, scene.bed->now_ns), bed_id(0));
	finish(&scene);
}

UNIT_GROUP(verdict_grants_cost) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands_that_come_together_cost_each_a_little),
		cmocka_unit_test(each_is_known_so_long_after_it_came_last),
	};

	return cmocka_run_group_tests_name("verdict_grants_cost", tests, NULL, NULL);
}
