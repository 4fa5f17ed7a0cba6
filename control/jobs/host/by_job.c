// SPDX-License-Identifier: BSD-3-Clause
// Sums of the communicators and ranks of this node, by job.
#include "jobs/host/inside.h"

#include <string.h>

_Static_assert(JOBHOST_ID_BYTES == JOB_ID_BYTES, "the id of a job as it says it");

// Returns NULL if the table has no room for another job.
static struct jobhost_job *
find_or_add_job(struct job_sums *sums, const struct host_process *process) {
	uint32_t of_user = 0;

	for (uint32_t n = 0; n < sums->count; n++) {
		struct jobhost_job *job = &sums->jobs[n];

		of_user += job->user == process->uid;
		if (job->user == process->uid && strcmp(job->id, process->job_id) == 0)
			return job;
	}
	if (sums->count == JOBHOST_JOBS_MAX || of_user == JOBHOST_JOBS_MAX / 2)
		return NULL;
	sums->jobs[sums->count] = (struct jobhost_job){.user = process->uid};
	memcpy(sums->jobs[sums->count].id, process->job_id, JOB_ID_BYTES);
	return &sums->jobs[sums->count++];
}

void job_sums_add(struct job_sums *sums, const struct host_process *process) {
	struct jobhost_job *job = process->exited_ns == 0 ? find_or_add_job(sums, process) : NULL;

	sums->left += process->exited_ns == 0 && job == NULL;
	for (const struct host_rank *rank = process->ranks; job != NULL && rank != NULL;
	     rank = rank->next) {
		const struct host_comm *comm = rank->comm;

		job->ranks++;
		// If a communicator has several local ranks, count its sums only for the rank that
		// registered last.
		if (comm == NULL || comm->ranks != rank)
			continue;
		job->gone += comm->gone_count;
		job->waiting += comm->stall_kind == TOCSIN_COMM_WAITING;
		job->stuck += comm->stall_kind == TOCSIN_COMM_STUCK;
	}
}

uint32_t jobhost_jobs(
	const struct jobhost *host,
	struct jobhost_job ret_jobs[static JOBHOST_JOBS_MAX],
	uint32_t *ret_left
) {
	memcpy(ret_jobs, host->sums.jobs, host->sums.count * sizeof(*ret_jobs));
	*ret_left = host->sums.left;
	return host->sums.count;
}
