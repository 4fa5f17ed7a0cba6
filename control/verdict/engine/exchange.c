// SPDX-License-Identifier: BSD-3-Clause
// Decides when own observations are published.
//
// An own path is published when it turns bad or its evidence changes, and repeatedly while it is
// bad. After it clears it is published a few times, since a notice may be lost. A good path is
// published once each time others start to report its end bad. Before each report the agent waits
// for a random moment. If enough others report meanwhile, it stays silent.
#include "exchange_parts.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <errno.h>

// NOLINTNEXTLINE(readability-function-size): usual parameters of an instance, and its seed
int observation_exchange_create(
	struct verdict_engine *engine,
	uint64_t self,
	uint64_t random_seed,
	const struct ras_memory *memory,
	const struct observation_exchange_ops *ops,
	void *ops_ctx,
	struct observation_exchange **ret_exchange
) {
	struct observation_exchange *exchange = memory->allocate(memory->ctx, sizeof(*exchange));

	if (exchange == NULL)
		return -ENOMEM;
	exchange->engine = engine;
	exchange->self = self;
	exchange->random = random_seed;
	exchange->memory = *memory;
	exchange->ops = *ops;
	exchange->ops_ctx = ops_ctx;
	exchange->next_ns = RAS_NEVER;
	exchange->credit = OBSERVATION_BUDGET * UINT64_C(1000);
	*ret_exchange = exchange;
	return 0;
}

struct observation_exchange *observation_exchange_destroy(struct observation_exchange *exchange) {
	struct ras_memory memory;

	if (exchange == NULL)
		return NULL;
	memory = exchange->memory;
	array_release(&memory, exchange->paths, exchange->path_capacity, sizeof(*exchange->paths));
	array_release(
		&memory, exchange->buckets, exchange->bucket_count, sizeof(*exchange->buckets)
	);
	memory.release(memory.ctx, exchange, sizeof(*exchange));
	return NULL;
}

const struct observation_exchange_counters *
observation_exchange_counters(const struct observation_exchange *exchange) {
	return &exchange->counters;
}

uint64_t exchange_random_below(struct observation_exchange *exchange, uint64_t below) {
	return splitmix_next(&exchange->random) % below;
}

void exchange_wake(struct observation_exchange *exchange, uint64_t at_ns) {
	if (at_ns >= exchange->next_ns)
		return;
	exchange->next_ns = at_ns;
	exchange->ops.wake(exchange->ops_ctx, at_ns);
}

int observation_exchange_update(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	const struct observation *observation
) {
	struct own_path *path = own_path_find(exchange, observation);
	int err;

	must(observation->observer == exchange->self);
	err = verdict_observation(exchange->engine, now_ns, observation);
	// -ENOSPC: the engine has as many fresher observations of others. Another agent may still
	// lack this one.
	if (err != 0 && err != -ENOSPC)
		return err;
	if (path == NULL) {
		err = own_path_add(exchange, observation, &path);
		if (err != 0)
			return err;
	}
	path->observation = *observation;
	path->seen_ns =
		now_ns - (now_ns > observation->age_ms * MS ? observation->age_ms * MS : now_ns);
	own_path_schedule(exchange, path, now_ns);
	return 0;
}

int observation_exchange_receive(
	struct observation_exchange *exchange,
	uint64_t now_ns,
	uint64_t origin,
	uint64_t number,
	const void *bytes,
	size_t size
) {
	struct wire_reader reader;
	struct told told;
	int err;

	exchange_budget_window(exchange, now_ns);
	wire_reader_init(&reader, bytes, size);
	while ((err = notice_item_get(&reader, &told)) == 0) {
		bool observation = told.kind == TOLD_OBSERVATION;

		if ((observation ? told.observation.observer : told.statement.subject) != origin ||
		    origin == exchange->self) {
			exchange->counters.heard_forged++;
			continue;
		}
		exchange->counters.heard++;
		exchange->heard_now++;
		told.observation.number = told.statement.number = number;
		if (!observation)
			(void)verdict_statement(exchange->engine, now_ns, &told.statement);
		else if (verdict_observation(exchange->engine, now_ns, &told.observation) == 0)
			own_paths_schedule(exchange, &told.observation, now_ns);
	}
	if (err == -ENODATA)
		return 0;
	exchange->counters.heard_bad++;
	return -EBADMSG;
}

void observation_exchange_tick(struct observation_exchange *exchange, uint64_t now_ns) {
	exchange->next_ns = RAS_NEVER;
	exchange_tell(exchange, now_ns);
	own_paths_expire(exchange, now_ns);
	for (uint32_t n = 0; n < exchange->own_statement_count; n++)
		exchange_wake(exchange, exchange->own_statements[n].due_ns);
	for (uint32_t n = 0; n < exchange->path_count; n++)
		exchange_wake(exchange, exchange->paths[n].due_ns);
}
