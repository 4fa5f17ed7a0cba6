// SPDX-License-Identifier: BSD-3-Clause
// Congestion counters of this node's ports, and its jobs, as metrics.
#include "feeds/http/metrics_page.h"

#include <control/snapshot.h>

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static void labels_write(const struct congestion_port *port, const char *name, FILE *out) {
	fprintf(out, "%s{device=\"", name);
	page_label(out, port->device, strlen(port->device));
	fprintf(out, "\",port=\"%u\"", port->number);
}

static void paused_write(
	const struct congestion_port *port, const char *direction, uint32_t permille, FILE *out
) {
	if (permille == UINT32_MAX)
		return;
	labels_write(port, "tocsin_port_paused_ratio", out);
	fprintf(out, ",direction=\"%s\"} %u.%03u\n", direction, permille / 1000, permille % 1000);
}

void page_congestion(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	// These are the driver's counters: they start at 0 again when the driver or the device is
	// reset.
	page_family(
		out, open_metrics, "tocsin_port_congestion", "counter",
		"congestion counters of a port of an RDMA device, by kind"
	);
	for (uint32_t n = 0; n < snapshot->port_count; n++) {
		const struct congestion_port *port = &snapshot->ports[n];

		for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++) {
			if (port->totals[kind] == CONGESTION_UNKNOWN)
				continue;
			labels_write(port, "tocsin_port_congestion_total", out);
			fprintf(out, ",kind=\"%s\"} %" PRIu64 "\n",
				congestion_name((enum congestion_kind)kind), port->totals[kind]);
		}
	}
	page_family(
		out, true, "tocsin_port_paused_ratio", "gauge",
		"share of the time since the previous read that the port sent or obeyed pauses"
	);
	for (uint32_t n = 0; n < snapshot->port_count; n++) {
		const struct congestion_port *port = &snapshot->ports[n];

		paused_write(port, "sent", port->sent_permille, out);
		paused_write(port, "received", port->received_permille, out);
	}
}

static const struct {
	const char *name, *help;
	size_t offset; // offset of a uint32_t member
} families[] = {
	{"tocsin_job_by_id_ranks", "ranks of communicators that the job holds on this node",
	 offsetof(struct jobhost_job, ranks)},
	{"tocsin_job_by_id_gone", "ranks of these communicators, on all nodes, that are gone",
	 offsetof(struct jobhost_job, gone)},
	{"tocsin_job_by_id_waiting", "communicators whose ranks wait for a rank",
	 offsetof(struct jobhost_job, waiting)},
	{"tocsin_job_by_id_stuck", "communicators that are stuck",
	 offsetof(struct jobhost_job, stuck)},
};

void page_jobs(const struct snapshot *snapshot, FILE *out) {
	for (size_t family = 0; family < sizeof(families) / sizeof(families[0]); family++) {
		page_family(out, true, families[family].name, "gauge", families[family].help);
		for (uint32_t n = 0; n < snapshot->job_count; n++) {
			const struct jobhost_job *job = &snapshot->jobs[n];
			uint32_t value;

			memcpy(&value, (const char *)job + families[family].offset, sizeof(value));
			fprintf(out, "%s{job=\"", families[family].name);
			page_label(out, job->id, strlen(job->id));
			fprintf(out, "\",user=\"%" PRIu32 "\"} %" PRIu32 "\n", job->user, value);
		}
	}
	page_family(
		out, true, "tocsin_job_processes_left_out", "gauge",
		"processes of jobs without series: beyond 32 in total, or beyond 16 of one user"
	);
	fprintf(out, "tocsin_job_processes_left_out %" PRIu32 "\n", snapshot->jobs_left);
}
