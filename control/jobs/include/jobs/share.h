// SPDX-License-Identifier: BSD-3-Clause
// From what an agent knows of the ranks here to the rows that it tells the cluster.
#pragma once

#include <ras/comms.h>

#include <jobs/report.h>

#define JOBS_ROW_RANKS 64 // ranks of a communicator in one row; more make more rows

struct jobs_row {
	struct ras_comm comm; // its ranks are those below: a row is not copied
	struct ras_comm_rank ranks[JOBS_ROW_RANKS];
};

// The order in which reports belong into rows: by communicator, job and configuration, then rank.
int jobs_report_compare(const struct jobs_rank_report *a, const struct jobs_rank_report *b);
// The communicator as rows name it.
struct ras_comm_id
jobs_comm_id(uint64_t comm_hash, uint64_t host_hash, uint64_t process_hash, uint32_t uid);
// How many of the reports from the first on, in that order, make one row.
uint32_t jobs_row_length(const struct jobs_rank_report *const *reports, uint32_t count);
// That row. Texts that are no UTF-8 are left out, numbers in disorder put in order.
void jobs_row_make(
	const struct jobs_rank_report *const *reports, uint32_t count, struct jobs_row *ret_row
);
