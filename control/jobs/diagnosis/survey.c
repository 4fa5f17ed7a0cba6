// SPDX-License-Identifier: BSD-3-Clause
// Summarises the ranks of one communicator.
#include "survey.h"

#include <jobs/report.h>
#include <string.h>

#define STILL_MS 2000 // agents sample counts every second

static bool rank_knows(const struct ras_comm_rank *rank, uint8_t what) {
	return (rank->knows & what) == what;
}

static bool rank_completed(const struct ras_comm_rank *rank, uint64_t seq) {
	return rank_knows(rank, RAS_RANK_KNOWS_COMPLETED) && rank->completed >= seq;
}

static bool rank_has_ended(const struct ras_comm_rank *rank) {
	return (rank->flags & (RAS_RANK_FINALIZE | RAS_RANK_DESTROY | RAS_RANK_ABORT)) != 0 ||
	       rank->left != JOBS_LEFT_NOT;
}

static bool rank_process_is_gone(const struct ras_comm_rank *rank) {
	return (rank->flags & RAS_RANK_EXITED) != 0 || rank->process_state == JOBS_PROCESS_EXITED ||
	       rank->process_state == JOBS_PROCESS_ZOMBIE;
}

bool survey_rank_is_active(const struct ras_comm_rank *rank) {
	return !rank_process_is_gone(rank) && !rank_has_ended(rank);
}

// Return whether the rank ended before the newest registration of an active rank. The end may then
// belong to an earlier attempt of the job, although other ranks of that attempt are still active.
static bool rank_ended_earlier(const struct survey *survey, const struct ras_comm_rank *rank) {
	return ((rank->flags & RAS_RANK_EXITED) != 0 || rank->left != JOBS_LEFT_NOT) &&
	       rank->exited_ms >= survey->newest_ms;
}

bool survey_rank_is_dead(const struct survey *survey, const struct ras_comm_rank *rank) {
	// A rank that called MPI_Abort ends all others, so it counts as dead.
	return rank_process_is_gone(rank) &&
	       (!rank_has_ended(rank) || rank->exit_cause == JOBS_EXIT_ABORT) &&
	       !rank_ended_earlier(survey, rank);
}

// The rank announced its end, so it launches nothing more that others wait for.
static bool rank_has_left(const struct survey *survey, const struct ras_comm_rank *rank) {
	return ((rank->flags & (RAS_RANK_FINALIZE | RAS_RANK_DESTROY)) != 0 ||
		rank->left != JOBS_LEFT_NOT) &&
	       (rank->flags & RAS_RANK_ABORT) == 0 && !rank_ended_earlier(survey, rank);
}

// Store how long ago the last active rank registered. If no such time is known, every end belongs
// to the present attempt.
static void find_newest_registration(struct survey *survey, const struct ras_merged_comm *comm) {
	for (uint32_t n = 0; n < comm->rank_count; n++) {
		const struct ras_comm_rank *rank = &comm->ranks[n].rank;

		if (survey_rank_is_active(rank) && rank->since_ms != 0 &&
		    rank->since_ms < survey->newest_ms)
			survey->newest_ms = rank->since_ms;
	}
}

// A posted operation holds nobody while its rank does not wait for it.
static bool rank_only_posted(const struct ras_comm_rank *rank) {
	return rank->oldest_is_unwaited && rank_knows(rank, RAS_RANK_KNOWS_COMPLETED) &&
	       rank->completed < rank->launched;
}

static bool rank_only_posted_seq(const struct survey *survey, const struct ras_comm_rank *rank) {
	return rank_only_posted(rank) && rank->completed + 1 == survey->seq;
}

static void count_rank(struct survey *survey, const struct ras_comm_rank *rank) {
	survey->earlier += rank_ended_earlier(survey, rank);
	if (survey_rank_is_dead(survey, rank)) {
		survey->dead++;
		survey->dead_with_status_0 +=
			rank->exit_cause == JOBS_EXIT_STATUS && rank->exit_value == 0;
		return;
	}
	if (!survey_rank_is_active(rank))
		return;
	survey->alive++;
	survey->knows_all &= rank->knows;
	survey->knows_any |= rank->knows;
	if (rank->idle_ms < survey->idle_ms)
		survey->idle_ms = rank->idle_ms;
	if (rank->launched < survey->launched_min)
		survey->launched_min = rank->launched;
	if (rank->launched > survey->launched_max)
		survey->launched_max = rank->launched;
	survey->posted += rank_only_posted(rank);
	survey->busy += rank->doing.busy_s != 0;
	if (rank_knows(rank, RAS_RANK_KNOWS_COMPLETED) && rank->completed < rank->launched &&
	    !rank_only_posted(rank) && (survey->seq == 0 || rank->completed < survey->seq))
		survey->seq = rank->completed + 1;
	survey->stopped += survey_process_is_halted(rank->process_state);
	survey->traced += rank->process_state == JOBS_PROCESS_TRACED;
}

