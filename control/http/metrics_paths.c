// SPDX-License-Identifier: BSD-3-Clause
// This node's steady paths as metrics: to its neighbours and of its devices with themselves. Those
// that are read in turn have none, or the number of series would be the square of that of nodes.
#include "page.h"

#include <control/snapshot.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

// Up to the brace that ends them.
static void labels(const struct snapshot_path *path, const char *name, FILE *out) {
	const struct ras_path_row *row = &path->row;

	fprintf(out, "%s{peer=\"", name);
	page_label(out, path->peer, strlen(path->peer));
	fputs("\",device=\"", out);
	page_label(out, row->device, strlen(row->device));
	fputs("\",peer_device=\"", out);
	page_label(out, row->peer_device, strlen(row->peer_device));
	fputc('"', out);
}

static void
seconds(const struct snapshot_path *path,
	const char *name,
	const char *more,
	uint64_t time_ns,
	FILE *out) {
	if (time_ns == 0)
		return; // not known: 0 would be fast
	labels(path, name, out);
	fprintf(out, "%s} %" PRIu64 ".%09" PRIu64 "\n", more, time_ns / 1000000000,
		time_ns % 1000000000);
}

static_assert(SNAPSHOT_PATHS_MAX == 320, "as the page says");

static void seen(const struct snapshot *snapshot, FILE *out) {
	page_family(
		out, true, "tocsin_path_seen", "gauge",
		"1 for each steady path, as this node reads it; at most 320 of them"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		labels(path, "tocsin_path_seen", out);
		fprintf(out, ",seen=\"%s\"} 1\n", sight_kind_name((enum sight_kind)path->row.seen));
	}
}

static void times(const struct snapshot *snapshot, FILE *out) {
	static const char latency[] = "tocsin_path_latency_seconds";
	static const char usual[] = "tocsin_path_baseline_seconds";

	page_family(
		out, true, latency, "summary",
		"time to read 8 bytes: the median of the last window, the rest of the last 128"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		seconds(path, latency, ",quantile=\"0.5\"", path->row.median_ns, out);
		seconds(path, latency, ",quantile=\"0.99\"", path->row.p99_ns, out);
	}
	page_family(out, true, usual, "gauge", "the median that the path has learnt to be its own");
	for (uint32_t n = 0; n < snapshot->path_count; n++)
		seconds(&snapshot->paths[n], usual, "", snapshot->paths[n].row.baseline_ns, out);
}

static void probes(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	page_family(
		out, open_metrics, "tocsin_path_probes", "counter", "reads of the path, of any size"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct ras_path_row *row = &snapshot->paths[n].row;

		labels(&snapshot->paths[n], "tocsin_path_probes_total", out);
		fprintf(out, "} %" PRIu64 "\n", row->count + row->lost);
	}
	page_family(
		out, open_metrics, "tocsin_path_lost", "counter", "of these, not answered in time"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		labels(&snapshot->paths[n], "tocsin_path_lost_total", out);
		fprintf(out, "} %" PRIu64 "\n", snapshot->paths[n].row.lost);
	}
}

static void left(const struct snapshot *snapshot, FILE *out) {
	page_family(
		out, true, "tocsin_paths_left_out", "gauge",
		"steady paths beyond those that have series here"
	);
	fprintf(out, "tocsin_paths_left_out %" PRIu32 "\n", snapshot->paths_left);
}

void page_paths(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	seen(snapshot, out);
	times(snapshot, out);
	probes(snapshot, open_metrics, out);
	left(snapshot, out);
}
