// SPDX-License-Identifier: BSD-3-Clause
// Mean waits and shortages, from the totals that the kernel counts.
#include "fabric/waits.h"

// A shorter wait is the usual cost of a wake-up. Baselines contain this cost.
#define WAIT_NOTICED_NS (100 * RAS_NS_PER_MS / 1000)
// A thread that runs this many times longer than it waits meets few probes while it waits.
#define RUNS_MOSTLY_TIMES 20
// A sample may need two wake-ups, and one wait may be longer than the mean.
#define SAMPLE_TURNS 2
#define RESPONDER_KEEP_NS (10 * RAS_NS_PER_SEC) // longest use of a responder's mean wait
#define SHORT_PERMILLE 100 // share of an interval from which a thread counts as waiting
#define SHORT_BEGIN 5	   // intervals of the last eight that begin a shortage
#define SHORT_END 1	   // intervals of the last eight that may remain when it ends
#define SHORT_INTERVALS 8

// Return the mean wait of one wake-up between two readings; 0 if it does not matter for probes.
static uint64_t mean_wait_ns(const struct schedstat *before, const struct schedstat *now) {
	uint64_t waited_ns = now->waited_ns - before->waited_ns;
	uint64_t turns = now->turns - before->turns;

	if (waited_ns * RUNS_MOSTLY_TIMES < now->ran_ns - before->ran_ns ||
	    waited_ns / turns < WAIT_NOTICED_NS)
		return 0;
	return waited_ns / turns;
}

static void shortage_update(struct waits *waits, uint64_t now_ns) {
	uint32_t count;

	waits->seconds = (uint8_t)(waits->seconds << 1 | (waits->permille >= SHORT_PERMILLE));
	count = (uint32_t)__builtin_popcount(waits->seconds);
	if (!waits->is_short && count >= SHORT_BEGIN) {
		waits->is_short = true;
		waits->since_ns = now_ns - SHORT_INTERVALS * RAS_NS_PER_SEC;
	} else if (waits->is_short && count <= SHORT_END) {
		waits->is_short = false;
	}
}

bool waits_update(
	struct waits *waits,
	uint64_t now_ns,
	const struct schedstat stats[static FABRIC_THREADS_MAX]
) {
	uint64_t elapsed_ns = now_ns - waits->before_ns;

	if (waits->before_ns != 0 && now_ns < waits->before_ns + WAITS_UPDATE_NS)
		return false;
	waits->turn_before_ns = waits->turn_ns;
	waits->turn_ns = 0;
	waits->permille = 0;
	for (uint32_t n = 0; waits->before_ns != 0 && n < FABRIC_THREADS_MAX; n++) {
		const struct schedstat *before = &waits->before[n], *now = &stats[n];
		uint64_t permille, turn_ns;

		// Lower totals belong to another thread. If a thread had no turn, the kernel has
		// not counted its present wait yet.
		if (before->turns == 0 || now->turns <= before->turns ||
		    now->waited_ns < before->waited_ns || now->ran_ns < before->ran_ns)
			continue;
		permille = (now->waited_ns - before->waited_ns) * 1000 / elapsed_ns;
		if (permille > waits->permille)
			waits->permille = permille < 1000 ? (uint32_t)permille : 1000;
		turn_ns = n != FABRIC_THREAD_CONTROL ? mean_wait_ns(before, now) : 0;
		if (turn_ns > waits->turn_ns)
			waits->turn_ns = turn_ns;
	}
	if (waits->before_ns != 0)
		shortage_update(waits, now_ns);
	for (uint32_t n = 0; n < FABRIC_THREADS_MAX; n++)
		waits->before[n] = stats[n];
	waits->before_ns = now_ns;
	return true;
}

uint64_t waits_turn_ns(const struct waits *waits) {
	return waits->turn_ns > waits->turn_before_ns ? waits->turn_ns : waits->turn_before_ns;
}

uint64_t waits_responder_ns(uint64_t published_ns, uint64_t read_at_ns, uint64_t now_ns) {
	return now_ns <= read_at_ns + RESPONDER_KEEP_NS ? published_ns : 0;
}

uint64_t waits_sample_ns(const struct waits *waits, uint64_t late_ns, uint64_t responder_ns) {
	uint64_t wait_ns;

	// The page of a peer may hold any value, so limit it.
	if (responder_ns > PATH_LATENCY_MAX_NS)
		responder_ns = PATH_LATENCY_MAX_NS;
	wait_ns = SAMPLE_TURNS * (waits_turn_ns(waits) + responder_ns);
	if (late_ns < WAIT_NOTICED_NS)
		return wait_ns;
	return late_ns > wait_ns ? late_ns : wait_ns;
}
