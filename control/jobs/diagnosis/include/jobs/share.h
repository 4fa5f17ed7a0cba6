// SPDX-License-Identifier: BSD-3-Clause
// Converts the reports on local ranks into the rows that an agent sends to the cluster.
#pragma once

#include <ras/comms.h>

#include <jobs/report.h>

// ranks of a communicator in one row; a communicator with more ranks has several rows
#define JOBS_ROW_RANKS 64

struct jobs_row {
	struct ras_comm comm; // its `ranks` point to the array below, so a row must not be copied
	struct ras_comm_rank ranks[JOBS_ROW_RANKS];
};

// Compare reports in row order: communicator, job, configuration, rank. Of one rank the living
// process comes first, then the one that ended last.
int jobs_report_compare(const struct jobs_rank_report *a, const struct jobs_rank_report *b);
// Leave out all but the first report of each rank; the reports are sorted. A row then has no more
// ranks than its communicator. Returns the number of reports that remain.
uint32_t jobs_reports_unique(const struct jobs_rank_report **reports, uint32_t count);
// Return the id of the communicator of a report as used in rows: hashes, user and attempt.
struct ras_comm_id jobs_comm_id(const struct jobs_rank_report *report);
// Return how many of the sorted reports, from the first on, make one row.
uint32_t jobs_row_length(const struct jobs_rank_report *const *reports, uint32_t count);
// Make that row. Texts that are not UTF-8 are left out, and inconsistent counts are clamped.
void jobs_row_make(
	const struct jobs_rank_report *const *reports, uint32_t count, struct jobs_row *ret_row
);
