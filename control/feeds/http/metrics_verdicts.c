// SPDX-License-Identifier: BSD-3-Clause
// Verdicts as metrics: a count for each verdict, and a series for each node with a problem.
#include "feeds/http/metrics_page.h"

#include <control/snapshot.h>

#include <inttypes.h>
#include <string.h>

static void node_label(const struct snapshot_verdict *row, FILE *out) {
	fputs("node=\"", out);
	page_label(out, row->node, strlen(row->node));
	fputc('"', out);
}

static void row_labels(const struct snapshot_verdict *row, FILE *out) {
	node_label(row, out);
	fprintf(out, ",verdict=\"%s\",reason=\"", verdict_name(row->verdict));
	page_label(out, row->reason, strlen(row->reason));
	fprintf(out, "\",grade=\"%s\",advice=\"%s\",maint=\"%d\"", finding_grade_name(row->grade),
		verdict_advice_name(row->advice), row->maint);
}

static void rows_write(const struct snapshot *snapshot, uint64_t now_ns, FILE *out) {
	uint32_t room = SNAPSHOT_VERDICTS_MAX - snapshot->verdict_rows;

	page_family(
		out, true, "tocsin_node_verdict", "gauge",
		"1 for each node that is not healthy, at most 256 of them"
	);
	for (uint32_t n = 0; n < snapshot->verdict_rows; n++) {
		fputs("tocsin_node_verdict{", out);
		row_labels(&snapshot->rows[n], out);
		fputs("} 1\n", out);
	}
	// Write the absent nodes of the roster after the other rows, if there is room. The start of
	// their state is unknown.
	for (uint32_t n = 0; n < snapshot->missing && n < SNAPSHOT_MISSING_MAX && n < room; n++) {
		struct snapshot_verdict row = {
			.verdict = VERDICT_UNKNOWN,
			.grade = FINDING_UNKNOWN,
			.advice = VERDICT_ADVICE_SHOW,
			.reason = "NeverSeen",
		};

		memcpy(row.node, snapshot->missing_names[n], sizeof(row.node));
		fputs("tocsin_node_verdict{", out);
		row_labels(&row, out);
		fputs("} 1\n", out);
	}
	page_family(
		out, true, "tocsin_node_verdict_age_seconds", "gauge",
		"time since the verdict of the node began"
	);
	for (uint32_t n = 0; n < snapshot->verdict_rows; n++) {
		uint64_t since_ns = snapshot->rows[n].since_ns;
		uint64_t age_ns = now_ns > since_ns ? now_ns - since_ns : 0;

		fputs("tocsin_node_verdict_age_seconds{", out);
		node_label(&snapshot->rows[n], out);
		fprintf(out, "} %.3f\n", (double)age_ns / 1e9);
	}
}

static void gauge_write(FILE *out, const char *name, const char *help, uint32_t value) {
	page_family(out, true, name, "gauge", help);
	fprintf(out, "%s %" PRIu32 "\n", name, value);
}

static void
counter_write(FILE *out, bool open_metrics, const char *name, const char *help, uint64_t value) {
	page_family(out, open_metrics, name, "counter", help);
	fprintf(out, "%s_total %" PRIu64 "\n", name, value);
}

void page_verdicts(const struct snapshot *snapshot, uint64_t now_ns, bool open_metrics, FILE *out) {
	const struct verdict_counts *verdicts = &snapshot->verdicts;

	if (!snapshot->judged)
		return;
	page_family(out, true, "tocsin_nodes", "gauge", "nodes by this agent's verdict");
	for (uint32_t verdict = VERDICT_HEALTHY; verdict < VERDICT_COUNT; verdict++)
		fprintf(out, "tocsin_nodes{verdict=\"%s\"} %u\n",
			verdict_name((enum verdict)verdict), verdicts->of[verdict]);
	page_family(
		out, true, "tocsin_nodes_in_maintenance", "gauge",
		"nodes in maintenance, which raise no alarm"
	);
	fprintf(out, "tocsin_nodes_in_maintenance %u\n", verdicts->maint);
	page_family(
		out, true, "tocsin_maintenance_oldest_seconds", "gauge",
		"age of the oldest order of maintenance that holds, 0 without one"
	);
	fprintf(out, "tocsin_maintenance_oldest_seconds %.0f\n",
		(double)snapshot->maint_age_max_ns / 1e9);
	page_family(
		out, true, "tocsin_verdict_brake", "gauge",
		"whether too many nodes went bad at once for drains to be advised"
	);
	fprintf(out, "tocsin_verdict_brake %d\n", verdicts->brake);
	rows_write(snapshot, now_ns, out);
	gauge_write(
		out, "tocsin_drain_grants",
		"drain grants in force, given in the last ten minutes, or of nodes still drained",
		snapshot->grants
	);
	gauge_write(
		out, "tocsin_drains_withheld",
		"nodes that would be drained, and lack a grant or are only observed",
		snapshot->withheld
	);
	gauge_write(
		out, "tocsin_observes_only", "whether [health] act = no holds all drains back",
		snapshot->observes_only
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_changes", "verdicts that changed",
		verdicts->changes
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_observations",
		"observations of paths that were accepted", verdicts->observations
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_observations_stale",
		"observations that were outdated when they arrived", verdicts->observations_stale
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_observations_unknown",
		"observations of unknown nodes", verdicts->observations_unknown
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_observations_dropped",
		"observations dropped for lack of room", verdicts->observations_dropped
	);
	counter_write(
		out, open_metrics, "tocsin_verdict_statements",
		"statements of nodes about themselves", verdicts->statements
	);
}
