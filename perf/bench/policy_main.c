// SPDX-License-Identifier: BSD-3-Clause
// tocsin-policy-bench [--json] [TEXT]: measure all cells, or those whose law, arrival or operation
// time is TEXT.
#include "policy.h"

#include <lib/clock.h>
#include <lib/rcu_thread.h>

#include <jansson.h>

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

// Slices last one second where p99 matters, else as long as p50 and p90 need. The whole run takes
// less than ten minutes.
// clang-format off
static const struct policy_cell cells[] = {
	// Laws and operation times.
	{2 * US,   POLICY_CONSTANT,    POLICY_POISSON,  1000,  1000,  20},
	{20 * US,  POLICY_EXPONENTIAL, POLICY_POISSON,  10000, 10000, 100},
	{20 * US,  POLICY_NARROW,      POLICY_POISSON,  100,   30,    10},
	{50 * US,  POLICY_NARROW,      POLICY_POISSON,  100,   30,    10},
	{100 * US, POLICY_NARROW,      POLICY_POISSON,  100,   30,    10},
	{200 * US, POLICY_NARROW,      POLICY_POISSON,  100,   30,    10},
	{500 * US, POLICY_NARROW,      POLICY_POISSON,  100,   30,    10},
	{200 * US, POLICY_NARROW,      POLICY_POISSON,  1000,  1000,  20},
	{200 * US, POLICY_EXPONENTIAL, POLICY_POISSON,  1000,  1000,  20},
	{200 * US, POLICY_BIMODAL,     POLICY_POISSON,  1000,  1000,  20},
	{5 * MS,   POLICY_CONSTANT,    POLICY_POISSON,  10,    10,    0},
	{5 * MS,   POLICY_EXPONENTIAL, POLICY_POISSON,  100,   30,    10},
	{200 * US, POLICY_EXPONENTIAL, POLICY_POISSON,  10,    10,    0},
	// Arrivals.
	{100 * US, POLICY_NARROW,      POLICY_BURSTY,   10000, 10000, 100},
	{100 * US, POLICY_NARROW,      POLICY_BURSTY,   100,   32,    8},
	{50 * US,  POLICY_EXPONENTIAL, POLICY_BURSTY,   1000,  1000,  24},
	{100 * US, POLICY_NARROW,      POLICY_PERIODIC, 100,   30,    10},
	{50 * US,  POLICY_EXPONENTIAL, POLICY_PERIODIC, 1000,  1000,  20},
};
// clang-format on

static bool cell_is_selected(const struct policy_cell *cell, const char *text) {
	char time[32];

	snprintf(time, sizeof(time), "%llu", (unsigned long long)(cell->mean_ns / US));
	return text == NULL || strcmp(text, policy_law_name(cell->law)) == 0 ||
	       strcmp(text, policy_arrival_name(cell->arrival)) == 0 || strcmp(text, time) == 0;
}

// Measure the selected cells. Returns the exit status.
static int cells_run(struct policy_bench *bench, bool json, const char *text) {
	json_t *rows = json_array();
	struct policy_result result;
	json_t *object;
	uint32_t missed = 0;
	int err = 0;

	if (!json)
		policy_table_head(policy_bench_block_ns(bench));
	for (size_t n = 0; n < COUNT_OF(cells) && err == 0; n++) {
		if (!cell_is_selected(&cells[n], text))
			continue;
		policy_bench_measure(bench, &cells[n], &result);
		if (json)
			err = policy_table_json(&result, rows);
		else
			missed += policy_table_print(&result);
	}
	object = json_pack("{s:s s:o}", "bench", "policy", "rows", rows);
	if (json && err == 0)
		err = json_dumpf(object, stdout, JSON_REAL_PRECISION(6));
	json_decref(object);
	printf(json ? "\n" : "\n%u targets missed\n", missed);
	return err == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	const char *text = argc > 1 + json ? argv[1 + json] : NULL;
	struct policy_bench *bench;
	int err, status;

	if (argc > 2 + json || (text != NULL && text[0] == '-')) {
		fprintf(stderr, "usage: %s [--json] [LAW | ARRIVAL | MICROSECONDS]\n", argv[0]);
		return 2;
	}
	if (rcu_thread_register("bench", clock_monotonic_ns()) != 0) {
		fprintf(stderr, "%s: RCU cannot start\n", argv[0]);
		return 1;
	}
	rcu_thread_offline(); // this thread reads no RCU data and sleeps
	err = policy_bench_create(&bench);
	if (err != 0) {
		fprintf(stderr, "%s: no worker: %s\n", argv[0], strerrorname_np(-err));
		return 1;
	}
	status = cells_run(bench, json, text);
	policy_bench_destroy(bench);
	rcu_thread_unregister();
	return status;
}
