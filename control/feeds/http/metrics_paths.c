// SPDX-License-Identifier: BSD-3-Clause
// Metrics of this node's steady paths: to its neighbours, and of its devices to themselves. Paths
// probed in rotation have no metrics, because their number grows with the square of the number of
// nodes.
#include "feeds/http/metrics_page.h"

#include <control/snapshot.h>

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

// Write the name and the labels, without the closing brace.
static void labels_write(const struct snapshot_path *path, const char *name, FILE *out) {
	const struct ras_path_row *row = &path->row;

	fprintf(out, "%s{peer=\"", name);
	page_label(out, path->peer, strlen(path->peer));
	fputs("\",device=\"", out);
	page_label(out, row->device, strlen(row->device));
	fputs("\",peer_device=\"", out);
	page_label(out, row->peer_device, strlen(row->peer_device));
	fputc('"', out);
}

static void seconds_write(
	const struct snapshot_path *path,
	const char *name,
	const char *more,
	uint64_t time_ns,
	FILE *out
) {
	if (time_ns == 0)
		return; // unknown; 0 would look fast
	labels_write(path, name, out);
	fprintf(out, "%s} %" PRIu64 ".%09" PRIu64 "\n", more, time_ns / 1000000000,
		time_ns % 1000000000);
}

static_assert(SNAPSHOT_PATHS_MAX == 320, "as the page says");

static void times_write(const struct snapshot *snapshot, FILE *out) {
	static const char latency[] = "tocsin_path_latency_seconds";
	static const char usual[] = "tocsin_path_baseline_seconds";

	page_family(
		out, true, latency, "summary",
		"time to read 8 bytes: median of the last window, 0.99 of the last 128 reads"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		seconds_write(path, latency, ",quantile=\"0.5\"", path->row.median_ns, out);
		seconds_write(path, latency, ",quantile=\"0.99\"", path->row.p99_ns, out);
	}
	page_family(out, true, usual, "gauge", "usual median of the path, as learned");
	for (uint32_t n = 0; n < snapshot->path_count; n++)
		seconds_write(
			&snapshot->paths[n], usual, "", snapshot->paths[n].row.baseline_ns, out
		);
}

static void gpu_labels_write(const struct snapshot_path *path, const char *name, FILE *out) {
	labels_write(path, name, out);
	fprintf(out, ",gpu=\"%u\"", path->gpu.ordinal);
}

static void gpu_times_write(const struct snapshot *snapshot, FILE *out) {
	static const char latency[] = "tocsin_path_gpu_latency_seconds";
	static const struct {
		const char *label;
		size_t at;
	} quantiles[] = {
		{"0.5", offsetof(struct fabric_gpu_path, median_ns)},
		{"0.99", offsetof(struct fabric_gpu_path, p99_ns)},
	};

	page_family(out, true, latency, "summary", "time to read 8 bytes of a GPU's memory");
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		for (size_t k = 0; k < sizeof(quantiles) / sizeof(quantiles[0]); k++) {
			uint64_t time_ns;

			memcpy(&time_ns, (const char *)&path->gpu + quantiles[k].at,
			       sizeof(time_ns));
			if (!path->gpu.shown || time_ns == 0)
				continue;
			gpu_labels_write(path, latency, out);
			fprintf(out, ",quantile=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n",
				quantiles[k].label, time_ns / 1000000000, time_ns % 1000000000);
		}
	}
}

static void gpu_paths_write(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	page_family(
		out, true, "tocsin_path_gpu_seen", "gauge",
		"1 for each steady path to a node that shows GPU memory, by how that is read"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		if (!path->gpu.shown)
			continue;
		gpu_labels_write(path, "tocsin_path_gpu_seen", out);
		fprintf(out, ",seen=\"%s\"} 1\n", fabric_gpu_seen_name(path->gpu.seen));
	}
	gpu_times_write(snapshot, out);
	page_family(
		out, open_metrics, "tocsin_path_gpu_probes", "counter",
		"reads of a GPU's memory over the path"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		if (!snapshot->paths[n].gpu.shown)
			continue;
		gpu_labels_write(&snapshot->paths[n], "tocsin_path_gpu_probes_total", out);
		fprintf(out, "} %" PRIu64 "\n", snapshot->paths[n].gpu.probes);
	}
	page_family(
		out, open_metrics, "tocsin_path_gpu_failed", "counter",
		"reads of a GPU's memory that failed while the path was good"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct fabric_gpu_path *gpu = &snapshot->paths[n].gpu;

		if (!gpu->shown)
			continue;
		gpu_labels_write(&snapshot->paths[n], "tocsin_path_gpu_failed_total", out);
		fprintf(out, "} %" PRIu64 "\n", gpu->silent + gpu->refused + gpu->wrong);
	}
}

void page_paths(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	page_family(
		out, true, "tocsin_path_seen", "gauge",
		"1 for each steady path, by how this node reads it; at most 320 paths"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct snapshot_path *path = &snapshot->paths[n];

		labels_write(path, "tocsin_path_seen", out);
		fprintf(out, ",seen=\"%s\"} 1\n",
			observation_kind_name((enum observation_kind)path->row.seen));
	}
	times_write(snapshot, out);
	page_family(
		out, open_metrics, "tocsin_path_probes", "counter", "reads of the path, of any size"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		const struct ras_path_row *row = &snapshot->paths[n].row;

		labels_write(&snapshot->paths[n], "tocsin_path_probes_total", out);
		fprintf(out, "} %" PRIu64 "\n", row->count + row->lost);
	}
	page_family(
		out, open_metrics, "tocsin_path_lost", "counter",
		"reads of the path that were not answered in time"
	);
	for (uint32_t n = 0; n < snapshot->path_count; n++) {
		labels_write(&snapshot->paths[n], "tocsin_path_lost_total", out);
		fprintf(out, "} %" PRIu64 "\n", snapshot->paths[n].row.lost);
	}
	page_family(
		out, true, "tocsin_paths_left_out", "gauge",
		"steady paths without series, because only 320 have them"
	);
	fprintf(out, "tocsin_paths_left_out %" PRIu32 "\n", snapshot->paths_left);
	gpu_paths_write(snapshot, open_metrics, out);
}
