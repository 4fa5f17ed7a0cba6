// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations on GPU memory with a fake libcuda. The registry registers it in each possible
// way, and only devices move its bytes. FAKE_CUDA is the path of the library.
#include "dataplane/lane/lane_bed.h"
#include "dataplane/memory/cuda_bed.h"
#include "memory/memory_impl.h"

#include <support/cases.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define SIDE_BYTES (4 * MIB) // size of the memory of each side
#define OFFSET 100	     // offset of a range within that memory
#define ACCESS (MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_LOCAL_WRITES)

static const struct bed_config usual = {
	.pair_max = 8,
	.depth = 8,
	.op_max = 64,
	.message_max = 65536,
};

// Kind of memory of one side.
enum kind {
	PLAIN, // memory unknown to CUDA
	DEVICE,
	POOL,
	HOST,
	MANAGED,
	KINDS,
};

struct side {
	enum kind kind;
	uint8_t *bytes; // SIDE_BYTES bytes
	struct memory_registry *registry;
	struct memory_view view;
};

struct scene {
	struct bed bed;
	struct side sides[2];
};

static uint8_t *allocate(enum kind kind, int side) {
	static const enum fake_cuda_kind kinds[] = {
		[DEVICE] = FAKE_CUDA_DEVICE,
		[POOL] = FAKE_CUDA_POOL,
		[HOST] = FAKE_CUDA_HOST,
		[MANAGED] = FAKE_CUDA_MANAGED,
	};

	if (kind == PLAIN)
		return aligned_alloc(4096, SIDE_BYTES);
	return fake_cuda->allocate(kinds[kind], side, (size_t)side * SIDE_BYTES, SIDE_BYTES);
}

static void side_open(struct scene *scene, int n, enum kind kind) {
	struct side *side = &scene->sides[n];
	const struct memory_config config = {
		.device = scene->bed.devices[n],
		.clock = &scene->bed.clock,
		.cuda = cuda,
		.modules_path = modules,
	};

	side->kind = kind;
	side->bytes = allocate(kind, n);
	assert_non_null(side->bytes);
	for (size_t at = 0; at < SIDE_BYTES; at++)
		side->bytes[at] = (uint8_t)((size_t)n * 77 + at * 7 + (at >> 8));
	assert_int_equal(memory_registry_create(&config, &side->registry), 0);
}

static void scene_open(struct scene *scene, enum kind here, enum kind there) {
	fake_cuda->reset();
	modules_are("nvidia 1 0 - Live 0x0\n");
	bed_open(&scene->bed, &usual);
	side_open(scene, 0, here);
	side_open(scene, 1, there);
}

static void scene_close(struct scene *scene) {
	bed_close(&scene->bed);
	for (int n = 0; n < 2; n++) {
		if (scene->sides[n].kind == PLAIN)
			free(scene->sides[n].bytes);
	}
}

static void take_view(struct side *side, uint64_t length) {
	const struct memory_request request = {
		.address = (uintptr_t)side->bytes + OFFSET,
		.length = length,
		.access = ACCESS,
	};
	char reason[MEMORY_REASON_MAX + 1];

	if (memory_view_get(side->registry, &request, reason, &side->view) != 0)
		fail_msg("%s", reason);
}

// The processor must not touch GPU memory. Remove or restore its access to that memory.
static void shield(const struct scene *scene, int protection) {
	for (int n = 0; n < 2; n++) {
		const struct side *side = &scene->sides[n];

		if (side->kind == DEVICE || side->kind == POOL)
			assert_int_equal(mprotect(side->bytes, SIDE_BYTES, protection), 0);
	}
}

static struct op
move_op(struct scene *scene, const struct bed_pair *pair, enum op_kind kind, uint64_t length) {
	struct op op = bed_op(&scene->bed, pair, kind, 0, length);

	op.view = scene->sides[0].view;
	op.remote_address = scene->sides[1].view.wire_address;
	op.remote_key = scene->sides[1].view.remote_key;
	return op;
}

// Run an operation that must succeed. Check that the requested bytes were moved and that the bytes
// around them are unchanged.
static void move(struct scene *scene, enum op_kind kind, uint64_t length, bool shielded) {
	const struct side *from = &scene->sides[kind == OP_READ],
			  *to = &scene->sides[kind != OP_READ];
	struct bed_pair pair = bed_pair_up(&scene->bed);
	uint8_t before[OFFSET], behind[OFFSET];
	struct op op;

	for (int n = 0; n < 2; n++)
		take_view(&scene->sides[n], length);
	memset(to->bytes + OFFSET, 0, length);
	memcpy(before, to->bytes, OFFSET);
	memcpy(behind, to->bytes + OFFSET + length, OFFSET);
	op = move_op(scene, &pair, kind, length);
	if (shielded)
		shield(scene, PROT_NONE);
	bed_submit(&scene->bed, 0, &op);
	bed_run(&scene->bed);
	shield(scene, PROT_READ | PROT_WRITE);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, length);
	assert_memory_equal(to->bytes + OFFSET, from->bytes + OFFSET, length);
	assert_memory_equal(to->bytes, before, OFFSET);
	assert_memory_equal(to->bytes + OFFSET + length, behind, OFFSET);
	for (int n = 0; n < 2; n++)
		memory_view_put(&scene->sides[n].view);
}

