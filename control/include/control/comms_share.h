// SPDX-License-Identifier: BSD-3-Clause
// What this agent answers when the cluster asks for communicators: the ranks of its own processes.
#pragma once

#include <jobs/report.h>

struct comms_share;
struct overlay;

// Who knows the ranks here. Both are called on the loop's thread, at() for 0 up to count() - 1.
struct comms_source {
	uint32_t (*count)(void *ctx);
	// 0, or -errno of one that is left out.
	int (*at)(void *ctx, uint32_t n, struct jobs_rank_report *ret_report);
	void *ctx;
};

// Answers from now on. -ENOMEM.
int comms_share_create(
	struct overlay *overlay, const struct comms_source *source, struct comms_share **ret_share
);
// Before the overlay is destroyed.
struct comms_share *comms_share_destroy(struct comms_share *share);
