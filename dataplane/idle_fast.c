// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/idle.h>

#define CREDIT_BLOCKS_MAX 64 // savings are forgotten beyond so many C
#define COST_DECAY_SHIFT 3   // a wait counts for 1/8 of what is remembered
#define YIELD_SHARE 16	     // yields of one wait take at most C / 16

static uint64_t min_u64(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

static uint64_t since(uint64_t start_ns, uint64_t now_ns) {
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

static uint64_t candidate_ns(const struct idle *idle, uint32_t n) {
	return idle->config.block_ns * n / (IDLE_CANDIDATES - 1);
}

// The budget that would have been the cheapest for the last waits, the most recent counting most.
static uint64_t cheapest_ns(struct idle *idle, uint64_t length_ns) {
	uint32_t best = IDLE_CANDIDATES - 1;

	for (uint32_t n = IDLE_CANDIDATES; n-- > 0;) {
		uint64_t budget_ns = candidate_ns(idle, n);
		uint64_t price_ns =
			length_ns <= budget_ns ? length_ns : budget_ns + idle->config.block_ns;

		idle->costs_ns[n] += price_ns - (idle->costs_ns[n] >> COST_DECAY_SHIFT);
		if (idle->costs_ns[n] < idle->costs_ns[best])
			best = n;
	}
	return candidate_ns(idle, best);
}

// A budget b below C pays at worst b + C where the optimum is b, which is C - b more than twice
// the optimum: no more than what is in hand.
static void learn_budget(struct idle *idle, uint64_t length_ns, uint64_t paid_ns) {
	uint64_t block_ns = idle->config.block_ns;
	uint64_t allowed_ns = 2 * min_u64(length_ns, block_ns);
	uint64_t wish_ns = cheapest_ns(idle, length_ns);
	uint64_t least_ns;

	idle->credit_ns = since(paid_ns, idle->credit_ns + allowed_ns);
	idle->credit_ns = min_u64(idle->credit_ns, CREDIT_BLOCKS_MAX * block_ns);
	least_ns = since(idle->credit_ns, block_ns);
	idle->budget_ns = wish_ns > least_ns ? wish_ns : least_ns;
}

// Median and distance of the quartiles of the last waits.
static void learn_times(struct idle *idle, uint64_t length_ns) {
	uint64_t sorted[IDLE_TIMES];

	idle->times_ns[idle->time_count++ % IDLE_TIMES] = length_ns;
	// Once in half a window: the rest of the time this costs a store.
	if (idle->time_count < IDLE_TIMES || idle->time_count % (IDLE_TIMES / 2) != 0)
		return;
	for (uint32_t n = 0; n < IDLE_TIMES; n++) {
		uint32_t place = n;

		for (; place > 0 && sorted[place - 1] > idle->times_ns[n]; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = idle->times_ns[n];
	}
	idle->median_ns = sorted[IDLE_TIMES / 2];
	idle->iqr_ns = sorted[IDLE_TIMES * 3 / 4] - sorted[IDLE_TIMES / 4];
}

// How long the wait would have been, had it not had to wake up as well.
static uint64_t length_of(const struct idle *idle, uint64_t now_ns) {
	uint64_t length_ns = since(idle->start_ns, now_ns);

	if (idle->phase != IDLE_PHASE_BLOCKED)
		return length_ns;
	return length_ns - min_u64(idle->config.block_ns, since(idle->block_start_ns, now_ns));
}

static void end_wait(struct idle *idle, uint64_t now_ns) {
	uint64_t length_ns = length_of(idle, now_ns);
	uint64_t paid_ns = idle->spun_ns + idle->wait_blocks * idle->config.block_ns;

	idle->books.waits++;
	idle->books.paid_ns += paid_ns;
	idle->books.optimum_ns += min_u64(length_ns, idle->config.block_ns);
	if (idle->config.policy != IDLE_ADAPTIVE)
		return;
	learn_budget(idle, length_ns, paid_ns);
	learn_times(idle, length_ns);
}

static void begin_wait(struct idle *idle, uint64_t now_ns) {
	idle->phase = IDLE_PHASE_FRESH;
	idle->outstanding = false;
	idle->yields = 0;
	idle->wait_blocks = 0;
	idle->start_ns = now_ns;
	idle->spun_ns = 0;
	idle->sleep_ns = 0;
}

static struct idle_decision poll_on(void) {
	return (struct idle_decision){.action = IDLE_POLL};
}

static struct idle_decision wait_until(struct idle *idle, uint64_t now_ns, uint64_t until_ns) {
	if (idle->phase != IDLE_PHASE_BLOCKED) {
		idle->block_start_ns = now_ns;
		idle->wait_blocks++;
	}
	idle->phase = IDLE_PHASE_BLOCKED;
	idle->books.blocks++;
	return (struct idle_decision){.action = IDLE_WAIT, .until_ns = until_ns};
}

// The next step of a back-off that doubles from least_ns on.
static uint64_t backoff_ns(struct idle *idle, uint64_t least_ns) {
	if (idle->sleep_ns < least_ns)
		idle->sleep_ns = least_ns;
	else
		idle->sleep_ns *= 2;
	idle->sleep_ns = min_u64(idle->sleep_ns, IDLE_SLEEP_MAX_NS);
	return idle->sleep_ns;
}

static struct idle_decision block(struct idle *idle, const struct idle_found *found) {
	uint64_t until_ns = found->due_ns;

	// Nothing tells of completions: look again, less and less often.
	if (found->outstanding && !found->events) {
		uint64_t look_ns = found->now_ns + backoff_ns(idle, idle->config.block_ns);

		until_ns = min_u64(until_ns, look_ns);
		// The first is counted below. Deadlines, on the other hand, wake the optimum too.
		idle->wait_blocks += idle->phase == IDLE_PHASE_BLOCKED ? 1 : 0;
	}
	return wait_until(idle, found->now_ns, until_ns);
}

// Counted and timed: where nobody else wants the core, a yield is as dear as spinning.
static bool may_yield(struct idle *idle, uint64_t now_ns) {
	if (idle->yields == 0)
		idle->yield_start_ns = now_ns;
	return idle->yields < IDLE_YIELDS_MAX &&
	       since(idle->yield_start_ns, now_ns) < idle->config.block_ns / YIELD_SHARE;
}

// Completion times are narrow and long enough to sleep through most of one.
static bool foresees(const struct idle *idle, const struct idle_found *found) {
	return idle->config.foresees && idle->phase <= IDLE_PHASE_POLLING && found->outstanding &&
	       idle->time_count >= IDLE_TIMES && idle->iqr_ns < idle->config.block_ns &&
	       idle->median_ns > 2 * idle->config.block_ns;
}

// Sleeps to median - C - margin, armed, and spins from there to past the usual.
static struct idle_decision sleep_ahead(struct idle *idle, const struct idle_found *found) {
	uint64_t block_ns = idle->config.block_ns;
	uint64_t until_ns = idle->start_ns + idle->median_ns - block_ns - block_ns / 2;

	idle->phase = IDLE_PHASE_FORESEEN;
	idle->wait_blocks++;
	idle->foreseen_end_ns = idle->start_ns + idle->median_ns + idle->iqr_ns + block_ns;
	idle->books.blocks++;
	return (struct idle_decision){
		.action = IDLE_WAIT,
		.until_ns = min_u64(until_ns, found->due_ns),
	};
}

static struct idle_decision next_adaptive(struct idle *idle, const struct idle_found *found) {
	if (!found->outstanding)
		return wait_until(idle, found->now_ns, found->due_ns);
	if (foresees(idle, found))
		return sleep_ahead(idle, found);
	if (idle->phase == IDLE_PHASE_BLOCKED)
		return block(idle, found);
	if (idle->phase == IDLE_PHASE_FORESEEN)
		return found->now_ns < idle->foreseen_end_ns ? poll_on() : block(idle, found);
	idle->phase = IDLE_PHASE_POLLING;
	if (since(idle->start_ns, found->now_ns) < idle->budget_ns)
		return poll_on();
	if (!may_yield(idle, found->now_ns))
		return block(idle, found);
	idle->yields++;
	return (struct idle_decision){.action = IDLE_YIELD};
}

static struct idle_decision next_window(struct idle *idle, const struct idle_found *found) {
	uint64_t sleep_ns;

	idle->phase = IDLE_PHASE_POLLING;
	if (since(idle->start_ns, found->now_ns) < idle->config.window_ns)
		return (struct idle_decision){.action = IDLE_YIELD};
	sleep_ns = backoff_ns(idle, IDLE_WINDOW_SLEEP_NS);
	idle->books.blocks++;
	return (struct idle_decision){
		.action = IDLE_SLEEP,
		.until_ns = found->now_ns + sleep_ns,
	};
}

struct idle_decision idle_next(struct idle *idle, const struct idle_found *found) {
	struct idle_decision decision = poll_on();

	if (idle->last_action <= IDLE_YIELD)
		idle->spun_ns += since(idle->last_ns, found->now_ns);
	idle->last_ns = found->now_ns;
	if (found->progress) {
		if (idle->phase != IDLE_PHASE_FRESH && idle->outstanding)
			end_wait(idle, found->now_ns);
		begin_wait(idle, found->now_ns);
	} else {
		idle->outstanding |= found->outstanding;
		if (idle->config.policy == IDLE_ADAPTIVE)
			decision = next_adaptive(idle, found);
		else if (idle->config.policy == IDLE_EVENT)
			decision = wait_until(idle, found->now_ns, found->due_ns);
		else if (idle->config.policy == IDLE_WINDOW)
			decision = next_window(idle, found);
		else
			idle->phase = IDLE_PHASE_POLLING;
	}
	idle->last_action = decision.action;
	return decision;
}
