// SPDX-License-Identifier: BSD-3-Clause
// Problems within one communicator, rank by rank, in NCCL's words.
#pragma once

struct comm_summary;
struct session;
struct status;

// Write the INCOMPLETE and ERROR blocks, and Tocsin's own STUCK or WAITING block.
void status_print_errors(
	struct session *session, const struct status *status, const struct comm_summary *row
);
// Write the MISMATCH block.
void status_print_mismatches(
	struct session *session, const struct status *status, const struct comm_summary *row
);
