// SPDX-License-Identifier: BSD-3-Clause
// The failed set of a communicator, received from the agent in parts.
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool ranks_ascend(const uint32_t *ranks, uint32_t count, uint32_t size) {
	for (uint32_t n = 0; n < count; n++)
		if (ranks[n] >= size || (n > 0 && ranks[n] <= ranks[n - 1]))
			return false;
	return true;
}

static bool part_is_valid(const struct tocsin_comm *comm, const struct job_failed *said) {
	return said->count <= JOB_FAILED_MAX && said->total <= comm->told.size &&
	       said->first <= said->total && said->count <= said->total - said->first &&
	       said->agreement <= TOCSIN_UNDECIDED &&
	       ranks_ascend(said->ranks, said->count, comm->told.size);
}

bool failed_set_receive(struct tocsin_comm *comm, const struct job_failed *said) {
	uint32_t *coming;

	if (!part_is_valid(comm, said))
		return false;
	comm->failed.agreement = (enum tocsin_agreement)said->agreement;
	if (said->view <= comm->failed.view || said->total == 0)
		return true; // the set is known: only `agreement` may be new
	if (said->first == 0) {
		coming = malloc(said->total * sizeof(*coming));
		if (coming == NULL)
			return true; // no memory: ignore the packet
		free(comm->coming);
		comm->coming = coming;
		comm->partial_total = said->total;
		comm->partial_view = said->view;
		comm->partial_count = 0;
	}
	if (comm->coming == NULL || said->view != comm->partial_view ||
	    said->first != comm->partial_count || said->total != comm->partial_total)
		return true; // an earlier part is missing
	memcpy(comm->coming + said->first, said->ranks, said->count * sizeof(said->ranks[0]));
	comm->partial_count += said->count;
	if (comm->partial_count != comm->partial_total ||
	    !ranks_ascend(comm->coming, comm->partial_total, comm->told.size))
		return true;
	free(comm->failed.ranks);
	comm->failed.ranks = comm->coming;
	comm->failed.count = comm->partial_total;
	comm->failed.view = comm->partial_view;
	comm->coming = NULL;
	comm->partial_total = comm->partial_count = 0;
	pthread_cond_broadcast(&comm->job->changed);
	return true;
}

bool failed_set_add_gone(struct tocsin_comm *comm, uint32_t rank) {
	uint32_t at = comm->gone_count;
	uint32_t *grown;

	for (uint32_t n = 0; n < comm->gone_count; n++)
		if (comm->gone[n] == rank)
			return false;
	grown = realloc(comm->gone, (comm->gone_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return true; // without memory a repeated event is better than a lost one
	comm->gone = grown;
	while (at > 0 && grown[at - 1] > rank) {
		grown[at] = grown[at - 1];
		at--;
	}
	grown[at] = rank;
	comm->gone_count++;
	return true;
}

void failed_set_fini(struct tocsin_comm *comm) {
	free(comm->gone);
	free(comm->failed.ranks);
	free(comm->coming);
}

int tocsin_comm_failed(
	struct tocsin_comm *comm,
	struct tocsin_failed_set *ret_set,
	uint32_t *ret_ranks,
	uint32_t rank_max
) {
	struct tocsin_job *job = comm->job;
	size_t size = ret_set->struct_size;
	struct tocsin_failed_set set = {.struct_size = size};
	uint32_t copied;

	if (size < offsetof(struct tocsin_failed_set, count) + sizeof(set.count) ||
	    (ret_ranks == NULL && rank_max > 0))
		return -EINVAL;
	pthread_mutex_lock(&job->mutex);
	set.agreement =
		comm->state == TOCSIN_JOB_CONNECTED ? comm->failed.agreement : TOCSIN_UNDECIDED;
	set.view = comm->failed.view;
	set.count = comm->failed.count;
	copied = set.count < rank_max ? set.count : rank_max;
	if (copied > 0)
		memcpy(ret_ranks, comm->failed.ranks, copied * sizeof(*ret_ranks));
	pthread_mutex_unlock(&job->mutex);
	memcpy(ret_set, &set, size < sizeof(set) ? size : sizeof(set));
	return 0;
}

int tocsin_comm_wait_failed(struct tocsin_comm *comm, uint64_t view, uint64_t timeout_ns) {
	struct tocsin_job *job = comm->job;
	uint64_t now_ns = job_now_ns();
	uint64_t at_ns = timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
	struct timespec at;
	int err = 0;

	if (at_ns > (uint64_t)INT32_MAX * NS_PER_S)
		// the largest time that every timespec can hold
		at_ns = (uint64_t)INT32_MAX * NS_PER_S;
	at.tv_sec = (time_t)(at_ns / NS_PER_S);
	at.tv_nsec = (long)(at_ns % NS_PER_S);
	pthread_mutex_lock(&job->mutex);
	while (comm->failed.view <= view && err == 0)
		err = -pthread_cond_timedwait(&job->changed, &job->mutex, &at);
	if (comm->failed.view > view)
		err = 0;
	pthread_mutex_unlock(&job->mutex);
	return err;
}
