// SPDX-License-Identifier: BSD-3-Clause
// Answers the collective COMMS with the ranks of this node's own processes.
#pragma once

#include <jobs/report.h>

struct comms_share;
struct overlay;

// Source of the local ranks. Both functions are called on the loop's thread; at() for 0 to count()
// - 1.
struct comms_source {
	uint32_t (*count)(void *ctx);
	// Returns 0, or -errno to leave this rank out.
	int (*at)(void *ctx, uint32_t n, struct jobs_rank_report *ret_report);
	void *ctx;
};

// Start answering. Returns 0 or -ENOMEM.
int comms_share_create(
	struct overlay *overlay, const struct comms_source *source, struct comms_share **ret_share
);
// Call before the overlay is destroyed.
struct comms_share *comms_share_destroy(struct comms_share *share);
