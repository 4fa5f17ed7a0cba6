// SPDX-License-Identifier: BSD-3-Clause
// Summary of one communicator: which ranks are alive, which operation is waited in, which ranks are
// late.
#pragma once

#include <jobs/judge.h>
#include <jobs/report.h>

// Return whether a process certainly does nothing until somebody lets it go on.
static inline bool survey_process_is_halted(uint8_t state) {
	return state == JOBS_PROCESS_STOPPED || state == JOBS_PROCESS_FROZEN;
}

// An idle process uses less processor time than this in JOBS_WORK_WINDOW_NS, even if its threads
// poll a clock.
#define WORK_MS_MIN (JOBS_WORK_WINDOW_NS / UINT64_C(1000000) / 100)

// In which way the late ranks are behind.
enum survey_late {
	SURVEY_NOBODY_LATE,
	SURVEY_NOT_LAUNCHED,
	SURVEY_NOT_STARTED,
	SURVEY_NOT_WAITING, // they have posted the operation, and do not wait for it
};

struct survey {
	uint64_t seq; // number of the operation that ranks wait in; 0: none is known
	uint64_t idle_ms;
	uint64_t launched_min, launched_max; // minimum and maximum over live ranks
	uint32_t alive, dead, stopped, traced, waiting;
	uint32_t newest_ms;	     // time since the last registration of an active rank
	uint32_t earlier;	     // ranks that ended before: maybe in an earlier attempt
	uint32_t dead_with_status_0; // dead ranks that exited with status 0
	uint32_t late_count;	     // includes the ranks that left
	// ranks that finalized or were destroyed before they launched the operation
	uint32_t left;
	uint32_t posted;    // live ranks whose oldest open operation is posted and not waited for
	uint32_t busy;	    // live ranks that are busy on purpose
	uint32_t completed; // ranks that completed the operation, also those that left since
	enum survey_late late;
	uint8_t knows_all, knows_any;
	bool any_started; // at least one rank is known to have started the operation
};

static inline bool
signature_equals(const struct ras_comm_signature *a, const struct ras_comm_signature *b) {
	return a->kind == b->kind && a->datatype == b->datatype && a->root == b->root &&
	       a->count == b->count;
}

void survey_comm(
	const struct jobs_snapshot *look,
	const struct ras_merged_comm *comm,
	struct survey *ret_survey
);
// Return whether the rank lives and has not announced its end.
bool survey_rank_is_active(const struct ras_comm_rank *rank);
// Return whether the rank has not reached the operation `seq`, in the way that survey->late says.
bool survey_rank_is_late(const struct survey *survey, const struct ras_comm_rank *rank);
// Return whether the rank finalized the communicator before the operation `seq`, so that it can
// never join.
bool survey_rank_has_left(const struct survey *survey, const struct ras_comm_rank *rank);
// Return whether the rank has launched the operation `seq` and has not reported its completion.
bool survey_rank_is_inside(const struct survey *survey, const struct ras_comm_rank *rank);
// Return whether the rank is inside the operation and its device has started it, as far as known.
bool survey_rank_waits(const struct survey *survey, const struct ras_comm_rank *rank);
// Return whether the process of the rank is gone without having finalized, or called MPI_Abort.
bool survey_rank_is_dead(const struct survey *survey, const struct ras_comm_rank *rank);
// Store the first recent operation that ranks run differently; its seq is 0 if there is none.
void survey_find_mismatch(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	struct jobs_mismatch *ret_mismatch
);
