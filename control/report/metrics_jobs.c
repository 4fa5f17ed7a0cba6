// SPDX-License-Identifier: BSD-3-Clause
// Jobs with ranks on this node as metrics, a bounded number of them.
#include "report/metrics_page.h"

#include <control/snapshot.h>

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *help;
	size_t offset; // of a uint32_t
} families[] = {
	{"tocsin_job_by_id_ranks", "ranks of communicators that the job holds on this node",
	 offsetof(struct jobhost_job, ranks)},
	{"tocsin_job_by_id_gone", "ranks of these communicators, on all nodes, that are gone",
	 offsetof(struct jobhost_job, gone)},
	{"tocsin_job_by_id_waiting", "communicators whose ranks wait for one of them",
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
		"processes of jobs beyond the 32, and the 16 of one user, that have series"
	);
	fprintf(out, "tocsin_job_processes_left_out %" PRIu32 "\n", snapshot->jobs_left);
}
