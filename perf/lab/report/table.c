// SPDX-License-Identifier: BSD-3-Clause
// Table of lat: one size in full, or one row per size.
#include "report/output.h"
#include "run/yardsticks.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROW_BYTES 160
#define OUTLIERS_SHOWN 3

static double ns_to_us(uint64_t value_ns) {
	return (double)value_ns / 1e3;
}

static bool run_has_half(const struct lab_run *run) {
	return plan_op_is_answered(run->plan.op) && run->plan.arrivals == PLAN_CLOSED;
}

// Return true if the memory is not in the host's default place. Runs through agents have no such
// key.
static bool memory_is_not_host(const struct lab_environment *environment) {
	const char *memory = environment_get(environment, "memory");

	return memory[0] != '\0' && strcmp(memory, "host") != 0;
}

static void print_head(const struct lab_run *run) {
	const struct lab_environment *client = &run->environment[0];
	const struct lab_environment *server = &run->environment[1];
	const struct plan *plan = &run->plan;
	char gap[PARSE_TEXT_BYTES];

	printf("%s, ", plan_op_name(plan->op));
	if (plan->arrivals == PLAN_TRACE)
		printf("open loop of a trace");
	else if (plan->arrivals != PLAN_CLOSED)
		printf("open loop, %s arrivals, %u a second", plan_arrivals_name(plan->arrivals),
		       plan->rate);
	else
		printf("closed loop");
	if (plan->gap_ns > 0) {
		format_duration_ns(plan->gap_ns, gap);
		printf(", gap %s", gap);
	}
	if (plan->via_agents) {
		printf("\nmeasured by agents: their workers use their own policy "
		       "and also send probes\n"
		       "%.30s of this node to %.30s of %.30s (answered by %s)\n",
		       environment_get(client, "device"), environment_get(server, "device"),
		       environment_get(server, "host"), environment_get(server, "answered_by"));
		return;
	}
	printf(", policy %s", plan_policy_name(plan));
	if (plan->inline_bytes == 0)
		printf(", nothing inline");
	else if (plan->inline_bytes != PLAN_INLINE_DEFAULT)
		printf(", inline up to %u B", plan->inline_bytes);
	printf("\n");
	printf("%.30s on processor %s to %.30s (answered %s), clock %s read in %s ns\n",
	       environment_get(client, "device"), environment_get(client, "core"),
	       environment_get(server, "device"),
	       plan_op_is_answered(plan->op) ? "by its program"
					     : environment_get(server, "answered_by"),
	       environment_get(client, "clock"), environment_get(client, "clock_read_ns"));
	if (memory_is_not_host(client) || memory_is_not_host(server))
		printf("memory: %.20s on the client, %.20s on the server\n",
		       environment_get(client, "memory"), environment_get(server, "memory"));
}

void output_yardsticks(const struct lab_run *run) {
	char text[YARDSTICKS_BYTES];

	yardsticks_format(&run->environment[0], text);
	if (text[0] != '\0')
		printf("yardsticks: %s\n", text);
}

// A row of cells, printed without trailing blanks.
struct row {
	char text[ROW_BYTES];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void
row_add(struct row *row, const char *format, ...) {
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(row->text + row->used, ROW_BYTES - row->used, format, arguments);
	va_end(arguments);
	if (length > 0 && (size_t)length < ROW_BYTES - row->used)
		row->used += (size_t)length;
}

static void row_end(struct row *row) {
	while (row->used > 0 && row->text[row->used - 1] == ' ')
		row->used--;
	printf("%.*s\n", (int)row->used, row->text);
}

const char *output_note(enum quantile_note note) {
	static const char *const words[] = {
		[QUANTILE_SOUND] = "",
		[QUANTILE_ROUGH] = "few effective samples",
		[QUANTILE_UNRESOLVED] = "too dependent",
		[QUANTILE_TOO_FEW] = "too few samples",
	};

	return words[note];
}

static void print_extreme(const char *name, uint64_t value_ns, bool half) {
	struct row row = {.used = 0};

	row_add(&row, "  %-8s %11.3f", name, ns_to_us(value_ns));
	if (half)
		row_add(&row, " %24s %11.3f", "", ns_to_us(value_ns) / 2);
	row_end(&row);
}

static void print_summary(const struct run_summary *summary, const char *what, bool half) {
	const struct histogram_summary *all = &summary->all;

	printf("  %-8s %11s %24s%s %10s\n", "", what, "95 % interval", half ? " half RTT us" : "",
	       "effective");
	print_extreme("min", all->min, half);
	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		const struct quantile_summary *quantile = &summary->quantiles[n];
		char name[RESULT_QUANTILE_BYTES];
		struct row row = {.used = 0};

		result_quantile_name(quantile->per_million, name);
		row_add(&row, "  %-8s %11.3f", name, ns_to_us(quantile->value));
		if (quantile_has_interval(quantile))
			row_add(&row, " %10.3f .. %10.3f", ns_to_us(quantile->low),
				ns_to_us(quantile->high));
		else
			row_add(&row, " %24s", "n/a");
		if (half)
			row_add(&row, " %11.3f", ns_to_us(quantile->value) / 2);
		row_add(&row, " %10.0f  %s", quantile->effective, output_note(quantile->note));
		row_end(&row);
	}
	print_extreme("max", all->max, half);
	printf("  %-8s %11.3f   deviation %.3f us\n", "mean", all->mean / 1e3, all->stdev / 1e3);
}

