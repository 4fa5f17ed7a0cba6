// SPDX-License-Identifier: BSD-3-Clause
// Ranks that left their communicator in order. They are kept for a while, so that ranks that wait
// for them learn how they left. Answers to COMMS leave a communicator out once all its ranks left.
#include "jobs/host/inside.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEFT_RANKS_MAX 64u		   // kept for one user, the newest ones
#define SENT_AGAIN_NS (2 * RAS_NS_PER_SEC) // between two notices of one departure

struct host_left {
	TAILQ_ENTRY(host_left) of_user;
	uint64_t comm_serial; // of the communicator's record on this node
	uint64_t earliest_ns; // the rank did not leave before this time
	uint64_t sent_ns;     // time of the last notice of the departure
	struct jobs_rank_report report;
};

static bool report_has_key(const struct jobs_rank_report *report, const struct host_comm *key) {
	return report->comm_hash == key->comm_hash && report->host_hash == key->host_hash &&
	       report->process_hash == key->process_hash && report->uid == key->uid &&
	       report->attempt == key->attempt && report->size == key->size;
}

static void left_free(struct host_user *user, struct host_left *left) {
	TAILQ_REMOVE(&user->left, left, of_user);
	user->left_count--;
	free(left);
	user_put(user);
}

// Forget the ranks of a communicator, except those of the record `comm_serial` (0: of none).
static void forget_key(struct host_user *user, const struct host_comm *key, uint64_t comm_serial) {
	struct host_left *left, *next;

	(void)user_hold(user);
	for (left = TAILQ_FIRST(&user->left); left != NULL; left = next) {
		next = TAILQ_NEXT(left, of_user);
		if (report_has_key(&left->report, key) && left->comm_serial != comm_serial)
			left_free(user, left);
	}
	user_put(user);
}

static bool copy_departure(const struct host_rank *rank, struct job_departure *ret_departure) {
	const off_t at =
		(off_t)(offsetof(struct job_page, head.departures) +
			rank->told.comm % JOB_DEPARTURES * sizeof(*ret_departure));

	return pread(rank->process->page_fd, ret_departure, sizeof(*ret_departure), at) ==
	       (ssize_t)sizeof(*ret_departure);
}

static bool word_differs(const _Atomic uint64_t *a, const _Atomic uint64_t *b) {
	// plain memory: our own copies of the page
	return atomic_load_explicit(a, memory_order_relaxed) !=
	       atomic_load_explicit(b, memory_order_relaxed);
}

static bool departures_differ(const struct job_departure *a, const struct job_departure *b) {
	return word_differs(&a->comm, &b->comm) || word_differs(&a->launched, &b->launched) ||
	       word_differs(&a->started, &b->started) ||
	       word_differs(&a->completed, &b->completed) || word_differs(&a->flags, &b->flags);
}

// Read the counts and marks that the library noted when it unregistered the communicator. Returns
// false if it noted none, or a later communicator of the process has replaced them.
static bool read_departure(const struct host_rank *rank, struct jobs_rank_report *report) {
	struct job_departure departure, again;
	uint32_t flags;

	// The library clears the number before it replaces the counts. So counts of another
	// communicator can be in the first copy, but not beside the same number in the second.
	if (!copy_departure(rank, &departure) || !copy_departure(rank, &again) ||
	    atomic_load_explicit(&departure.comm, memory_order_relaxed) != rank->told.comm ||
	    departures_differ(&departure, &again))
		return false;
	report->launched = atomic_load_explicit(&departure.launched, memory_order_relaxed);
	report->started = atomic_load_explicit(&departure.started, memory_order_relaxed);
	report->completed = atomic_load_explicit(&departure.completed, memory_order_relaxed);
	flags = (uint32_t)atomic_load_explicit(&departure.flags, memory_order_relaxed);
	report->finalized = (flags & JOB_MARK_FINALIZED) != 0;
	report->destroyed = (flags & JOB_MARK_DESTROYED) != 0;
	report->aborted = (flags & JOB_MARK_ABORTED) != 0;
	sample_clamp_counts(report);
	return true;
}

// A packet of a connected process arrived after the last turn that served all. Without a connection
// only the last sample proves that the rank was there.
static uint64_t earliest_departure_ns(const struct host_rank *rank) {
	uint64_t seen_ns = rank->report.attached ? loop_all_served_ns(rank->process->host->loop)
						 : rank->report.sampled_ns;

	return seen_ns > rank->since_ns ? seen_ns : rank->since_ns;
}

