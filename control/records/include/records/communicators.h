// SPDX-License-Identifier: BSD-3-Clause
// COMMS: a communicator of a job.
#pragma once

#include <lib/record.h>

struct communicator_row {
	char hash[20];
	char secondary_hash[40];
	const char *job; // NULL if it is unknown
	uint32_t size, ranks, missing, not_members, nodes;
	const char *status;
	const char *errors;
	bool collision, jobs_differ;
	json_t *finding;
};

extern const struct record communicator_record;

// Write and return the hash of a communicator with all its 16 digits. Agents leave leading zeros
// out.
const char *show_communicator_hash(const json_t *row, char text[static SHOW_BYTES]);
