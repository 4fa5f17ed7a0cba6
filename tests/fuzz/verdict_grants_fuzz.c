// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes notices with grants. The number of stored grants is limited, and those of strangers are
// ignored.
#include <lib/must.h>
#include <support/fuzz.h>
#include <support/heap.h>
#include <verdict/grants.h>

#define MEMBERS 40
#define NOW_NS (1000 * RAS_NS_PER_SEC)

static bool wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	(void)at_ns;
	return true;
}

static void given(void *ctx, uint64_t id) {
	(void)ctx;
	must(id >= 1 && id <= MEMBERS);
}

static const struct grants_ops grants_ops = {.wake = wake, .given = given};

static void make_members(struct verdict_engine *engine) {
	for (uint64_t id = 1; id <= MEMBERS; id++) {
		const struct verdict_peer_update peer = {
			.id = id,
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_ALIVE,
			.host = "",
			.leaf = "",
		};

		must(verdict_peer_update(engine, NOW_NS, &peer) == 0);
	}
	verdict_self_update(engine, NOW_NS, &(struct verdict_self_update){.joined = true});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const struct ras_memory memory = HEAP_MEMORY(NULL);
	const struct verdict_config config = {.self = 1};
	const struct grants_config limits = {.self = 1, .rate_percent = 5, .out_percent = 33};
	struct verdict_engine *engine;
	struct grants *grants;
	uint32_t count = 0;

	must(verdict_engine_create(&config, &memory, &(struct verdict_ops){0}, NULL, &engine) == 0);
	make_members(engine);
	must(grants_create(engine, &limits, &memory, &grants_ops, NULL, &grants) == 0);
	(void)grants_receive(grants, NOW_NS, data, size);
	for (uint64_t id = 1; id <= MEMBERS; id++)
		count += grants_decide(grants, NOW_NS, id) == GRANT_GIVEN;
	// Twice the rate of two, and a third of all members for the grants that last longer.
	must(count <= 2 * 2 + MEMBERS / 3);
	grants_destroy(grants);
	verdict_engine_destroy(engine);
	return 0;
}
