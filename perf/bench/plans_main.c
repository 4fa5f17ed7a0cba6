// SPDX-License-Identifier: BSD-3-Clause
// tocsin-plans-bench [--json] [COUNT]: lateness of plans that control makes when the worker is
// about to sleep; by default 1,000,000 plans.
#include "plans.h"

#include <lib/histogram.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static double late_us(const struct histogram *late_ns, uint32_t per_million) {
	return (double)histogram_percentile(late_ns, per_million) / 1e3;
}

static void print_text(const struct plans_result *result, const struct histogram *late_ns) {
	printf("plans %llu, carried out %llu, lost %llu, worker slept %llu times\n",
	       (unsigned long long)result->planned, (unsigned long long)result->carried_out,
	       (unsigned long long)result->lost, (unsigned long long)result->blocks);
	printf("late by p50 %.1f us, p99 %.1f us, p99.9 %.1f us, most %.1f us\n",
	       late_us(late_ns, 500000), late_us(late_ns, 990000), late_us(late_ns, 999000),
	       (double)result->most_late_ns / 1e3);
	printf("over 1 ms %llu, over 10 ms %llu, over 60 ms %llu\n",
	       (unsigned long long)result->late_1ms, (unsigned long long)result->late_10ms,
	       (unsigned long long)result->late_60ms);
}

static int print_json(const struct plans_result *result, const struct histogram *late_ns) {
	json_t *object = json_pack(
		"{s:s s:I s:I s:I s:I s:I s:I s:I s:f s:f s:f s:f}", "bench", "plans", "planned",
		(json_int_t)result->planned, "carried_out", (json_int_t)result->carried_out, "lost",
		(json_int_t)result->lost, "blocks", (json_int_t)result->blocks, "late_1ms",
		(json_int_t)result->late_1ms, "late_10ms", (json_int_t)result->late_10ms,
		"late_60ms", (json_int_t)result->late_60ms, "p50_us", late_us(late_ns, 500000),
		"p99_us", late_us(late_ns, 990000), "p999_us", late_us(late_ns, 999000), "most_us",
		(double)result->most_late_ns / 1e3
	);
	int err = object == NULL ? -1 : json_dumpf(object, stdout, JSON_REAL_PRECISION(6));

	json_decref(object);
	putchar('\n');
	return err == 0 ? 0 : 1;
}

// Measure and print. Returns 1 if a plan was lost or the run failed.
static int plans_measure(uint64_t count, bool json) {
	struct plans_result result = {0};
	struct histogram *late_ns;
	struct clock clock;
	int err, status = 0;

	must(histogram_create(&histogram_shape_latency, &late_ns) == 0);
	clock_init_tsc(&clock);
	err = plans_run(count, &clock, late_ns, &result);
	if (err != 0)
		fprintf(stderr, "tocsin-plans-bench: no worker: %s\n", strerrordesc_np(-err));
	else if (json)
		status = print_json(&result, late_ns);
	else
		print_text(&result, late_ns);
	histogram_destroy(late_ns);
	return err != 0 || status != 0 || result.lost > 0;
}

int main(int argc, char **argv) {
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	uint64_t count = 1000000;
	int err = 0;

	argv += json;
	argc -= json;
	if (argc == 2)
		err = parse_u64(argv[1], strlen(argv[1]), 1, UINT64_MAX, NULL, &count);
	if (argc > 2 || err != 0) {
		fprintf(stderr, "usage: tocsin-plans-bench [--json] [COUNT]\n");
		return 2;
	}
	return plans_measure(count, json);
}
