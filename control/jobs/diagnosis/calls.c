// SPDX-License-Identifier: BSD-3-Clause
// Follows waits between two ranks of one communicator. A rank inside such a call has one peer, so
// the waits form chains. Two calls that fit each other, such as a send and its receive, prove
// nothing: their data may be on its way.
#include "calls.h"

#include <lib/must.h>

#include <jobs/report.h>

// Limits of the cost, far above what programs do: ranks in one chain, and chains that are tried.
#define CHAIN_MAX 1024
#define STARTS_MAX 64

enum direction {
	NO_DIRECTION,
	TO_PEER,
	FROM_PEER,
};

static enum direction direction_of(const struct ras_comm_call *call) {
	switch (call->number) {
	case JOBS_CALL_SEND:
	case JOBS_CALL_SSEND:
	case JOBS_CALL_RSEND:
	case JOBS_CALL_WAIT_SEND:
	case JOBS_CALL_WAITALL_SEND:
		return TO_PEER;
	case JOBS_CALL_RECV:
	case JOBS_CALL_PROBE:
	case JOBS_CALL_WAIT_RECEIVE:
	case JOBS_CALL_WAITALL_RECEIVE:
		return FROM_PEER;
	default:
		return NO_DIRECTION; // both, several peers, or none: a buffered send
	}
}

// An operation that was only posted does not hold its rank.
static bool is_held_by_operation(const struct survey *survey, const struct ras_comm_rank *rank) {
	return (rank->flags & RAS_RANK_BLOCKS) != 0 && survey_rank_is_inside(survey, rank);
}

// Return whether the rank may end the wait of another rank while it waits itself. An operation that
// it posted may be the other half of that wait, with its data on the way. A halted process may hold
// data that it has yet to pass on.
static bool rank_can_deliver(const struct ras_comm_rank *rank) {
	const struct ras_comm_call *call = &rank->doing.call;
	bool is_counted = !call->is_elsewhere && direction_of(call) != NO_DIRECTION &&
			  call->number != JOBS_CALL_PROBE;

	return rank->pair_launched - rank->pair_completed > is_counted ||
	       survey_process_is_halted(rank->process_state);
}

// Return the place of the rank that this one waits for, or JOBS_NOBODY.
static uint32_t
find_peer(const struct ras_merged_comm *comm, const struct survey *survey, uint32_t place) {
	const struct ras_comm_rank *rank = &comm->ranks[place].rank;
	const struct ras_comm_call *call = &rank->doing.call;
	uint32_t peer = (uint32_t)call->peer, low = 0, high = comm->rank_count;

	if (direction_of(call) == NO_DIRECTION || call->is_elsewhere || call->peer < 0 ||
	    !survey_rank_is_active(rank) || is_held_by_operation(survey, rank))
		return JOBS_NOBODY;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (comm->ranks[middle].rank.rank < peer)
			low = middle + 1;
		else
			high = middle;
	}
	return low < comm->rank_count && comm->ranks[low].rank.rank == peer ? low : JOBS_NOBODY;
}

// Return whether these calls may complete each other.
static bool calls_fit(const struct ras_comm_rank *rank, const struct ras_comm_rank *peer) {
	const struct ras_comm_call *own = &rank->doing.call, *other = &peer->doing.call;

	return direction_of(own) != direction_of(other) && direction_of(other) != NO_DIRECTION &&
	       (other->peer < 0 || (uint32_t)other->peer == rank->rank) &&
	       (own->tag < 0 || other->tag < 0 || own->tag == other->tag);
}

bool calls_block_for_ever(
	const struct ras_merged_comm *comm, const struct survey *survey, uint32_t place
) {
	uint32_t start = place, mark = place;

	for (uint32_t steps = 1; steps <= comm->rank_count; steps++) {
		uint32_t next = find_peer(comm, survey, place);

		if (next == JOBS_NOBODY || steps > CHAIN_MAX ||
		    rank_can_deliver(&comm->ranks[next].rank))
			return false;
		if (is_held_by_operation(survey, &comm->ranks[next].rank))
			return true; // the operation waits for the first rank of this chain
		if (calls_fit(&comm->ranks[place].rank, &comm->ranks[next].rank))
			return false;
		place = next;
		if (place == start || place == mark)
			return true; // a cycle
		if ((steps & (steps - 1)) == 0)
			mark = place;
	}
	return true; // so many steps only fit into a cycle
}

uint32_t calls_find_cycle(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	uint32_t ret_places[JOBS_NAMED_MAX]
) {
	uint32_t first = 0, starts = 0, at, count = 0;

	must(survey->seq == 0);
	for (; first < comm->rank_count && starts < STARTS_MAX; first++) {
		if (find_peer(comm, survey, first) == JOBS_NOBODY)
			continue;
		if (calls_block_for_ever(comm, survey, first))
			break;
		starts++;
	}
	if (first == comm->rank_count || starts == STARTS_MAX)
		return 0;
	// The chain may lead into the cycle: after so many steps, the rank is on it.
	for (uint32_t steps = 0; steps < comm->rank_count && steps < CHAIN_MAX; steps++)
		first = find_peer(comm, survey, first);
	at = first;
	do {
		if (count < JOBS_NAMED_MAX)
			ret_places[count] = at;
		count++;
		at = find_peer(comm, survey, at);
	} while (at != first);
	return count;
}