void departed_rank_keep(struct host_rank *rank, enum jobs_left how) {
	struct host_user *user = rank->process->user;
	const struct host_comm *comm = rank->comm;
	struct host_left *left, *at;
	uint32_t count = 0;

	if (comm == NULL)
		return;
	agree_add_departed_ranks(user->host, rank->comm, &rank->told.rank, 1);
	// A later attempt with the same key makes this one uninteresting.
	if (comm->is_past)
		return;
	left = calloc(1, sizeof(*left));
	if (left == NULL)
		return;
	left->report = rank->report;
	// Without counts the rank would seem to have launched nothing. A job may be closed before
	// the agent hears what it unregistered; a rank that its page still has was just sampled.
	if (!read_departure(rank, &left->report) &&
	    (how == JOBS_LEFT_UNREGISTERED || !rank->page_had_comm)) {
		free(left);
		return;
	}
	left->comm_serial = comm->serial;
	left->earliest_ns = earliest_departure_ns(rank);
	left->report.left = (uint8_t)how;
	left->report.exited_ns = loop_now_ns(user->host->loop);
	left->report.process_state = JOBS_PROCESS_UNKNOWN;
	left->report.signature_count = 0;
	left->report.knows &= JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED;
	TAILQ_INSERT_TAIL(&user->left, left, of_user);
	user->left_count++;
	(void)user_hold(user);
	if (user->left_count > LEFT_RANKS_MAX)
		left_free(user, TAILQ_FIRST(&user->left));
	TAILQ_FOREACH(at, &user->left, of_user) {
		count += at->comm_serial == comm->serial;
	}
	if (count == comm->size)
		forget_key(user, comm, 0); // all its ranks were here, and left
}

// The departed ranks of one notice, and the earliest time at which one of them may have left.
struct departures {
	uint32_t ranks[DEPARTURES_MAX], count;
	uint64_t earliest_ns;
};

// Add a rank, unless the notice is full or a notice of the rank was sent a moment ago.
static void add_departure(
	struct departures *departures,
	uint32_t rank,
	uint64_t earliest_ns,
	uint64_t *sent_ns,
	uint64_t now_ns
) {
	if (departures->count == DEPARTURES_MAX ||
	    (*sent_ns != 0 && now_ns - *sent_ns < SENT_AGAIN_NS))
		return;
	*sent_ns = now_ns;
	departures->ranks[departures->count++] = rank;
	if (earliest_ns < departures->earliest_ns)
		departures->earliest_ns = earliest_ns;
}

static void add_departures_of_user(
	struct departures *departures, struct host_user *user, const struct host_comm *key
) {
	const uint64_t now_ns = loop_now_ns(user->host->loop);
	struct host_process *process;
	struct host_left *left;

	TAILQ_FOREACH(left, &user->left, of_user) {
		if (report_has_key(&left->report, key))
			add_departure(
				departures, left->report.rank, left->earliest_ns, &left->sent_ns,
				now_ns
			);
	}
	TAILQ_FOREACH(process, &user->ended, of_end) {
		for (struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next)
			if (report_has_key(&rank->report, key) &&
			    (rank->report.finalized || rank->report.destroyed))
				add_departure(
					departures, rank->report.rank, process->alive_ns,
					&rank->departure_sent_ns, now_ns
				);
	}
}

void departed_ranks_notify(struct jobhost *host, const struct host_comm *key) {
	struct departures departures = {.earliest_ns = UINT64_MAX};
	struct host_user *user;

	LIST_FOREACH(user, &host->users, all) {
		add_departures_of_user(&departures, user, key);
	}
	if (departures.count > 0)
		notice_send_departures(
			host, key, departures.ranks, departures.count, departures.earliest_ns
		);
}

bool departed_rank_begins_attempt(
	struct host_user *user,
	const struct host_comm *key,
	const struct host_comm *comm,
	uint32_t number
) {
	const uint64_t serial = comm != NULL ? comm->serial : 0;
	const struct host_left *left;
	bool has_left = false;

	TAILQ_FOREACH(left, &user->left, of_user) {
		has_left =
			has_left || (left->comm_serial == serial && left->report.rank == number &&
				     report_has_key(&left->report, key));
	}
	forget_key(user, key, has_left ? 0 : serial);
	return has_left;
}

uint32_t departed_ranks_select(
	struct host_user *user, const struct jobs_rank_report **ret_reports, uint32_t room
) {
	struct host_left *left;
	uint32_t count = 0;

	TAILQ_FOREACH_REVERSE(left, &user->left, user_left, of_user) {
		if (count == room)
			break;
		left->report.sampled_ns = loop_now_ns(user->host->loop);
		ret_reports[count++] = &left->report;
	}
	return count;
}

void departed_ranks_expire(struct host_user *user, uint64_t before_ns) {
	struct host_left *left;

	while ((left = TAILQ_FIRST(&user->left)) != NULL && left->report.exited_ns <= before_ns)
		left_free(user, left);
}
