// SPDX-License-Identifier: BSD-3-Clause
// One communicator looked over: who lives, which operation is waited in, who has not come there.
#pragma once

#include <jobs/judge.h>
#include <jobs/report.h>

// A process that does nothing uses less in JOBS_WORK_WINDOW_NS: threads that look at the clock.
#define WORK_MS_MIN (JOBS_WORK_WINDOW_NS / UINT64_C(1000000) / 100)

// In what way the ranks that are waited for are behind.
enum survey_late {
	SURVEY_NOBODY_LATE,
	SURVEY_NOT_LAUNCHED,
	SURVEY_NOT_STARTED,
};

struct survey {
	uint64_t seq; // waited in; 0: nothing that is known to be
	uint64_t idle_ms;
	uint64_t launched_min, launched_max; // of those who live
	uint32_t alive, dead, stopped, traced, waiting;
	uint32_t dead_well;  // of the dead: exited with status 0
	uint32_t late_count; // with those who left
	uint32_t left;	     // finalized or destroyed, and never launched what others wait in
	enum survey_late late;
	uint8_t knows_all, knows_any;
	bool any_started;   // somebody has started the operation
	bool any_completed; // somebody has completed it
};

void survey_comm(
	const struct jobs_look *look, const struct ras_merged_comm *comm, struct survey *ret_survey
);
// The rank has not come to the operation that is waited in, in the way that the survey tells.
bool survey_is_late(const struct survey *survey, const struct ras_comm_rank *rank);
// It finalized before the operation that is waited in: it will not come.
bool survey_has_left(const struct survey *survey, const struct ras_comm_rank *rank);
// It has launched it, and it is not completed, as far as is told.
bool survey_is_inside(const struct survey *survey, const struct ras_comm_rank *rank);
// The same, and its device has started it.
bool survey_waits(const struct survey *survey, const struct ras_comm_rank *rank);
// Its process is gone, and it had not finalized.
bool survey_is_dead(const struct ras_comm_rank *rank);
// The first operation in reach that ranks run differently; seq 0 if there is none.
void survey_mismatch(
	const struct ras_merged_comm *comm,
	const struct survey *survey,
	struct jobs_mismatch *ret_mismatch
);
