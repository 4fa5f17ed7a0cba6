// SPDX-License-Identifier: BSD-3-Clause
// A mesh as text: the medians as a matrix or with one line per process, then the outliers.
#include "mesh/mesh_flows.h"
#include "mesh/mesh_output.h"
#include "report/output.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 16
#define FAILURES_MAX 8
#define CAUSES_MAX 10u

// Unit of the printed rates: Mbit/s if the baseline is below 1 Gbit/s.
struct rate_unit {
	const char *name;
	double gbits;
};

static struct rate_unit choose_rate_unit(const struct mesh_summary *summary) {
	if (summary->median_ns > 0 && mesh_gbits(summary->median_ns) < 1)
		return (struct rate_unit){"Mbit/s", 1e-3};
	return (struct rate_unit){"Gbit/s", 1};
}

// Format a rate with at most three digits. One below 1 has no leading zero.
static void rate_text(double value, char text[static CELL_BYTES]) {
	char digits[CELL_BYTES];

	snprintf(digits, sizeof(digits), "%.*f", value < 0.995 ? 2 : value < 9.95 ? 1 : 0, value);
	snprintf(text, CELL_BYTES, "%s", digits + (value < 0.995 ? 1 : 0));
}

// Format the median of a cell with at most five characters: a rate, or a time in microseconds.
static void cell_text(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const struct mesh_cell *cell,
	char text[static CELL_BYTES]
) {
	double value_us = (double)cell->quantiles[0].value_ns / 1e3;

	if (!cell->measured)
		snprintf(
			text, CELL_BYTES, "%s",
			cell->why[0] == '\0'	  ? "-"
			: mesh_is_bandwidth(mesh) ? "err"
						  : "fail"
		);
	else if (!cell->quantiles[0].known)
		snprintf(text, CELL_BYTES, "n/a");
	else if (mesh_is_bandwidth(mesh))
		rate_text(
			mesh_gbits(cell->quantiles[0].value_ns) / choose_rate_unit(summary).gbits,
			text
		);
	else if (value_us < 99.95)
		snprintf(text, CELL_BYTES, "%.1f", value_us);
	else if (value_us < 99999)
		snprintf(text, CELL_BYTES, "%.0f", value_us);
	else
		snprintf(text, CELL_BYTES, "%.0fs", value_us / 1e6);
}

// Print the unit and the meaning of the values in the table.
static void print_table_title(const struct mesh *mesh, const struct mesh_summary *summary) {
	if (mesh_is_bandwidth(mesh))
		printf("\n%s that half of the windows reached", choose_rate_unit(summary).name);
	else
		printf("\np50 of round trips, us");
}

// Rates are narrower than times, so that 16 of them fit in 80 columns.
static void print_matrix(const struct mesh *mesh, const struct mesh_summary *summary) {
	int width = mesh_is_bandwidth(mesh) ? 4 : 6;

	print_table_title(mesh, summary);
	printf("; from (row) to (column)\n    ");
	for (uint32_t to = 0; to < mesh->count; to++)
		printf("%*u", width, to);
	printf("\n");
	for (uint32_t from = 0; from < mesh->count; from++) {
		printf("%3u ", from);
		for (uint32_t to = 0; to < mesh->count; to++) {
			char text[CELL_BYTES] = "";

			if (from != to)
				cell_text(mesh, summary, mesh_cell(mesh, from, to), text);
			else
				snprintf(text, sizeof(text), ".");
			printf("%*s", width, text);
		}
		printf("\n");
	}
}