// Print the clock: the precision of its rate, and the errors that the workers found. They compare
// it with the kernel's clock every 10 ms.
static void print_clock(const struct lab_run *run, const struct lab_result *result) {
	const struct lab_environment *client = &run->environment[0];
	const char *error_ppb = environment_get(client, "clock_error_ppb");
	uint64_t off_ns = result->noise[0].counts[NOISE_CLOCK_OFF_NS];

	if (run->plan.via_agents) {
		printf("  clock: that of the agent's worker\n");
		return;
	}
	printf("  clock: %s, %.50s", environment_get(client, "clock"),
	       environment_get(client, "clock_reason"));
	if (error_ppb[0] != '\0' && strcmp(error_ppb, "0") != 0)
		printf(" within %s ppb", error_ppb);
	printf("\n");
	if (result->noise_known[0] && off_ns != NOISE_UNKNOWN)
		printf("    differs from CLOCK_MONOTONIC by at most %.3f us, "
		       "compared every 10 ms\n",
		       ns_to_us(off_ns));
}

void output_course(const struct lab_run *run, const struct lab_result *result) {
	static const char *const ends[2] = {"client", "server"};
	const struct run_summary *summary = &result->summary;
	char name[RESULT_QUANTILE_BYTES], noise[NOISE_TEXT_BYTES];
	struct result_segment segment;

	printf("  course: %s", run_judgement_text(summary->judgement));
	if (summary->judged_count > 0) {
		result_quantile_name(
			summary->quantiles[summary->judged_count - 1].per_million, name
		);
		printf(" (up to %s, in windows of %" PRIu64 ")", name, summary->window_samples);
	}
	printf("\n");
	for (uint32_t n = 0; n < summary->segment_count; n++) {
		if (summary->judgement != RUN_CHANGED ||
		    result_segment(result->times, summary, n, &segment) != 0)
			break;
		printf("    from sample %" PRIu64 ", %" PRIu64
		       " samples: p50 %.3f us, p90 %.3f us, p99 %.3f us\n",
		       segment.first_sample, segment.samples, ns_to_us(segment.p50_ns),
		       ns_to_us(segment.p90_ns), ns_to_us(segment.p99_ns));
	}

	printf("  warm-up: %u samples dropped: ", result->warm_count);
	if (!result->warm_judged)
		printf("too few within the time limit to judge\n");
	else if (result->warm_check.warm)
		printf("steady, the second half is like the quarter before it\n");
	else
		printf("still changing when the limit was reached\n");

	print_clock(run, result);
	for (int n = 0; n < 2; n++) {
		if (result->noise_known[n] && noise_format(&result->noise[n], noise))
			printf("  noise, %s: %.80s\n", ends[n], noise);
	}
}

static void print_device(const struct lab_run *run, const struct result_device *device) {
	bool answered = plan_is_answered(&run->plan);
	double mean_us = (double)device->answer_mean_ps / 1e6;

	print_summary(&device->device_summary, "device us", false);
	print_summary(&device->host_summary, "host us", false);
	printf("  device: from submission to its stamp%s; host: from the stamp on\n",
	       answered ? ", the server's answer included" : "");
	if (answered && device->answer_count > 0) {
		printf("  the server's program took p50 %.3f us, p99 %.3f us, "
		       "max %.3f us to answer\n",
		       ns_to_us(device->answer_p50_ns), ns_to_us(device->answer_p99_ns),
		       ns_to_us(device->answer_max_ns));
		// Only means add up exactly; quantiles do not.
		printf("  mean: NIC to NIC and back %.3f us, the server's program %.3f us, "
		       "this host %.3f us\n",
		       device->device_summary.all.mean / 1e3 - mean_us, mean_us,
		       device->host_summary.all.mean / 1e3);
	}
	printf("  stamps: %s clock of the device, off by at most %.3f us, compared every 10 ms\n",
	       plan_stamps_name(device->stamps), ns_to_us(device->off_ns));
	if (device->outside > 0)
		printf("  %s%" PRIu64 " stamps lie outside their operation\n",
		       device->doubtful ? "NOT VALID: " : "", device->outside);
}

