// SPDX-License-Identifier: BSD-3-Clause
// Answers the collective COMMS with the ranks of this node's own processes.
#pragma once

#include <jobs/report.h>

struct comms_share;
struct overlay;

// Source of the local ranks, called on the loop's thread.
struct comms_source {
	// Store pointers to at most `max` reports, in an order that gives every user a fair share
	// of the answer, and return their number. The pointers are valid until the turn ends.
	uint32_t (*select)(void *ctx, const struct jobs_rank_report **ret_reports, uint32_t max);
	// So many of the selected reports, the last ones, had no room in the answer.
	void (*cut)(void *ctx, uint32_t count);
	void *ctx;
};

// Start answering. Returns 0 or -ENOMEM.
int comms_share_create(
	struct overlay *overlay, const struct comms_source *source, struct comms_share **ret_share
);
// Call before the overlay is destroyed.
struct comms_share *comms_share_destroy(struct comms_share *share);
