// SPDX-License-Identifier: BSD-3-Clause
// Helpers shared by the payload tests: counted memory, random numbers, a part being built, one row
// of each kind.
#pragma once

#include <lib/wire.h>
#include <ras/payload.h>
#include <support/cmocka.h>

#include <stdlib.h>

// Memory with a limit, which must be released completely.
struct pool {
	size_t used_bytes;
	size_t limit_bytes;
};

static inline void *pool_allocate(void *ctx, size_t size) {
	struct pool *pool = ctx;

	if (size > pool->limit_bytes - pool->used_bytes)
		return NULL;
	pool->used_bytes += size;
	return calloc(1, size);
}

static inline void pool_release(void *ctx, void *memory, size_t size) {
	struct pool *pool = ctx;

	if (memory == NULL)
		return;
	assert_true(pool->used_bytes >= size);
	pool->used_bytes -= size;
	free(memory);
}

static struct pool pool;
static const struct ras_memory memory = {
	.allocate = pool_allocate, .release = pool_release, .ctx = &pool};

static inline int pool_fill(void **state) {
	(void)state;
	pool = (struct pool){.limit_bytes = SIZE_MAX};
	return 0;
}

static inline int pool_is_whole(void **state) {
	(void)state;
	return pool.used_bytes == 0 ? 0 : -1;
}

static uint64_t random_state;

static inline uint32_t random_below(uint32_t limit) {
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % limit;
}

static inline void shuffle(uint32_t *order, uint32_t count) {
	for (uint32_t n = 0; n < count; n++)
		order[n] = n;
	for (uint32_t n = count; n > 1; n--) {
		uint32_t other = random_below(n);
		uint32_t held = order[n - 1];

		order[n - 1] = order[other];
		order[other] = held;
	}
}

struct part {
	uint8_t bytes[2048];
	struct wire_writer writer;
	struct ras_collected_part collected;
};

static inline void part_begin(struct part *part, uint64_t node) {
	part->collected = (struct ras_collected_part){.node = node, .payload = part->bytes};
	wire_writer_init(&part->writer, part->bytes, sizeof(part->bytes));
}

static inline void part_end(struct part *part) {
	assert_int_equal(wire_writer_finish(&part->writer, &part->collected.size), 0);
}

// Sample rows of every kind, in their coded form.
static const struct ras_conn_row a_conn = {
	.peer = 7,
	.transport = RAS_TRANSPORT_ROCE,
	.samples = 3,
	.min_ns = 10,
	.mean_ns = 20,
	.max_ns = 40,
	.sent_bytes = 1000,
	.received_bytes = UINT64_MAX,
	.errors = 2,
	.retransmits = 5,
};
static const struct ras_comm_rank a_rank = {
	.rank = 1,
	.pid = 4242,
	.launched = 40,
	.started = 39,
	.completed = 38,
	.ops = {1, 2, 3, 4, UINT64_MAX},
	.pair_launched = 9,
	.pair_completed = 7,
	.idle_ms = 12000,
	.worked_ms = 3,
	.exited_ms = 500,
	.exit_value = -9,
	.exit_cause = 2,
	.process_state = 7,
	.init_state = 7,
	.async_error = 3,
	.flags = RAS_RANK_ABORT | RAS_RANK_EXITED,
	.knows = RAS_RANK_KNOWS_STARTED | RAS_RANK_KNOWS_COMPLETED,
	.cuda_device = 1,
	.nvml_device = -1,
	.wait_count = 3,
	.waits = {10, 0, 254},
	.recent = {.first = 38, .count = 3, .index = {0, 1, 0}},
	.doing =
		{.activity = 2,
		 .unread = 9,
		 .span_ms = 10000,
		 .amount = 4711,
		 .name = "cc1plus",
		 .call = {.number = 146, .is_elsewhere = true, .peer = 3, .tag = -1}},
};
static const struct ras_comm_missing a_missing = {
	.rank = 2,
	.pid = 17,
	.node = 99,
	.family = 4,
	.address = {127, 0, 2, 1},
	.cuda_device = 0,
	.nvml_device = 3,
};
static const struct ras_comm a_comm = {
	.id = {0x2dca, 0x115b, 0xead9},
	.size = 4,
	.config = 77,
	.job = "slurm:1234.0",
	.signature_count = 2,
	.signatures =
		{{.count = 1u << 20, .root = RAS_COMM_ROOT_NONE, .kind = 4, .datatype = 7},
		 {.count = UINT64_MAX, .root = INT32_MAX - 1, .kind = 0, .datatype = 255}},
	.recent = {.first = 36, .count = 2, .index = {1, 1}},
	.rank_count = 1,
	.ranks = &a_rank,
	.missing_count = 1,
	.missing = &a_missing,
};
static const struct ras_path_row a_path = {
	.peer = 5,
	.device = "mlx5_0",
	.count = 100,
	.lost = 1,
	.min_ns = 1200,
	.median_ns = 1500,
	.mad_ns = 100,
	.p99_ns = 9000,
	.peer_device = "mlx5_1",
	.baseline_ns = 1400,
	.for_s = 300,
	.lost_permille = 12,
	.seen = 3,
	.steady = true,
};
