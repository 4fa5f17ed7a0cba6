// SPDX-License-Identifier: BSD-3-Clause
// What is wrong within one communicator, rank by rank, in NCCL's words.
#pragma once

struct comm_summary;
struct session;
struct status;

// INCOMPLETE and ERROR blocks.
void status_say_errors(
	struct session *session, const struct status *status, const struct comm_summary *row
);
// The MISMATCH block.
void status_say_mismatches(
	struct session *session, const struct status *status, const struct comm_summary *row
);