static void destroy_registries(struct scene *scene) {
	for (int n = 0; n < 2; n++)
		assert_null(memory_registry_destroy(scene->sides[n].registry));
}

// Small enough for inline data, one message, several messages.
static const uint64_t lengths[] = {32, 40001, 3 * MIB + 1};

static void bytes_go_between_memory_of_all_kinds_untouched_by_the_processor(void **state) {
	struct scene scene;

	(void)state;
	for (int n = 0; n < KINDS * KINDS; n++) {
		scene_open(&scene, (enum kind)(n / KINDS), (enum kind)(n % KINDS));
		for (size_t l = 0; l < COUNT_OF(lengths); l++) {
			move(&scene, OP_WRITE, lengths[l], true);
			move(&scene, OP_READ, lengths[l], true);
		}
		destroy_registries(&scene);
		scene_close(&scene);
	}
}

// Ways to register the memory. In each row the ways before it fail.
static const struct {
	int range_error, export_error;
	const char *modules;
	uint64_t registered_bytes;
	bool dmabuf; // false: the device uses the process's virtual address
} ways[] = {
	{0, 0, "", SIDE_BYTES, true},
	{1, 0, "", MIB, true},
	{0, 801, "nvidia_peermem 16384 0 - Live 0x0\n", MIB, false},
};

static void is_registered_as(struct side *side, uint64_t bytes) {
	take_view(side, MIB);
	assert_false(side->view.host);
	assert_int_equal(side->view.region->length, bytes);
	memory_view_put(&side->view);
}

static void bytes_arrive_by_whichever_way_the_memory_was_registered(void **state) {
	struct scene scene;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(ways); n++) {
		scene_open(&scene, DEVICE, DEVICE);
		fake_cuda->range_error = ways[n].range_error;
		fake_cuda->export_error = ways[n].export_error;
		modules_are(ways[n].modules);
		is_registered_as(&scene.sides[0], ways[n].registered_bytes);
		is_registered_as(&scene.sides[1], ways[n].registered_bytes);
		for (size_t l = 0; l < COUNT_OF(lengths); l++) {
			move(&scene, OP_WRITE, lengths[l], ways[n].dmabuf);
			move(&scene, OP_READ, lengths[l], ways[n].dmabuf);
		}
		assert_int_equal(fake_verbs_calls_made(FAKE_REG_DMABUF_MR) > 0, ways[n].dmabuf);
		destroy_registries(&scene);
		scene_close(&scene);
	}
}

// The owner releases the memory while a read into it is in flight. The registration must last until
// the read completed or was cut off. The fake device reports a key that was removed too early.
static void registration_stays_while_a_device_may_write_there(void **state) {
	struct scene scene;

	(void)state;
	for (int cut_off = 0; cut_off < 2; cut_off++) {
		struct bed_pair pair;
		struct op op;

		scene_open(&scene, DEVICE, PLAIN);
		scene.bed.fakes[0]->never_flushes = cut_off != 0;
		pair = bed_pair_up(&scene.bed);
		take_view(&scene.sides[0], MIB);
		take_view(&scene.sides[1], MIB);
		op = move_op(&scene, &pair, OP_READ, MIB);
		fake_qp_hold(pair.qps[0]);
		bed_submit(&scene.bed, 0, &op);
		bed_step(&scene.bed);
		memory_view_put(&scene.sides[0].view);
		assert_int_equal(memory_deregister_dead(scene.sides[0].registry), 0);
		assert_int_equal(memory_counts(scene.sides[0].registry).regions, 1);
		if (cut_off)
			lane_fail(
				scene.bed.lanes[0], pair.slots[0], pair.generations[0], -EHOSTDOWN
			);
		else
			fake_qp_let_go(pair.qps[0], UINT32_MAX);
		bed_run(&scene.bed);
		assert_int_equal(op.outcome, cut_off ? OP_FLUSHED : OP_OK);
		assert_int_equal(scene.bed.stuck, cut_off);
		assert_int_equal(memory_deregister_dead(scene.sides[0].registry), 0);
		assert_int_equal(memory_counts(scene.sides[0].registry).regions, 0);
		memory_view_put(&scene.sides[1].view);
		destroy_registries(&scene);
		scene_close(&scene);
	}
}

UNIT_GROUP(lane_cuda) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_go_between_memory_of_all_kinds_untouched_by_the_processor),
		cmocka_unit_test(bytes_arrive_by_whichever_way_the_memory_was_registered),
		cmocka_unit_test(registration_stays_while_a_device_may_write_there),
	};

	return cmocka_run_group_tests(tests, open_library, close_library);
}
