// SPDX-License-Identifier: BSD-3-Clause
// Tests of the access that a peer has to registered memory with its key, on software devices.
#include "dataplane/lane/lane_bed.h"

#include <support/cases.h>

#include <stdio.h>
#include <string.h>

#define OFFSET 4096
#define LENGTH 100

static const struct bed_config usual = {
	.pair_max = 8,
	.depth = 16,
	.op_max = 1024,
	.message_max = 16384,
	.soft = true,
};

struct scene {
	struct bed bed;
	struct memory_registry *registries[2];
	struct memory_view views[2]; // ours is writable; the peer's has the access under test
};

static void scene_open(struct scene *scene, uint32_t access) {
	const uint32_t accesses[2] = {MEMORY_LOCAL_WRITES, access};
	char reason[MEMORY_REASON_MAX + 1];

	bed_open(&scene->bed, &usual);
	for (int side = 0; side < 2; side++) {
		const struct memory_config config = {
			.device = scene->bed.devices[side],
			.clock = &scene->bed.clock,
		};
		const struct memory_request request = {
			.address = (uintptr_t)scene->bed.memory[side] + OFFSET,
			.length = LENGTH,
			.access = accesses[side],
		};

		assert_int_equal(memory_registry_create(&config, &scene->registries[side]), 0);
		assert_int_equal(
			memory_view_get(
				scene->registries[side], &request, reason, &scene->views[side]
			),
			0
		);
		bed_fill(&scene->bed, side, side == 0 ? 3 : 9);
	}
}

static void scene_close(struct scene *scene) {
	for (int side = 0; side < 2; side++) {
		memory_view_put(&scene->views[side]);
		assert_null(memory_registry_destroy(scene->registries[side]));
	}
	bed_close(&scene->bed);
}

// Run one operation on a new pair.
static void run(struct scene *scene, enum op_kind kind, uint64_t length, struct op *op) {
	struct bed_pair pair = bed_pair_up(&scene->bed);

	*op = bed_op(&scene->bed, &pair, kind, OFFSET, length);
	op->view = scene->views[0];
	op->view.length = length;
	op->remote_key = scene->views[1].remote_key;
	bed_submit(&scene->bed, 0, op);
	bed_run(&scene->bed);
}

static void assert_refused(const struct scene *scene, const struct op *op) {
	uint8_t *theirs = scene->bed.memory[1] + OFFSET;
	char text[160], want[64];

	assert_int_equal(op->outcome, OP_FAILED);
	assert_int_equal(op->cause.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(op->cause.remote_key, scene->views[1].remote_key);
	assert_int_equal(op->cause.remote_address, (uintptr_t)theirs);
	op_cause_format(&op->cause, text, sizeof(text));
	snprintf(want, sizeof(want), " of a %s of ", op_kind_name(op->kind));
	assert_non_null(strstr(text, "REM_ACCESS_ERR"));
	assert_non_null(strstr(text, want));
}

static void memory_that_peers_may_read_refuses_all_that_would_change_it(void **state) {
	static const struct {
		enum op_kind kind;
		uint64_t length;
	} changes[] = {{OP_WRITE, LENGTH}, {OP_FETCH_ADD, 8}, {OP_COMPARE_SWAP, 8}};
	uint8_t before[LENGTH];
	struct scene scene;
	struct op op;

	(void)state;
	scene_open(&scene, MEMORY_PEER_READS);
	memcpy(before, scene.bed.memory[1] + OFFSET, LENGTH);
	for (size_t n = 0; n < COUNT_OF(changes); n++) {
		run(&scene, changes[n].kind, changes[n].length, &op);
		assert_refused(&scene, &op);
		assert_memory_equal(scene.bed.memory[1] + OFFSET, before, LENGTH);
		assert_int_equal(scene.bed.failed, n + 1);
		run(&scene, OP_READ, LENGTH, &op);
		assert_int_equal(op.outcome, OP_OK);
		assert_memory_equal(scene.bed.memory[0] + OFFSET, before, LENGTH);
		bed_fill(&scene.bed, 0, 3);
	}
	scene_close(&scene);
}

static void memory_that_peers_may_write_alone_refuses_their_reads(void **state) {
	struct scene scene;
	struct op op;

	(void)state;
	scene_open(&scene, MEMORY_PEER_WRITES);
	run(&scene, OP_READ, LENGTH, &op);
	assert_refused(&scene, &op);
	assert_memory_not_equal(scene.bed.memory[0] + OFFSET, scene.bed.memory[1] + OFFSET, LENGTH);
	run(&scene, OP_WRITE, LENGTH, &op);
	assert_int_equal(op.outcome, OP_OK);
	assert_memory_equal(scene.bed.memory[1] + OFFSET, scene.bed.memory[0] + OFFSET, LENGTH);
	scene_close(&scene);
}

static void key_of_a_range_ends_with_the_range(void **state) {
	static const int64_t outside[] = {-1, 1};
	struct scene scene;
	struct op op;

	(void)state;
	scene_open(&scene, MEMORY_PEER_READS);
	for (size_t n = 0; n < COUNT_OF(outside); n++) {
		struct bed_pair pair = bed_pair_up(&scene.bed);

		op = bed_op(&scene.bed, &pair, OP_READ, OFFSET, LENGTH);
		op.view = scene.views[0];
		op.remote_key = scene.views[1].remote_key;
		op.remote_address += (uint64_t)outside[n];
		bed_submit(&scene.bed, 0, &op);
		bed_run(&scene.bed);
		assert_int_equal(op.outcome, OP_FAILED);
		assert_int_equal(op.cause.status, IBV_WC_REM_ACCESS_ERR);
	}
	scene_close(&scene);
}

UNIT_GROUP(lane_access) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_peers_may_read_refuses_all_that_would_change_it),
		cmocka_unit_test(memory_that_peers_may_write_alone_refuses_their_reads),
		cmocka_unit_test(key_of_a_range_ends_with_the_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
