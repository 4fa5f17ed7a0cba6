// SPDX-License-Identifier: BSD-3-Clause
// Selects the ranks of this node for an answer to COMMS. Each user has a share of the answer, so a
// user with thousands of communicators displaces no other user's.
#include "jobs/host/inside.h"

#include <lib/must.h>

#include <jobs/share.h>
#include <stdlib.h>

// Ranks of one user in an answer. A merge of some thousand ranks takes some milliseconds.
#define REPORTS_PER_USER 2048u

struct selection {
	const struct jobs_rank_report **reports;
	uint32_t count, limit;
};

static uint32_t user_reports(const struct host_user *user) {
	return user->ranks + user->ended_ranks + user->left_count;
}

// Return the largest limit for each user with which the reports of all users fit.
static uint32_t fair_limit(const struct jobhost *host, uint32_t max) {
	uint32_t low = 0, high = REPORTS_PER_USER;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;
		const struct host_user *user;
		uint64_t sum = 0;

		LIST_FOREACH(user, &host->users, all) {
			sum += user_reports(user) < middle ? user_reports(user) : middle;
		}
		if (sum <= max)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void select_report(struct selection *selection, const struct jobs_rank_report *report) {
	if (selection->count < selection->limit)
		selection->reports[selection->count++] = report;
}

static int compare_reports(const void *a, const void *b) {
	const struct jobs_rank_report *const *left = a;
	const struct jobs_rank_report *const *right = b;

	return jobs_report_compare(*left, *right);
}

// A communicator that registered earlier comes first: it is usually the one of all ranks, and the
// agents of a job then leave out the same ones.
static uint32_t select_user_reports(
	struct host_user *user, uint32_t limit, const struct jobs_rank_report **ret_reports
) {
	const uint32_t living_min = user->ranks < limit / 2 ? user->ranks : limit / 2;
	struct selection selection = {.reports = ret_reports, .limit = limit - living_min};
	const struct host_comm *comm;
	struct host_process *ended;

	TAILQ_FOREACH_REVERSE(ended, &user->ended, user_ended, of_end) {
		for (struct host_rank *rank = ended->ranks; rank != NULL; rank = rank->next) {
			// An ended rank is not sampled, but the time since its exit must go on.
			rank->report.sampled_ns = loop_now_ns(user->host->loop);
			select_report(&selection, &rank->report);
		}
	}
	selection.limit = limit;
	TAILQ_FOREACH(comm, &user->comms, of_user) {
		for (struct host_rank *rank = comm->ranks; rank != NULL && selection.count < limit;
		     rank = rank->next_of_comm) {
			// The sample may be a second old. Ends of other ranks are as old as now.
			rank->report.shown_ns = loop_now_ns(user->host->loop);
			select_report(&selection, &rank->report);
		}
		if (selection.count == limit)
			break;
	}
	selection.count +=
		departed_ranks_select(user, ret_reports + selection.count, limit - selection.count);
	qsort(ret_reports, selection.count, sizeof(struct jobs_rank_report *), compare_reports);
	return selection.count;
}

static int compare_users(const void *a, const void *b) {
	const struct host_user *const *left = a, *const *right = b;

	return user_reports(*left) < user_reports(*right)
		       ? -1
		       : user_reports(*left) > user_reports(*right);
}

uint32_t jobhost_select_reports(
	struct jobhost *host, const struct jobs_rank_report **ret_reports, uint32_t max
) {
	const uint32_t limit = fair_limit(host, max);
	struct host_user **users, *user;
	uint32_t count = 0, selected = 0;

	users = calloc((size_t)host->users_by_uid.count + 1, sizeof(struct host_user *));
	host->counters.unshown = 0;
	if (users == NULL)
		return 0;
	LIST_FOREACH(user, &host->users, all) {
		users[count++] = user;
	}
	qsort(users, count, sizeof(struct host_user *), compare_users);
	for (uint32_t n = 0; n < count; n++) {
		const uint32_t own = user_reports(users[n]), left = max - selected;
		const uint32_t taken = select_user_reports(
			users[n], limit < left ? limit : left, ret_reports + selected
		);

		// After a reload of subordinate uids, a communicator may have ranks of other users.
		host->counters.unshown += own > taken ? own - taken : 0;
		selected += taken;
	}
	must(selected <= max);
	free(users);
	return selected;
}

void jobhost_count_unshown(struct jobhost *host, uint32_t count) {
	host->counters.unshown += count;
}
