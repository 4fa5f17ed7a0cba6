// SPDX-License-Identifier: BSD-3-Clause
// One operation of more than 4 GiB moves through the software device. It takes a minute of
// processor time.
#include "dataplane/lane/lane_bed.h"

#include <support/cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#define BITS_32 (UINT64_C(1) << 32)

// Address space of more than 4 GiB on little memory: its ends have bytes of their own, and all
// between them is one piece, mapped again and again.
#define PIECE (UINT64_C(4) << 20)
#define PIECES (BITS_32 / PIECE + 2)
#define VAST (PIECES * PIECE)

static uint8_t *vast_map(void) {
	int fd = memfd_create("vast", MFD_CLOEXEC);
	uint8_t *vast =
		mmap(NULL, VAST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(fd >= 0 && vast != MAP_FAILED);
	assert_int_equal(ftruncate(fd, 3 * PIECE), 0);
	for (uint64_t n = 0; n < PIECES; n++) {
		off_t place = (off_t)(n == 0 ? 0 : n < PIECES - 1 ? PIECE : 2 * PIECE);
		uint8_t *at = vast + n * PIECE;

		assert_ptr_equal(
			mmap(at, PIECE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, place),
			at
		);
	}
	close(fd);
	return vast;
}

static void paint_ends(uint8_t *vast, uint8_t seed) {
	for (uint64_t at = 0; at < PIECE; at++) {
		vast[at] = (uint8_t)(seed + at * 7 + (at >> 9));
		vast[VAST - 1 - at] = (uint8_t)(seed + at * 5 + (at >> 7));
	}
}

struct vast {
	uint8_t *bytes;
	struct ibv_mr *mr;
};

static void vast_open(struct vast *vast, const struct bed *bed, int side) {
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	vast->bytes = vast_map();
	assert_int_equal(
		fake_verbs_calls.reg_mr(
			device_pd(bed->devices[side]), vast->bytes, VAST, access, &vast->mr
		),
		0
	);
}

static void vast_close(struct vast *vast) {
	assert_int_equal(fake_verbs_calls.dereg_mr(vast->mr), 0);
	munmap(vast->bytes, VAST);
}

// All but the first byte and the last one.
static void vast_move(
	struct bed *bed, const struct bed_pair *pair, enum op_kind kind, const struct vast sides[2]
) {
	uint8_t *from = sides[kind == OP_READ].bytes, *to = sides[kind != OP_READ].bytes;
	struct op op = bed_op(bed, pair, kind, 0, VAST - 2);

	paint_ends(from, 3);
	paint_ends(to, 103);
	op.view.address = op.view.wire_address = (uintptr_t)sides[0].bytes + 1;
	op.view.local_key = sides[0].mr->lkey;
	op.remote_address = (uintptr_t)sides[1].bytes + 1;
	op.remote_key = sides[1].mr->rkey;
	bed_submit(bed, 0, &op);
	bed_run(bed);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, VAST - 2);
	assert_memory_equal(to + 1, from + 1, PIECE - 1);
	assert_memory_equal(to + VAST - PIECE, from + VAST - PIECE, PIECE - 1);
	assert_int_not_equal(to[0], from[0]);
	assert_int_not_equal(to[VAST - 1], from[VAST - 1]);
}

static void both_ends_of_more_than_four_gibibytes_arrive(void **state) {
	const struct bed_config config = {.pair_max = 1, .depth = 8, .op_max = 4};
	struct vast sides[2];
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	bed_open(&bed, &config);
	pair = bed_pair_up(&bed);
	vast_open(&sides[0], &bed, 0);
	vast_open(&sides[1], &bed, 1);
	vast_move(&bed, &pair, OP_WRITE, sides);
	vast_move(&bed, &pair, OP_READ, sides);
	vast_close(&sides[0]);
	vast_close(&sides[1]);
	bed_close(&bed);
}

UNIT_GROUP(lane_vast) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_of_more_than_four_gibibytes_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