// Print the best and the worst median of a row or a column, and the process of the worst.
static void print_medians_range(
	const struct mesh *mesh, const struct mesh_summary *summary, uint32_t who, bool is_source
) {
	double unit = choose_rate_unit(summary).gbits;
	uint64_t least = UINT64_MAX, most = 0;
	uint32_t worst = who;

	for (uint32_t n = 0; n < mesh->count; n++) {
		const struct mesh_cell *cell =
			is_source ? mesh_cell(mesh, who, n) : mesh_cell(mesh, n, who);

		if (n == who || !cell->quantiles[0].known)
			continue;
		if (cell->quantiles[0].value_ns < least)
			least = cell->quantiles[0].value_ns;
		if (cell->quantiles[0].value_ns > most) {
			most = cell->quantiles[0].value_ns;
			worst = n;
		}
	}
	if (worst == who)
		printf(" %9s %9s %4s", "n/a", "n/a", "");
	else if (mesh_is_bandwidth(mesh))
		printf(" %9.2f %9.2f %4u", mesh_gbits(least) / unit, mesh_gbits(most) / unit,
		       worst);
	else
		printf(" %9.1f %9.1f %4u", (double)least / 1e3, (double)most / 1e3, worst);
}

static void print_causes(const struct mesh *mesh, const struct mesh_summary *summary) {
	if (summary->measured == 0)
		return;
	if (summary->median_ns == 0) {
		printf("no direction has enough samples for a median\n");
		return;
	}
	if (mesh->count == 2) {
		printf("two directions are too few to find outliers\n");
		return;
	}
	if (summary->undecided > 0)
		printf("%u undecided: no interval, or slow with an interval down to the baseline\n",
		       summary->undecided);
	if (summary->outliers == 0) {
		printf("nothing stands out\n");
		return;
	}
	printf("%u %s out (%s the baseline):\n", summary->outliers,
	       summary->outliers == 1 ? "stands" : "stand",
	       mesh_is_bandwidth(mesh) ? "below 80 % of" : "more than a quarter above");
	for (uint32_t n = 0; n < summary->cause_count && n < CAUSES_MAX; n++) {
		char says[LAB_WHY_BYTES];

		mesh_cause_format(mesh, &summary->causes[n], says, sizeof(says));
		printf("  %.97s\n", says);
	}
	if (summary->cause_count > CAUSES_MAX)
		printf("  and %u more\n", summary->cause_count - CAUSES_MAX + summary->unexplained);
}

static void print_failures(const struct mesh *mesh) {
	uint32_t told = 0, failed = 0;

	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (cell->measured || cell->why[0] == '\0')
				continue;
			failed++;
			if (told++ < FAILURES_MAX)
				printf("  %u to %u failed: %.80s\n", from, to, cell->why);
		}
	}
	if (failed > FAILURES_MAX)
		printf("  and %u more failed\n", failed - FAILURES_MAX);
}

// Print the plan, and how many directions were measured.
static void print_head(const struct mesh *mesh, const struct mesh_summary *summary) {
	const struct plan *plan = &mesh->plan;
	char size[PARSE_TEXT_BYTES], took[SHOW_BYTES];

	format_size_bytes(plan->sizes[0], size);
	show_duration(mesh->took_ns, took);
	if (mesh_is_bandwidth(mesh))
		printf("bandwidth of %u processes, %s of %s%s, policy %s,\n"
		       "%u queue pair%s of depth %u: %u of %u directions in %s\n",
		       mesh->count, plan_op_name(plan->op), size,
		       plan->both_ways ? " in both directions" : "", plan_policy_name(plan),
		       plan->pairs, PLURAL(plan->pairs), plan->depth, summary->measured,
		       summary->wanted, took);
	else
		printf("mesh of %u %s, %s of %s, policy %s: %u of %u directions in %s\n",
		       mesh->count, plan->via_agents ? "nodes" : "processes",
		       plan_op_name(plan->op), size, plan_policy_name(plan), summary->measured,
		       summary->wanted, took);
	if (mesh->plan.via_agents)
		printf("measured by agents: the worker of each reads the memory of the others, "
		       "beside its probes\n");
	if (mesh_is_shared_host(mesh))
		printf("shared host: processes share a machine; at most %u pair%s measured at a "
		       "time\n",
		       mesh->at_once, mesh->at_once == 1 ? " was" : "s were");
	if (mesh->partial[0] != '\0')
		printf("INCOMPLETE: %.85s\n", mesh->partial);
}

