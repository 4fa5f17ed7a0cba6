// SPDX-License-Identifier: BSD-3-Clause
// Traces: when each operation is requested, and how long the device takes.
#include "policy.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <math.h>

#define BURST 8
#define NARROW 0.02
#define FAST_SHARE 0.9 // share of fast operations in the bimodal law
#define FAST 0.25
#define SLOW 7.75

static const char *const law_names[] = {
	[POLICY_CONSTANT] = "constant",
	[POLICY_NARROW] = "narrow",
	[POLICY_EXPONENTIAL] = "exponential",
	[POLICY_BIMODAL] = "bimodal",
};

static const char *const arrival_names[] = {
	[POLICY_POISSON] = "Poisson",
	[POLICY_BURSTY] = "bursty",
	[POLICY_PERIODIC] = "periodic",
};

const char *policy_law_name(enum policy_law law) {
	return law_names[law];
}

const char *policy_arrival_name(enum policy_arrival arrival) {
	return arrival_names[arrival];
}

uint64_t policy_law_iqr_ns(const struct policy_cell *cell) {
	if (cell->law == POLICY_NARROW)
		return (uint64_t)(NARROW * (double)cell->mean_ns);
	if (cell->law == POLICY_EXPONENTIAL)
		return (uint64_t)(log(3) * (double)cell->mean_ns);
	return 0;
}

// Return a number from 0 to below 1.
static double fraction_draw(uint64_t *state) {
	return (double)(splitmix_next(state) >> 11) * 0x1p-53;
}

static double draw_exponential(uint64_t *state) {
	return -log(1 - fraction_draw(state));
}

static double draw_law(enum policy_law law, uint64_t *state) {
	switch (law) {
	case POLICY_NARROW:
		return 1 + NARROW * (2 * fraction_draw(state) - 1);
	case POLICY_EXPONENTIAL:
		return draw_exponential(state);
	case POLICY_BIMODAL:
		return fraction_draw(state) < FAST_SHARE ? FAST : SLOW;
	case POLICY_CONSTANT:
	default:
		return 1;
	}
}

static double draw_gap(const struct policy_cell *cell, uint32_t n, uint64_t *state) {
	double mean_ns = 1e9 / cell->rate;

	if (cell->arrival == POLICY_POISSON)
		return mean_ns * draw_exponential(state);
	if (cell->arrival == POLICY_BURSTY)
		return n % BURST == 0 ? BURST * mean_ns * draw_exponential(state) : 0;
	return mean_ns;
}

void policy_trace_draw(
	const struct policy_cell *cell, uint64_t seed, struct policy_trace *ret_trace
) {
	uint64_t state = seed;
	double at_ns = 0;

	ret_trace->count = cell->warming + cell->counted;
	must(ret_trace->count <= POLICY_OPS_MAX);
	for (uint32_t n = 0; n < ret_trace->count; n++) {
		at_ns += draw_gap(cell, n, &state);
		ret_trace->ops[n] = (struct policy_op){
			.at_ns = (uint64_t)at_ns,
			.takes_ns = (uint64_t)((double)cell->mean_ns * draw_law(cell->law, &state)),
		};
	}
}