static void count_rank_at_seq(
	struct survey *survey,
	const struct ras_comm_rank *rank,
	uint32_t *behind,
	uint32_t *unwaited
) {
	if (rank->launched < survey->seq) {
		survey->late_count++;
		return;
	}
	if (rank_only_posted_seq(survey, rank)) {
		++*unwaited;
		return;
	}
	survey->waiting++;
	if (!rank_knows(rank, RAS_RANK_KNOWS_STARTED))
		return;
	if (rank->started < survey->seq)
		++*behind;
	else
		survey->any_started = true;
	if (rank_completed(rank, survey->seq)) {
		survey->completed++;
		survey->waiting--;
	}
}

// A root may complete a broadcast and leave while others still wait in it.
static void count_left_rank_at_seq(struct survey *survey, const struct ras_comm_rank *rank) {
	survey->left += rank->launched < survey->seq;
	if (rank_knows(rank, RAS_RANK_KNOWS_STARTED) && rank->started >= survey->seq)
		survey->any_started = true;
	survey->completed += rank_completed(rank, survey->seq);
}

void survey_comm(
	const struct jobs_snapshot *look,
	const struct ras_merged_comm *comm,
	struct survey *ret_survey
) {
	struct survey survey = {
		.idle_ms = UINT64_MAX,
		.launched_min = UINT64_MAX,
		.knows_all = UINT8_MAX,
		.newest_ms = UINT32_MAX,
	};
	uint32_t behind = 0, unwaited = 0;

	find_newest_registration(&survey, comm);
	for (uint32_t n = 0; n < comm->rank_count; n++)
		count_rank(&survey, &comm->ranks[n].rank);
	// Members that were named at communicator set-up and whose node is dead.
	for (uint32_t n = 0; look->is_dead != NULL && n < comm->missing_count; n++)
		survey.dead += look->is_dead(look->ctx, comm->missing[n].missing.node);
	// Unless all ranks report completed operations, ranks that launched more than others are
	// assumed to wait. If all launched the same number, no rank is known to wait.
	if (survey.seq == 0 && survey.launched_min < survey.launched_max &&
	    (survey.knows_all & RAS_RANK_KNOWS_COMPLETED) == 0)
		survey.seq = survey.launched_min + 1;
	for (uint32_t n = 0; survey.seq != 0 && n < comm->rank_count; n++) {
		const struct ras_comm_rank *rank = &comm->ranks[n].rank;

		if (survey_rank_is_active(rank))
			count_rank_at_seq(&survey, rank, &behind, &unwaited);
		else if (rank_has_left(&survey, rank))
			count_left_rank_at_seq(&survey, rank);
	}
	survey.late_count += survey.left;
	if (survey.late_count > 0) {
		survey.late = SURVEY_NOT_LAUNCHED;
	} else if (unwaited > 0) {
		survey.late = SURVEY_NOT_WAITING;
		survey.late_count = unwaited;
	} else if (behind > 0 && survey.any_started) {
		survey.late = SURVEY_NOT_STARTED;
		survey.late_count = behind;
	}
	*ret_survey = survey;
}

bool survey_rank_has_left(const struct survey *survey, const struct ras_comm_rank *rank) {
	return rank_has_left(survey, rank) && rank->launched < survey->seq;
}

bool survey_rank_is_late(const struct survey *survey, const struct ras_comm_rank *rank) {
	if (survey_rank_has_left(survey, rank))
		return true;
	if (!survey_rank_is_active(rank))
		return false;
	switch (survey->late) {
	case SURVEY_NOT_LAUNCHED:
		return rank->launched < survey->seq;
	case SURVEY_NOT_STARTED:
		return rank_knows(rank, RAS_RANK_KNOWS_STARTED) && rank->started < survey->seq;
	case SURVEY_NOT_WAITING:
		return rank->launched >= survey->seq && rank_only_posted_seq(survey, rank);
	case SURVEY_NOBODY_LATE:
		break;
	}
	return false;
}

bool survey_rank_is_inside(const struct survey *survey, const struct ras_comm_rank *rank) {
	if (survey->seq == 0 || !survey_rank_is_active(rank) || rank->launched < survey->seq)
		return false;
	return !rank_knows(rank, RAS_RANK_KNOWS_COMPLETED) || rank->completed < survey->seq;
}

bool survey_rank_waits(const struct survey *survey, const struct ras_comm_rank *rank) {
	return survey_rank_is_inside(survey, rank) &&
	       (!rank_knows(rank, RAS_RANK_KNOWS_STARTED) || rank->started >= survey->seq);
}

struct vote {
	const struct ras_comm_signature *choice;
	uint32_t choice_place, lead, known;
};

