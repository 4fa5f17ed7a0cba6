// SPDX-License-Identifier: BSD-3-Clause
// Decides when a worker polls on, yields or sleeps (adaptive busy polling).
#include <dataplane/idle.h>

#define CREDIT_BLOCKS_MAX 64 // savings beyond this many C are forgotten
#define COST_DECAY_SHIFT 3   // each wait has a weight of 1/8 in the average
#define YIELD_SHARE 32	     // yields of one wait take at most C / 32
// Learning of the lead. If an operation ended while the thread slept, the lead grows by C / 4.
// Otherwise it shrinks by C / 32. In equilibrium one of nine operations is slept through. An end
// missed by more than the maximum lead does not count.
#define LEAD_UP_SHARE 4
#define LEAD_DOWN_SHARE 32
#define LEAD_BLOCKS_MAX 3

static uint64_t min_u64(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

static uint64_t elapsed_since(uint64_t start_ns, uint64_t now_ns) {
	return now_ns > start_ns ? now_ns - start_ns : 0;
}

static uint64_t candidate_ns(const struct idle *idle, uint32_t n) {
	return idle->config.block_ns * n / (IDLE_CANDIDATES - 1);
}

// Choose the budget. A budget b below C costs at worst b + C when the optimum is b. That is C - b
// more than twice the optimum, so C - b must not exceed the credit.
static void learn_budget(struct idle *idle, uint64_t length_ns, uint64_t paid_ns) {
	uint64_t block_ns = idle->config.block_ns;
	uint64_t allowed_ns = 2 * min_u64(length_ns, block_ns);
	uint32_t best = IDLE_CANDIDATES - 1;
	uint64_t wish_ns, least_ns;

	// Find the budget that would have been cheapest for past waits; recent waits have more
	// weight.
	for (uint32_t n = IDLE_CANDIDATES; n-- > 0;) {
		uint64_t budget_ns = candidate_ns(idle, n);
		uint64_t price_ns = length_ns <= budget_ns ? length_ns : budget_ns + block_ns;

		idle->costs_ns[n] += price_ns - (idle->costs_ns[n] >> COST_DECAY_SHIFT);
		if (idle->costs_ns[n] < idle->costs_ns[best])
			best = n;
	}
	wish_ns = candidate_ns(idle, best);
	idle->credit_ns = elapsed_since(paid_ns, idle->credit_ns + allowed_ns);
	idle->credit_ns = min_u64(idle->credit_ns, CREDIT_BLOCKS_MAX * block_ns);
	least_ns = elapsed_since(idle->credit_ns, block_ns);
	idle->budget_ns = wish_ns > least_ns ? wish_ns : least_ns;
}

// Learn the median of the latest durations, and as spread twice its distance from the lower
// quartile. The upper quartile is not used: operations may be late for other reasons, including our
// own sleep.
static void learn_time(struct idle *idle, uint64_t took_ns) {
	uint64_t sorted[IDLE_DURATIONS];

	idle->times_ns[idle->time_count++ % IDLE_DURATIONS] = took_ns;
	// Recompute once per half window; otherwise this costs one store.
	if (idle->time_count < IDLE_DURATIONS || idle->time_count % (IDLE_DURATIONS / 2) != 0)
		return;
	for (uint32_t n = 0; n < IDLE_DURATIONS; n++) {
		uint32_t place = n;

		for (; place > 0 && sorted[place - 1] > idle->times_ns[n]; place--)
			sorted[place] = sorted[place - 1];
		sorted[place] = idle->times_ns[n];
	}
	idle->median_ns = sorted[IDLE_DURATIONS / 2];
	idle->spread_ns = 2 * (idle->median_ns - sorted[IDLE_DURATIONS / 4]);
	// Measured durations are exact if the end was met, and accurate to C if it was slept
	// through; hence the hysteresis.
	idle->narrow = idle->spread_ns < idle->config.block_ns * (idle->narrow ? 2 : 1);
}

// Return true if the latest wait ended in sleep.
static bool wait_ended_asleep(const struct idle *idle) {
	return idle->last_action >= IDLE_SLEEP;
}

// Return the time when the oldest operation in flight usually ends.
static uint64_t predicted_end_ns(const struct idle *idle) {
	return idle->begun_ns[idle->begun_tail % IDLE_STARTS_MAX] + idle->median_ns;
}

static void learn_lead(struct idle *idle, uint64_t now_ns) {
	uint64_t block_ns = idle->config.block_ns;
	uint64_t most_ns = LEAD_BLOCKS_MAX * block_ns;
	bool tells = idle->phase == IDLE_PHASE_PREDICTED || idle->kept_awake;

	idle->kept_awake = false;
	if (!tells || elapsed_since(predicted_end_ns(idle), now_ns) > most_ns)
		return;
	// A lead that leaves nothing to sleep shrinks too; otherwise sleeping would never be tried
	// again.
	idle->lead_ns = wait_ended_asleep(idle) ? idle->lead_ns + block_ns / LEAD_UP_SHARE
						: idle->lead_ns - block_ns / LEAD_DOWN_SHARE;
	if (idle->lead_ns < block_ns)
		idle->lead_ns = block_ns;
	idle->lead_ns = min_u64(idle->lead_ns, most_ns);
}

static void end_operations(struct idle *idle, const struct idle_step_findings *found) {
	uint64_t late_ns = 0;

	// After sleep, the end is noticed about one wake-up late.
	if (wait_ended_asleep(idle))
		late_ns =
			min_u64(idle->config.block_ns, elapsed_since(idle->last_ns, found->now_ns));
	learn_lead(idle, found->now_ns);
	for (uint32_t n = 0; n < found->ended; n++) {
		uint64_t begun_ns;

		if (idle->begun_tail == idle->begun_head) {
			idle->starts_lost -= idle->starts_lost > 0;
			continue;
		}
		begun_ns = idle->begun_ns[idle->begun_tail++ % IDLE_STARTS_MAX];
		if (idle->config.policy == IDLE_ADAPTIVE)
			learn_time(idle, elapsed_since(begun_ns + late_ns, found->now_ns));
	}
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

static struct idle_decision decide_poll(void) {
	return (struct idle_decision){.action = IDLE_POLL};
}

static struct idle_decision decide_wait(struct idle *idle, uint64_t now_ns, uint64_t until_ns) {
	if (idle->phase != IDLE_PHASE_BLOCKED) {
		idle->block_start_ns = now_ns;
		idle->wait_blocks++;
	}
	idle->phase = IDLE_PHASE_BLOCKED;
	idle->books.blocks++;
	return (struct idle_decision){.action = IDLE_WAIT, .until_ns = until_ns};
}

// Return the next step of a back-off that starts at least_ns and doubles.
static uint64_t backoff_ns(struct idle *idle, uint64_t least_ns) {
	if (idle->sleep_ns < least_ns)
		idle->sleep_ns = least_ns;
	else
		idle->sleep_ns *= 2;
	idle->sleep_ns = min_u64(idle->sleep_ns, IDLE_SLEEP_MAX_NS);
	return idle->sleep_ns;
}

static struct idle_decision
decide_block(struct idle *idle, const struct idle_step_findings *found) {
	uint64_t until_ns = found->due_ns;

	// Completions raise no events: poll again at growing intervals.
	if (found->outstanding && !found->events) {
		uint64_t look_ns = found->now_ns + backoff_ns(idle, idle->config.block_ns);

		until_ns = min_u64(until_ns, look_ns);
		// The first block is counted below. Deadlines are not counted, because they also
		// wake the optimum.
		idle->wait_blocks += idle->phase == IDLE_PHASE_BLOCKED ? 1 : 0;
	}
	return decide_wait(idle, found->now_ns, until_ns);
}

// Sleep, armed, until shortly before the usual end of the oldest operation, then poll until past
// it. Returns false if the operation is already later than that.
static bool decide_predicted(
	struct idle *idle,
	const struct idle_step_findings *found,
	struct idle_decision *ret_decision
) {
	uint64_t block_ns = idle->config.block_ns;
	uint64_t usual_ns = predicted_end_ns(idle);

	if (found->now_ns >= usual_ns + idle->spread_ns + block_ns)
		return false;
	*ret_decision = decide_poll();
	// The remaining sleep would be shorter than the cost of a block.
	if (elapsed_since(found->now_ns, usual_ns) <= idle->lead_ns + block_ns) {
		if (elapsed_since(found->now_ns, usual_ns) > 2 * block_ns)
			idle->kept_awake = true;
		if (idle->phase == IDLE_PHASE_FRESH)
			idle->phase = IDLE_PHASE_POLLING;
		return true;
	}
	idle->wait_blocks += idle->phase == IDLE_PHASE_PREDICTED ? 0 : 1;
	idle->phase = IDLE_PHASE_PREDICTED;
	idle->books.blocks++;
	ret_decision->action = IDLE_WAIT;
	ret_decision->until_ns = min_u64(usual_ns - idle->lead_ns, found->due_ns);
	return true;
}

static struct idle_decision
next_adaptive(struct idle *idle, const struct idle_step_findings *found) {
	bool predictable = idle->config.foresees && idle->narrow &&
			   idle->begun_tail != idle->begun_head && idle->starts_lost == 0;
	struct idle_decision decision;

	if (!found->outstanding)
		return decide_wait(idle, found->now_ns, found->due_ns);
	if (predictable && decide_predicted(idle, found, &decision))
		return decision;
	if (idle->phase >= IDLE_PHASE_PREDICTED)
		return decide_block(idle, found);
	idle->phase = IDLE_PHASE_POLLING;
	if (elapsed_since(idle->start_ns, found->now_ns) < idle->budget_ns)
		return decide_poll();

	// The number and time of yields are limited, because a yield without other runnable threads
	// costs as much as spinning.
	if (idle->yields == 0)
		idle->yield_start_ns = found->now_ns;
	if (idle->yields >= IDLE_YIELDS_MAX || elapsed_since(idle->yield_start_ns, found->now_ns) >=
						       idle->config.block_ns / YIELD_SHARE)
		return decide_block(idle, found);
	idle->yields++;
	return (struct idle_decision){.action = IDLE_YIELD};
}

static struct idle_decision next_window(struct idle *idle, const struct idle_step_findings *found) {
	uint64_t sleep_ns;

	if (!found->outstanding)
		return decide_wait(idle, found->now_ns, found->due_ns);
	if (idle->phase == IDLE_PHASE_FRESH)
		idle->yield_start_ns = found->now_ns;
	idle->phase = IDLE_PHASE_POLLING;
	if (elapsed_since(idle->yield_start_ns, found->now_ns) < idle->config.window_ns)
		return (struct idle_decision){.action = IDLE_YIELD};
	sleep_ns = backoff_ns(idle, IDLE_WINDOW_SLEEP_NS);
	idle->books.blocks++;
	return (struct idle_decision){
		.action = IDLE_SLEEP,
		.until_ns = found->now_ns + sleep_ns,
	};
}

// Return the price of the latest step, limited to C, or for yields to their share of C. A longer
// step means that another thread had the processor.
static uint64_t price_ns(const struct idle *idle, uint64_t now_ns) {
	uint64_t most_ns = idle->config.block_ns;

	if (idle->last_action == IDLE_YIELD && idle->config.policy == IDLE_ADAPTIVE)
		most_ns /= YIELD_SHARE;
	return min_u64(elapsed_since(idle->last_ns, now_ns), most_ns);
}

// noinline keeps the step without progress short.
static __attribute__((noinline)) void
note_progress(struct idle *idle, const struct idle_step_findings *found) {
	uint64_t block_ns = idle->config.block_ns, length_ns, paid_ns;

	if (found->ended > 0)
		end_operations(idle, found);
	for (uint32_t n = 0; n < found->begun; n++) {
		if (idle->starts_lost > 0 || idle->begun_head - idle->begun_tail == IDLE_STARTS_MAX)
			idle->starts_lost++;
		else
			idle->begun_ns[idle->begun_head++ % IDLE_STARTS_MAX] = found->now_ns;
	}
	// Without operations in flight forget all starts, which also corrects counting errors.
	if (!found->outstanding) {
		idle->begun_tail = idle->begun_head;
		idle->starts_lost = 0;
	}
	if (idle->phase != IDLE_PHASE_FRESH && idle->outstanding) {
		length_ns = elapsed_since(idle->start_ns, found->now_ns);
		paid_ns = idle->spun_ns + idle->wait_blocks * block_ns;
		// The length does not include the cost of waking up.
		if (idle->phase == IDLE_PHASE_BLOCKED)
			length_ns -=
				min_u64(block_ns,
					elapsed_since(idle->block_start_ns, found->now_ns));
		idle->books.waits++;
		idle->books.paid_ns += paid_ns;
		idle->books.optimum_ns += min_u64(length_ns, block_ns);
		if (idle->config.policy == IDLE_ADAPTIVE)
			learn_budget(idle, length_ns, paid_ns);
	}
	begin_wait(idle, found->now_ns);
}

struct idle_decision idle_decide(struct idle *idle, const struct idle_step_findings *found) {
	struct idle_decision decision = decide_poll();

	if (idle->last_action <= IDLE_YIELD)
		idle->spun_ns += price_ns(idle, found->now_ns);
	if (found->progress) {
		note_progress(idle, found);
	} else {
		idle->outstanding |= found->outstanding;
		if (idle->config.policy == IDLE_ADAPTIVE)
			decision = next_adaptive(idle, found);
		else if (idle->config.policy == IDLE_EVENT)
			decision = decide_block(idle, found);
		else if (idle->config.policy == IDLE_WINDOW)
			decision = next_window(idle, found);
		else
			idle->phase = IDLE_PHASE_POLLING;
	}
	idle->last_ns = found->now_ns;
	idle->last_action = decision.action;
	return decision;
}

void idle_set_config(struct idle *idle, const struct idle_config *config) {
	uint64_t block_ns = idle->config.block_ns;

	idle->config = *config;
	idle->config.block_ns = block_ns;
	idle->budget_ns = block_ns;
	idle->credit_ns = 0;
	begin_wait(idle, idle->last_ns);
}
