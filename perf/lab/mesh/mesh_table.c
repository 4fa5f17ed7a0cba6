// SPDX-License-Identifier: BSD-3-Clause
// A mesh as text: the medians as a matrix or with one line per process, then the outliers.
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

// Format a time in microseconds, with at most five characters.
static void cell_text(const struct mesh_cell *cell, char text[static CELL_BYTES]) {
	double value_us = (double)cell->quantiles[0].value_ns / 1e3;

	if (!cell->measured)
		snprintf(text, CELL_BYTES, "%s", cell->why[0] != '\0' ? "fail" : "-");
	else if (!cell->quantiles[0].known)
		snprintf(text, CELL_BYTES, "n/a");
	else if (value_us < 99.95)
		snprintf(text, CELL_BYTES, "%.1f", value_us);
	else if (value_us < 99999)
		snprintf(text, CELL_BYTES, "%.0f", value_us);
	else
		snprintf(text, CELL_BYTES, "%.0fs", value_us / 1e6);
}

static void print_matrix(const struct mesh *mesh) {
	printf("\np50 of round trips, us; from (row) to (column)\n    ");
	for (uint32_t to = 0; to < mesh->count; to++)
		printf(" %5u", to);
	printf("\n");
	for (uint32_t from = 0; from < mesh->count; from++) {
		printf("%3u ", from);
		for (uint32_t to = 0; to < mesh->count; to++) {
			char text[CELL_BYTES] = "";

			if (from != to)
				cell_text(mesh_cell(mesh, from, to), text);
			else
				snprintf(text, sizeof(text), ".");
			printf(" %5s", text);
		}
		printf("\n");
	}
}

// Print the lowest and the highest median of a row or a column, and the process of the highest.
static void print_medians_range(const struct mesh *mesh, uint32_t who, bool is_source) {
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
	printf("%u %s out (more than a quarter above the baseline):\n", summary->outliers,
	       summary->outliers == 1 ? "stands" : "stand");
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

void mesh_print(const struct mesh *mesh, const struct mesh_summary *summary) {
	char size[PARSE_TEXT_BYTES], took[SHOW_BYTES];

	format_size_bytes(mesh->plan.sizes[0], size);
	show_duration(mesh->took_ns, took);
	printf("mesh of %u %s, %s of %s, policy %s: %u of %u directions in %s\n", mesh->count,
	       mesh->plan.via_agents ? "nodes" : "processes", plan_op_name(mesh->plan.op), size,
	       plan_policy_name(&mesh->plan), summary->measured, summary->wanted, took);
	if (mesh->plan.via_agents)
		printf("measured by agents: the worker of each reads the memory of the others, "
		       "beside its probes\n");
	if (mesh_is_shared_host(mesh))
		printf("shared host: processes share a machine, and at most %u pair%s measured at "
		       "a time\n",
		       mesh->at_once, mesh->at_once == 1 ? " was" : "s were");
	if (mesh->partial[0] != '\0')
		printf("INCOMPLETE: %.85s\n", mesh->partial);

	if (mesh->count <= MESH_COLUMNS_MAX)
		print_matrix(mesh);
	else
		printf("\np50 of round trips, us\n%4s %-24s %24s %24s\n", "", "host",
		       "from it: least, most", "to it: least, most");
	for (uint32_t n = 0; mesh->count > MESH_COLUMNS_MAX && n < mesh->count; n++) {
		printf("%4u %-24.24s", n, mesh->nodes[n].host);
		print_medians_range(mesh, n, true);
		print_medians_range(mesh, n, false);
		printf("\n");
	}
	if (summary->median_ns > 0)
		printf("\nmedians from %.3f to %.3f us; baseline (median of what no group explains) "
		       "%.3f us\n",
		       (double)summary->min_ns / 1e3, (double)summary->max_ns / 1e3,
		       (double)summary->median_ns / 1e3);
	print_causes(mesh, summary);
	print_failures(mesh);
}

int mesh_write_csv(const struct mesh *mesh, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file);

	if (err != 0)
		return err;
	fprintf(file, "from,to,from_host,to_host,samples,min_ns,p50_ns,p50_low_ns,p50_high_ns,"
		      "p90_ns,p99_ns,max_ns\n");
	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (!cell->measured || !cell->quantiles[0].known)
				continue;
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