// Vote on each operation, in one pass over the ranks (Boyer-Moore). The candidate may have no
// majority; any other signature still counts as a difference.
static void vote_on_operations(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	uint64_t first,
	uint32_t count,
	struct vote *votes
) {
	for (uint32_t n = 0; n < comm->rank_count; n++)
		for (uint32_t at = 0; at < count; at++) {
			const struct ras_comm_signature *signature =
				ras_comm_signature_of(comm, &comm->ranks[n], first + at);
			struct vote *vote = &votes[at];

			if (signature == NULL || rank_ended_earlier(survey, &comm->ranks[n].rank))
				continue;
			vote->known++;
			if (vote->lead == 0) {
				vote->choice = signature;
				vote->choice_place = n;
			}
			if (signature_equals(vote->choice, signature))
				vote->lead++;
			else
				vote->lead--;
		}
}

static void count_deviating_ranks(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	uint64_t first,
	uint32_t count,
	const struct vote *votes,
	struct jobs_mismatch *found
) {
	for (uint32_t n = 0; n < comm->rank_count; n++)
		for (uint32_t at = 0; at < count; at++) {
			const struct ras_comm_signature *signature =
				ras_comm_signature_of(comm, &comm->ranks[n], first + at);
			const struct ras_comm_signature *other;

			if (signature == NULL || votes[at].choice == NULL ||
			    rank_ended_earlier(survey, &comm->ranks[n].rank) ||
			    signature_equals(signature, votes[at].choice))
				continue;
			if (found[at].other_count++ == 0)
				found[at].other = n;
			other = ras_comm_signature_of(
				comm, &comm->ranks[found[at].other], first + at
			);
			found[at].alike_count += signature_equals(signature, other);
		}
}

// Return how many operations of this kind a rank launched. Kinds from RAS_COMM_OPS on are reported
// as one sum, so only its absence is known: return 0 or 1.
static uint64_t count_of_kind(const struct ras_comm_rank *rank, uint8_t kind) {
	uint64_t sum = 0;

	if (kind < RAS_COMM_OPS)
		return rank->ops[kind];
	for (uint32_t n = 0; n < RAS_COMM_OPS; n++)
		sum += rank->ops[n];
	return rank->launched > sum;
}

// A rank that is far ahead no longer reports the operation that another rank waits in. Its counts
// still prove a difference: it launched fewer operations of that kind, although it launched more in
// total.
static void find_counted_mismatch(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	struct jobs_mismatch *ret_mismatch
) {
	struct jobs_mismatch found = {.seq = survey->seq, .by_counts = true};
	const struct ras_comm_signature *waited = NULL;
	uint64_t wanted;

	// The counts of a rank are consistent only while the rank does not move.
	if (survey->seq == 0 || survey->idle_ms < STILL_MS)
		return;
	for (uint32_t n = 0; n < comm->rank_count && waited == NULL; n++) {
		if (comm->ranks[n].rank.launched != survey->seq ||
		    !survey_rank_is_inside(survey, &comm->ranks[n].rank))
			continue;
		waited = ras_comm_signature_of(comm, &comm->ranks[n], survey->seq);
		found.most = n;
	}
	if (waited == NULL)
		return;
	wanted = count_of_kind(&comm->ranks[found.most].rank, waited->kind);
	for (uint32_t n = 0; n < comm->rank_count; n++) {
		const struct ras_comm_rank *rank = &comm->ranks[n].rank;

		// The counts by kind of a rank that left may be older than its total.
		if (rank->left != JOBS_LEFT_NOT || rank_ended_earlier(survey, rank))
			continue;
		if (rank->launched > survey->seq && count_of_kind(rank, waited->kind) < wanted &&
		    found.other_count++ == 0)
			found.other = n;
	}
	if (found.other_count > 0)
		*ret_mismatch = found;
}

void survey_find_mismatch(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	struct jobs_mismatch *ret_mismatch
) {
	uint64_t last = survey->seq != 0 ? survey->seq : survey->launched_max;
	uint64_t first = last > RAS_COMM_RECENT ? last - RAS_COMM_RECENT + 1 : 1;
	struct vote votes[RAS_COMM_RECENT] = {0};
	struct jobs_mismatch found[RAS_COMM_RECENT] = {0};
	uint32_t count;

	memset(ret_mismatch, 0, sizeof(*ret_mismatch));
	if ((survey->knows_any & RAS_RANK_KNOWS_SIGNATURES) == 0 || last == 0)
		return;
	// A corrupt page or agent may report UINT64_MAX as `last`, so loop over a count.
	count = (uint32_t)(last - first) + 1;
	vote_on_operations(comm, survey, first, count, votes);
	count_deviating_ranks(comm, survey, first, count, votes, found);
	for (uint32_t at = 0; at < count; at++) {
		if (found[at].other_count == 0)
			continue;
		*ret_mismatch = found[at];
		ret_mismatch->seq = first + at;
		ret_mismatch->most = votes[at].choice_place;
		return;
	}
	find_counted_mismatch(comm, survey, ret_mismatch);
}
