// SPDX-License-Identifier: BSD-3-Clause
// STATUS: the objects "tocsin" in NCCL's report.
#pragma once

#include <lib/record.h>

struct status_communicator_row {
	const char *job; // NULL if it is unknown
	bool jobs_differ;
	json_t *finding;
};

struct status_cluster_row {
	const char *version, *cluster, *node;
	uint64_t view;
	char digest[32];
	bool joined, brake;
	uint32_t alive, suspect, unreachable, dead, left;
	uint32_t answered;
	json_t *dead_nodes, *suspect_nodes, *unreachable_nodes;
	json_t *unanswered;
	json_t *missing_nodes;
	const char *error; // NULL: none
};

struct unanswered_row {
	const char *node, *reason;
};

extern const struct record status_communicator_record, status_cluster_record, unanswered_record;
