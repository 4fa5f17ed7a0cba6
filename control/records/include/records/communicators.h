// SPDX-License-Identifier: BSD-3-Clause
// COMMS, WHY of a job and STATUS: a communicator of a job, and the diagnosis of it.
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

struct diagnosis_row {
	const char *state, *cause, *sentence;
	uint64_t operation;
	uint64_t waited_ns;
	uint32_t waiting, late_count, absent;
	json_t *late, *told;
	const char *waits_in; // NULL if the ranks wait in the same communicator
	uint64_t mismatch;
};

// A communicator that WHY shows with its ranks.
struct communicator_story_row {
	char hash[20];
	const char *job; // NULL if it is unknown
	uint32_t size, ranks_count;
	json_t *finding, *ranks;
};

extern const struct record communicator_record, diagnosis_record, communicator_story_record;

// Write and return the hash of a communicator with all its 16 digits. Agents leave leading zeros
// out.
const char *show_communicator_hash(const json_t *row, char text[static SHOW_BYTES]);