static void print_size_details(const struct lab_run *run, const struct lab_result *result) {
	const struct result_load *load = &result->load;
	char size[SHOW_BYTES], took[SHOW_BYTES], text[OUTLIER_TEXT_BYTES];

	show_bytes(result->size, size);
	show_duration(result->took_ns, took);
	printf("\n%s: ", size);
	if (!result->summarized) {
		printf("no sample\n");
		return;
	}
	printf("%" PRIu64 " samples in %s%s\n", result->summary.all.count, took,
	       result->complete ? "" : ", INCOMPLETE");
	if (result->open) {
		printf("  the sender was late by p50 %.3f us, p99 %.3f us, max %.3f us\n",
		       ns_to_us(load->lag_p50_ns), ns_to_us(load->lag_p99_ns),
		       ns_to_us(load->lag_max_ns));
		printf("  offered %.6g operations per second; "
		       "an operation was in progress %.3g %% of the time\n",
		       load->offered, 100 * load->occupied);
	}

	// Response times of a saturated run depend on its length, so service times come first.
	if (result->open && load->saturated) {
		printf("  NOT VALID: saturated, %s\n", load->reason);
		print_summary(&load->service_summary, "service us", false);
		printf("  NOT VALID:\n");
	}
	print_summary(&result->summary, result->open ? "response us" : "RTT us", run_has_half(run));
	if (result->open && !load->saturated)
		print_summary(&load->service_summary, "service us", false);
	if (result->device.stamps != PLAN_STAMPS_NONE)
		print_device(run, &result->device);
	output_course(run, result);
	for (uint32_t n = 0; n < result->outlier_count && n < OUTLIERS_SHOWN; n++) {
		const struct outlier *outlier = &result->outliers[n];

		outlier_format(outlier, text);
		printf("  %-8s %11.3f us at %.3f s: %.60s\n", n == 0 ? "largest:" : "",
		       ns_to_us(outlier->took_ns), (double)outlier->at_ns / 1e9, text);
	}
}

static void
add_cell(struct row *row, const struct run_summary *summary, uint32_t place, bool half) {
	const struct quantile_summary *quantile = &summary->quantiles[place];

	if (quantile->note == QUANTILE_TOO_FEW)
		row_add(row, " %10s", "n/a");
	else
		row_add(row, " %10.3f", ns_to_us(quantile->value) / (half ? 2 : 1));
}

static void print_rows(const struct lab_run *run) {
	bool changed = false, saturated = false;

	printf("\n%8s %9s %10s %10s %10s %10s %10s %10s%s\n", "size", "samples",
	       run->plan.arrivals == PLAN_CLOSED ? "RTT min us" : "resp. min", "p50", "p90", "p99",
	       "p99.9", "max", run_has_half(run) ? "  half p50" : "");
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];
		const struct run_summary *summary = &result->summary;
		bool unusable = result_is_saturated(result);
		struct row row = {.used = 0};
		char size[PARSE_TEXT_BYTES];

		changed |= summary->judgement == RUN_CHANGED;
		saturated |= unusable;
		format_size_bytes(result->size, size);
		if (!result->summarized) {
			printf("%8s no sample\n", size);
			continue;
		}
		row_add(&row, "%8s %9" PRIu64 " %10.3f", size, summary->all.count,
			ns_to_us(summary->all.min));
		for (uint32_t place = 0; place < 4; place++) {
			if (unusable)
				row_add(&row, " %10s", "n/a");
			else
				add_cell(&row, summary, place, false);
		}
		row_add(&row, " %10.3f", ns_to_us(summary->all.max));
		if (run_has_half(run))
			add_cell(&row, summary, 0, true);
		row_add(&row, " %s%s%s", summary->judgement == RUN_CHANGED ? "*" : "",
			result->complete ? "" : "!", unusable ? "NOT VALID" : "");
		row_end(&row);
	}
	if (changed)
		printf("* %s: measure that size alone to see when\n",
		       run_judgement_text(RUN_CHANGED));
	if (saturated)
		printf("NOT VALID: saturated, operations were due faster than they were served, or "
		       "the sender was late\n");
	if (run->plan.stamps != PLAN_STAMPS_NONE)
		printf("the shares of device and host: see --json, --csv or --html, or measure one "
		       "size alone\n");
}

void output_table(const struct lab_run *run) {
	if (run->count == 0)
		return;
	print_head(run);
	output_yardsticks(run);
	if (run->plan.size_count == 1)
		print_size_details(run, &run->results[0]);
	else
		print_rows(run);
	if (run->partial[0] != '\0')
		printf("\nINCOMPLETE: %.85s\n", run->partial);
}
