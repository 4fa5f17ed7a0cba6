// SPDX-License-Identifier: BSD-3-Clause
// Table of bw: one size in full, or one row per size.
#include "report/output.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>

static double rate_gbits(const struct lab_result *result, double messages_per_s) {
	return messages_per_s * (double)result->size * 8 / 1e9;
}

static void print_rate(const char *name, const struct lab_result *result, double messages_per_s) {
	printf("  %-14s %13.1f %28s %10.3f\n", name, messages_per_s, "",
	       rate_gbits(result, messages_per_s));
}

// A window that takes at most this time has at least the corresponding rate.
static void
print_quantile(const struct lab_result *result, const struct quantile_summary *quantile) {
	double rate = result_rate(result, quantile->value);
	char name[PARSE_TEXT_BYTES];

	snprintf(name, sizeof(name), "%g %%", quantile->per_million / 1e4);
	printf("  %-14s %13.1f", name, rate);
	if (quantile_has_interval(quantile))
		printf(" %13.1f ..%13.1f", result_rate(result, quantile->high),
		       result_rate(result, quantile->low));
	else
		printf(" %28s", "n/a");
	printf(" %10.3f %9.0f%s%s\n", rate_gbits(result, rate), quantile->effective,
	       quantile->note == QUANTILE_SOUND ? "" : "  ",
	       quantile->note == QUANTILE_ROUGH	    ? "few windows"
	       : quantile->note == QUANTILE_TOO_FEW ? "too few windows"
						    : output_note(quantile->note));
}

// Return the share of a processor that a worker used, in percent; -1 if it is unknown.
static double worker_cpu_percent(const struct lab_result *result, int end) {
	const uint64_t *counts = result->noise[end].counts;

	if (!result->noise_known[end] || counts[NOISE_CPU_NS] == NOISE_UNKNOWN ||
	    counts[NOISE_TIME_NS] == NOISE_UNKNOWN || counts[NOISE_TIME_NS] == 0)
		return -1;
	return 100 * (double)counts[NOISE_CPU_NS] / (double)counts[NOISE_TIME_NS];
}

static void print_cpu(const struct lab_result *result) {
	double client = worker_cpu_percent(result, 0), server = worker_cpu_percent(result, 1);

	if (client >= 0 && server >= 0)
		printf("  worker threads: client %.0f %% of a processor, server %.0f %%\n", client,
		       server);
}

static void print_size_details(const struct lab_run *run, const struct lab_result *result) {
	const struct run_summary *summary = &result->summary;
	char size[SHOW_BYTES], took[SHOW_BYTES];
	bool told = false; // a missing quantile was printed already; only the first one is printed

	show_bytes(result->size, size);
	show_duration(result->took_ns, took);
	if (!result->summarized) {
		printf("\n%s: no window\n", size);
		return;
	}
	printf("\n%s: %" PRIu64 " windows of %" PRIu64 " message%s in %s%s\n", size,
	       summary->all.count, result->window_messages, result->window_messages == 1 ? "" : "s",
	       took, result->complete ? "" : ", INCOMPLETE");
	printf("  %-14s %13s %28s %10s %9s\n", "of windows", "messages/s", "95 % interval",
	       "Gbit/s", "effective");
	print_rate("mean", result, result_rate_mean(result));
	print_rate("best window", result, result_rate(result, summary->all.min));
	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		bool too_few = summary->quantiles[n].note == QUANTILE_TOO_FEW;

		if (!too_few || !told)
			print_quantile(result, &summary->quantiles[n]);
		told |= too_few;
	}
	print_rate("worst window", result, result_rate(result, summary->all.max));
	if (run->plan.both_ways) {
		double peer = result_rate_peer(result);

		print_rate("the server", result, peer);
		print_rate("both together", result, result_rate_mean(result) + peer);
	}
	print_cpu(result);
	output_course(run, result);
}

static void print_cell(const struct lab_result *result, uint32_t place) {
	const struct quantile_summary *quantile = &result->summary.quantiles[place];

	if (quantile->note == QUANTILE_TOO_FEW)
		printf(" %13s", "n/a");
	else
		printf(" %13.1f", result_rate(result, quantile->value));
}

static void print_rows(const struct lab_run *run) {
	bool changed = false;

	printf("\n%8s %7s %13s %13s %13s %10s %6s%s\n", "size", "windows", "messages/s", "at 50 %",
	       "at 99 %", "Gbit/s", "cpu %", run->plan.both_ways ? "     server" : "");
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];
		double mean = result->summarized ? result_rate_mean(result) : 0;
		char size[PARSE_TEXT_BYTES];

		changed |= result->summary.judgement == RUN_CHANGED;
		format_size_bytes(result->size, size);
		if (!result->summarized) {
			printf("%8s no window\n", size);
			continue;
		}
		printf("%8s %7" PRIu64 " %13.1f", size, result->summary.all.count, mean);
		print_cell(result, 0);
		print_cell(result, 2);
		printf(" %10.3f", rate_gbits(result, mean));
		if (worker_cpu_percent(result, 0) >= 0)
			printf(" %6.0f", worker_cpu_percent(result, 0));
		else
			printf(" %6s", "n/a");
		if (run->plan.both_ways)
			printf(" %10.3f", rate_gbits(result, result_rate_peer(result)));
		printf("%s%s\n", result->summary.judgement == RUN_CHANGED ? " *" : "",
		       result->complete ? "" : " !");
	}
	if (changed)
		printf("* %s: measure that size alone to see when\n",
		       run_judgement_text(RUN_CHANGED));
}

void output_rates(const struct lab_run *run) {
	const struct lab_environment *client = &run->environment[0];
	const struct lab_environment *server = &run->environment[1];
	const struct plan *plan = &run->plan;

	if (run->count == 0)
		return;
	printf("bandwidth of %s%s, %u queue pair%s of depth %u, policy %s", plan_op_name(plan->op),
	       plan->both_ways ? " in both directions" : "", plan->pairs, PLURAL(plan->pairs),
	       plan->depth, idle_policy_name(plan->policy));
	if (plan->inline_bytes == 0)
		printf(", nothing inline");
	else if (plan->inline_bytes != PLAN_INLINE_DEFAULT)
		printf(", inline up to %u B", plan->inline_bytes);
	printf("\n");
	printf("%.30s on processor %s to %.30s, clock %s read in %s ns\n",
	       environment_get(client, "device"), environment_get(client, "core"),
	       environment_get(server, "device"), environment_get(client, "clock"),
	       environment_get(client, "clock_read_ns"));
	output_yardsticks(run);
	if (plan->size_count == 1)
		print_size_details(run, &run->results[0]);
	else
		print_rows(run);
	if (run->partial[0] != '\0')
		printf("\nINCOMPLETE: %.85s\n", run->partial);
}