// Print the range of the medians, and the baseline.
static void print_baseline(const struct mesh *mesh, const struct mesh_summary *summary) {
	struct rate_unit unit = choose_rate_unit(summary);

	if (mesh_is_bandwidth(mesh))
		printf("\nrates %.4g to %.4g %s; baseline %.4g, median of what no group explains\n",
		       mesh_gbits(summary->max_ns) / unit.gbits,
		       mesh_gbits(summary->min_ns) / unit.gbits, unit.name,
		       mesh_gbits(summary->median_ns) / unit.gbits);
	else
		printf("\nmedians from %.3f to %.3f us; baseline (median of what no group explains) "
		       "%.3f us\n",
		       (double)summary->min_ns / 1e3, (double)summary->max_ns / 1e3,
		       (double)summary->median_ns / 1e3);
}

void mesh_print(const struct mesh *mesh, const struct mesh_summary *summary) {
	const char *ends = mesh_is_bandwidth(mesh) ? "most, least" : "least, most";

	print_head(mesh, summary);
	if (mesh->count <= MESH_COLUMNS_MAX) {
		print_matrix(mesh, summary);
	} else {
		print_table_title(mesh, summary);
		printf("\n%4s %-24s %11s: %s %13s: %s\n", "", "host", "from it", ends, "to it",
		       ends);
	}
	for (uint32_t n = 0; mesh->count > MESH_COLUMNS_MAX && n < mesh->count; n++) {
		printf("%4u %-24.24s", n, mesh->nodes[n].host);
		print_medians_range(mesh, summary, n, true);
		print_medians_range(mesh, summary, n, false);
		printf("\n");
	}
	if (summary->median_ns > 0)
		print_baseline(mesh, summary);
	print_causes(mesh, summary);
	print_failures(mesh);
	mesh_flows_print(mesh);
}

static void write_rate_row(const struct mesh *mesh, uint32_t from, uint32_t to, FILE *file) {
	const struct mesh_cell *cell = mesh_cell(mesh, from, to);
	const struct mesh_quantile *p50 = &cell->quantiles[0];

	fprintf(file, "%u,%u,%s,%s,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g\n", from, to,
		mesh->nodes[from].host, mesh->nodes[to].host, cell->count, mesh_gbits(cell->max_ns),
		mesh_gbits(p50->value_ns), mesh_gbits(p50->high_ns), mesh_gbits(p50->low_ns),
		mesh_gbits(cell->min_ns));
}

int mesh_write_csv(const struct mesh *mesh, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file);

	if (err != 0)
		return err;
	if (mesh_is_bandwidth(mesh))
		fprintf(file, "from,to,from_host,to_host,windows,min_gbits,p50_gbits,p50_low_gbits,"
			      "p50_high_gbits,max_gbits\n");
	else
		fprintf(file,
			"from,to,from_host,to_host,samples,min_ns,p50_ns,p50_low_ns,p50_high_ns,"
			"p90_ns,p99_ns,max_ns\n");
	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (!cell->measured || !cell->quantiles[0].known)
				continue;
			if (mesh_is_bandwidth(mesh)) {
				write_rate_row(mesh, from, to, file);
				continue;
			}
			fprintf(file,
				"%u,%u,%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64,
				from, to, mesh->nodes[from].host, mesh->nodes[to].host, cell->count,
				cell->min_ns, cell->quantiles[0].value_ns,
				cell->quantiles[0].low_ns, cell->quantiles[0].high_ns);
			for (int n = 1; n < MESH_QUANTILES; n++) {
				if (cell->quantiles[n].known)
					fprintf(file, ",%" PRIu64, cell->quantiles[n].value_ns);
				else
					fprintf(file, ",");
			}
			fprintf(file, ",%" PRIu64 "\n", cell->max_ns);
		}
	}
	return output_close(path, file, why);
}
