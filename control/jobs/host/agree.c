// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a communicator are gone, and the set that all its agents agree on.
//
// The coordinator, the agent of the lowest rank that neither is gone nor left in order, numbers the
// sets. From high bits to
// low, a number holds that rank, the agent's start and a count. So a later coordinator always has
// larger numbers, and two agents never use the same one. An agent rejects a set that lacks a rank
// which it knows to be gone. It sends that rank to the coordinator, which then numbers a new set.
#include "jobs/host/inside.h"

#include <ras/ras.h>

#include <stdlib.h>
#include <string.h>

#define RANK_SHIFT 44
#define START_SHIFT 20
#define START_MASK 0xffffffu
#define COUNT_MASK 0xfffffu
#define RESEND_FIRST_NS RAS_NS_PER_SEC
#define RESEND_SEEN_BY_ALL_NS (10 * RAS_NS_PER_SEC)
#define RESEND_LONGEST_NS (30 * RAS_NS_PER_SEC)
#define RESEND_AGREED_LONGEST_NS (300 * RAS_NS_PER_SEC)
// how long a communicator without ranks here is kept for resends
#define KEEP_EMPTY_NS (60 * RAS_NS_PER_SEC)

const struct gone *agree_find_gone_rank(const struct host_comm *comm, uint32_t rank) {
	uint32_t low = 0, high = comm->gone_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (comm->gone[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < comm->gone_count && comm->gone[low].rank == rank ? &comm->gone[low] : NULL;
}

// Return the rank that was lost last.
static const struct gone *newest_gone_rank(const struct host_comm *comm) {
	const struct gone *newest = &comm->gone[0];

	for (uint32_t n = 1; n < comm->gone_count; n++)
		if (comm->gone[n].happened_ns >= newest->happened_ns)
			newest = &comm->gone[n];
	return newest;
}

bool agree_has_majority(const struct jobhost *host) {
	struct ras_view view;

	if (host->overlay == NULL)
		return true;
	ras_view(overlay_ras(host->overlay), &view);
	return !view.brake && !view.waits && 2 * view.unreachable < view.alive;
}

// `ranks` ascend.
static bool contains_rank(const uint32_t *ranks, uint32_t count, uint32_t rank) {
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ranks[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && ranks[low] == rank;
}

static bool rank_has_departed(const struct host_comm *comm, uint32_t rank) {
	return contains_rank(comm->departed, comm->departed_count, rank);
}

// Return the lowest rank that remains if it is local, else NULL. No rank remains below the one that
// numbered the agreed set.
static const struct host_rank *
coordinator_rank(struct jobhost *host, const struct host_comm *comm) {
	uint32_t rank = (uint32_t)(comm->view >> RANK_SHIFT);

	while (rank < comm->size &&
	       (agree_find_gone_rank(comm, rank) != NULL || rank_has_departed(comm, rank)))
		rank++;
	return rank_find_in_comm(host, comm, rank);
}

bool agree_is_coordinator(struct jobhost *host, const struct host_comm *comm) {
	return coordinator_rank(host, comm) != NULL;
}

static bool
store_agreed_set(struct host_comm *comm, uint64_t view, const uint32_t *ranks, uint32_t count) {
	uint32_t *copy = malloc((count + 1) * sizeof(*copy));

	if (copy == NULL)
		return false;
	memcpy(copy, ranks, count * sizeof(*copy));
	free(comm->agreed);
	comm->agreed = copy;
	comm->agreed_count = count;
	comm->view = view;
	return true;
}

// Make all ranks that are known to be gone the agreed set.
static bool store_gone_set(struct host_comm *comm, uint64_t view) {
	uint32_t *ranks = malloc((comm->gone_count + 1) * sizeof(*ranks));
	bool done;

	if (ranks == NULL)
		return false;
	for (uint32_t n = 0; n < comm->gone_count; n++)
		ranks[n] = comm->gone[n].rank;
	done = store_agreed_set(comm, view, ranks, comm->gone_count);
	free(ranks);
	return done;
}

// Return a number above all numbers used under the same rank and start. An agent without a state
// directory may have the same start as an earlier agent; view_floor covers that case. Returns 0 if
// the count is exhausted.
static uint64_t
next_view_number(const struct jobhost *host, const struct host_comm *comm, uint32_t rank) {
	uint64_t start =
		host->overlay != NULL ? ras_self_incarnation(overlay_ras(host->overlay)) >> 16 : 1;
	uint64_t base = (uint64_t)rank << RANK_SHIFT | (start & START_MASK) << START_SHIFT;
	uint64_t last = comm->view > comm->view_floor ? comm->view : comm->view_floor;

	if (last < base)
		return base + 1;
	return last >> START_SHIFT == base >> START_SHIFT && (last & COUNT_MASK) < COUNT_MASK
		       ? last + 1
		       : 0;
}

// Number the current set. Returns false if another agent is the coordinator, or no set can be
// numbered now.
static bool number_gone_set(struct jobhost *host, struct host_comm *comm) {
	const struct host_rank *by = coordinator_rank(host, comm);
	uint64_t view;

	if (by == NULL || !agree_has_majority(host))
		return false;
	view = next_view_number(host, comm, by->told.rank);
	if (view <= comm->view || !store_gone_set(comm, view))
		return false;
	comm->agreed_set_unsent = !notice_send_agreed_set(host, comm, newest_gone_rank(comm));
	return true;
}

static struct gone make_gone_rank(uint32_t rank, const char *cause, uint64_t happened_ns) {
	struct gone gone = {.rank = rank, .happened_ns = happened_ns, .earliest_ns = happened_ns};

	memcpy(gone.cause, cause, strnlen(cause, sizeof(gone.cause) - 1));
	return gone;
}

// Add the ranks of `more` that are not known yet, in one pass; both lists ascend. Returns how many
// were added, with their ranks in ret_added; 0 without memory or without room for all.
static uint32_t add_gone_ranks(
	struct jobhost *host,
	struct host_comm *comm,
	const struct gone *more,
	uint32_t count,
	uint32_t *ret_added
) {
	uint32_t added = 0, from = comm->gone_count, to, *order;
	struct gone *grown;

	for (uint32_t n = 0; n < count; n++)
		if (agree_find_gone_rank(comm, more[n].rank) == NULL)
			ret_added[added++] = more[n].rank;
	// Limit the ranks in the sets of gone ranks of one user: a job may report any number.
	if (added == 0 || comm->user->gone_ranks + added > GONE_RANKS_PER_USER)
		return 0;
	order = realloc(comm->gone_order, (comm->gone_count + added) * sizeof(*order));
	if (order == NULL)
		return 0;
	comm->gone_order = order;
	grown = realloc(comm->gone, (comm->gone_count + added) * sizeof(*grown));
	if (grown == NULL)
		return 0;
	comm->gone = grown;
	memcpy(order + comm->gone_count, ret_added, added * sizeof(*order));
	to = comm->gone_count + added;
	comm->gone_count = to;
	// Merge from the end, into the room that realloc() added there.
	for (uint32_t n = count; to > from && n > 0; n--) {
		while (from > 0 && grown[from - 1].rank > more[n - 1].rank)
			grown[--to] = grown[--from];
		if (from == 0 || grown[from - 1].rank != more[n - 1].rank)
			grown[--to] = more[n - 1];
	}
	host->counters.gone += added;
	comm->user->gone_ranks += added;
	comm->resend_interval_ns = RESEND_FIRST_NS;
	comm->resend_at_ns = loop_now_ns(host->loop) + RESEND_FIRST_NS;
	return added;
}

bool agree_can_report_rank(const struct host_comm *comm, uint64_t origin, uint32_t rank) {
	// This agent holds the process, so no other agent knows better whether it lives.
	for (const struct host_rank *at = comm->ranks; at != NULL; at = at->next_of_comm)
		if (at->told.rank == rank)
			return false;
	// A rank that ended before the roster was made has no row. If rows place the rank on two
	// agents, one of them lies, and neither is believed.
	for (uint32_t n = 0; n < comm->roster.count; n++) {
		const struct roster_row *row = &comm->roster.rows[n];
		uint32_t behind = rank - row->first;

		if (row->node != origin && rank >= row->first && behind % row->stride == 0 &&
		    behind / row->stride < row->count)
			return false;
	}
	return true;
}

bool agree_can_number_set(
	const struct host_comm *comm, uint64_t origin, const uint32_t *ranks, uint32_t count
) {
	uint32_t lowest = (uint32_t)(comm->view >> RANK_SHIFT);

	while (lowest < comm->size &&
	       (contains_rank(ranks, count, lowest) || rank_has_departed(comm, lowest)))
		lowest++;
	for (const struct host_rank *at = comm->ranks; at != NULL; at = at->next_of_comm)
		if (contains_rank(ranks, count, at->told.rank) &&
		    agree_find_gone_rank(comm, at->told.rank) == NULL)
			return false; // the rank lives here
	return lowest >= comm->size || agree_can_report_rank(comm, origin, lowest);
}

void agree_add_departed_ranks(
	struct jobhost *host, struct host_comm *comm, const uint32_t *ranks, uint32_t count
) {
	for (uint32_t n = 0; n < count; n++) {
		uint32_t at = comm->departed_count, *grown;

		if (ranks[n] >= comm->size || rank_has_departed(comm, ranks[n]) ||
		    comm->user->gone_ranks >= GONE_RANKS_PER_USER)
			continue;
		grown = realloc(comm->departed, (at + 1) * sizeof(*grown));
		if (grown == NULL)
			continue; // its agent reports the rank again
		comm->departed = grown;
		for (; at > 0 && grown[at - 1] > ranks[n]; at--)
			grown[at] = grown[at - 1];
		grown[at] = ranks[n];
		comm->departed_count++;
		comm->user->gone_ranks++;
	}
	if (comm->gone_count != comm->agreed_count && number_gone_set(host, comm))
		comm_send_gone_set(comm);
}

void agree_forget_departed_ranks(struct host_comm *comm) {
	comm->user->gone_ranks -= comm->departed_count;
	free(comm->departed);
	comm->departed = NULL;
	comm->departed_count = 0;
}

void agree_add_gone_rank(
	struct jobhost *host,
	struct host_comm *comm,
	uint32_t rank,
	const char *cause,
	uint64_t happened_ns,
	bool seen_here
) {
	const struct gone gone = make_gone_rank(rank, cause, happened_ns);

	if (rank >= comm->size)
		return;
	if (add_gone_ranks(host, comm, &gone, 1, &rank) == 0) {
		// The sender of this notice has not received the set that holds the rank: send the
		// set again.
		comm->agreed_set_unsent =
			comm->agreed_set_unsent ||
			(!seen_here && agree_is_coordinator(host, comm) &&
			 contains_rank(comm->agreed, comm->agreed_count, gone.rank));
		return;
	}
	if (seen_here)
		(void)notice_send_gone_rank(host, comm, agree_find_gone_rank(comm, rank));
	(void)number_gone_set(host, comm);
	comm_send_gone_set(comm);
}

void agree_add_gone_ranks(
	struct jobhost *host, struct host_comm *comm, const struct gone *gone, uint32_t count
) {
	uint32_t *told = malloc((count + 1) * sizeof(*told));

	if (told != NULL && add_gone_ranks(host, comm, gone, count, told) > 0) {
		// All agents see a node fall, each at its own time, and so does the coordinator:
		// resend later.
		comm->resend_interval_ns = RESEND_SEEN_BY_ALL_NS;
		comm->resend_at_ns = loop_now_ns(host->loop) + RESEND_SEEN_BY_ALL_NS;
		(void)number_gone_set(host, comm);
		comm_send_gone_set(comm);
	}
	free(told);
}

// The cause to record for the ranks of a set, and for its newest rank.
struct set_causes {
	struct gone others;
	const struct gone *newest; // NULL: the set has no rank with a cause of its own
};

// Record the ranks of a set as gone, except those that are recorded already. The ranks ascend and
// are below the communicator's size. Returns the number of ranks added, which are in ret_added.
static uint32_t add_gone_set(
	struct jobhost *host,
	struct host_comm *comm,
	const uint32_t *ranks,
	uint32_t count,
	const struct set_causes *causes,
	uint32_t *ret_added
) {
	struct gone *more = malloc((count + 1) * sizeof(*more));
	const struct gone *newest = causes->newest;
	uint32_t added;

	if (more == NULL)
		return 0;
	for (uint32_t n = 0; n < count; n++) {
		more[n] = newest != NULL && newest->rank == ranks[n] ? *newest : causes->others;
		more[n].rank = ranks[n];
	}
	added = add_gone_ranks(host, comm, more, count, ret_added);
	free(more);
	return added;
}

// Return whether all ranks are known to be gone; false if this agent had no room to add one.
static bool gone_set_is_known(const struct host_comm *comm, const uint32_t *ranks, uint32_t count) {
	for (uint32_t n = 0; n < count; n++)
		if (agree_find_gone_rank(comm, ranks[n]) == NULL)
			return false;
	return true;
}

void agree_apply_set(
	struct jobhost *host,
	struct host_comm *comm,
	uint64_t view,
	const uint32_t *ranks,
	uint32_t count,
	const struct gone *newest
) {
	const struct set_causes causes = {
		make_gone_rank(0, "other agents of its job report it gone", newest->happened_ns),
		newest};
	uint32_t *told;

	if (view <= comm->view || count > GONE_RANKS_PER_USER)
		return;
	for (uint32_t n = 0; n < comm->gone_count; n++)
		if (!contains_rank(ranks, count, comm->gone[n].rank)) {
			(void)notice_send_gone_rank(host, comm, &comm->gone[n]);
			return;
		}
	if (newest->happened_ns <= comm->newest_ns && !gone_set_is_known(comm, ranks, count))
		return;
	told = malloc((count + 1) * sizeof(*told));
	if (told == NULL)
		return;
	(void)add_gone_set(host, comm, ranks, count, &causes, told);
	if (gone_set_is_known(comm, ranks, count) && store_agreed_set(comm, view, ranks, count))
		comm_send_gone_set(comm);
	free(told);
}

// The job sends its set in parts, and the ranks of each part are gone. The last part also restores
// the number of the set, if all parts came in order and no more ranks are known to be gone. In all
// other cases a new, larger number follows.
void agree_restore_set(
	struct jobhost *host, struct host_rank *rank, const struct job_failed *said
) {
	struct set_causes causes = {
		make_gone_rank(0, "gone before the agent restarted", loop_now_ns(host->loop)),
		NULL};
	struct host_comm *comm = rank->comm;
	uint32_t told[JOB_FAILED_MAX];

	causes.others.earliest_ns = 0; // the set does not say when they ended
	if (said->view > comm->view_floor)
		comm->view_floor = said->view;
	if (add_gone_set(host, comm, said->ranks, said->count, &causes, told) > 0)
		comm_send_state(comm);
	if (said->first == 0) {
		rank->returned_view = said->view;
		rank->returned_count = 0;
	}
	// The part must follow the one before, and this agent must have had room for its ranks.
	if (said->view != rank->returned_view || said->first != rank->returned_count ||
	    (said->first > 0 && said->count > 0 && said->ranks[0] <= rank->returned_last) ||
	    !gone_set_is_known(comm, said->ranks, said->count)) {
		rank->returned_view = 0;
		return;
	}
	rank->returned_count += said->count;
	if (said->count > 0)
		rank->returned_last = said->ranks[said->count - 1];
	// The returned ranks ascend, so they differ. All are known to be gone. So both sets are the
	// same if they have the same size.
	if (rank->returned_count == said->total && comm->gone_count == said->total &&
	    said->view > comm->view && store_gone_set(comm, said->view))
		comm_send_gone_set(comm);
}

// An agent that was paused or cut off has missed every notice of that time. The coordinator
// therefore repeats a set that is agreed on, too.
static void resend_gone_ranks(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	bool is_agreed = comm->gone_count == comm->agreed_count;
	uint64_t longest_ns = is_agreed ? RESEND_AGREED_LONGEST_NS : RESEND_LONGEST_NS;

	if (!is_agreed && number_gone_set(host, comm)) {
		comm_send_gone_set(comm);
		return;
	}
	if (is_agreed && agree_is_coordinator(host, comm))
		comm->agreed_set_unsent =
			!notice_send_agreed_set(host, comm, newest_gone_rank(comm));
	for (uint32_t n = 0; !is_agreed && n < comm->gone_count; n++)
		if (!contains_rank(comm->agreed, comm->agreed_count, comm->gone[n].rank) &&
		    !notice_send_gone_rank(host, comm, &comm->gone[n]))
			break;
	comm->resend_interval_ns *= 2;
	if (comm->resend_interval_ns > longest_ns)
		comm->resend_interval_ns = longest_ns;
	comm->resend_at_ns = now_ns + comm->resend_interval_ns;
}

bool agree_can_free_comm(const struct host_comm *comm, uint64_t now_ns) {
	return comm->ranks == NULL &&
	       (comm->gone_count == comm->agreed_count || now_ns >= comm->empty_ns + KEEP_EMPTY_NS);
}

bool agree_tick(struct jobhost *host, struct host_comm *comm, uint64_t now_ns) {
	if (agree_can_free_comm(comm, now_ns)) {
		comm_destroy(host, comm);
		return false;
	}
	if (comm->agreed_set_unsent)
		comm->agreed_set_unsent =
			!notice_send_agreed_set(host, comm, newest_gone_rank(comm));
	else if (comm->gone_count > 0 && now_ns >= comm->resend_at_ns)
		resend_gone_ranks(host, comm, now_ns);
	return true;
}
