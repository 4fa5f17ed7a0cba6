// SPDX-License-Identifier: BSD-3-Clause
// The communicators of an answer, judged in steps: for the queries COMMS, WHY and STATUS, and for
// notices to jobs.
#pragma once

#include <jobs/judge.h>

struct health;
struct overlay_answer;

struct comm_look_config {
	const struct health *health; // NULL: no paths are known, and no node is dead
	uint64_t now_ns;	     // on the clock of `health`
	struct jobs_limits limits;
	struct jobs_wait_history *book;	 // NULL: no stragglers are named
	struct jobs_name_resolver words; // resolver of node names
};

struct comm_look {
	struct comm_look_config config;
	struct jobs_snapshot look;
	struct ras_merged_comm *comms;
	struct jobs_finding *findings;
	struct jobs_pair *pairs;
	uint32_t *order; // indices of `findings`, worst first
	uint32_t count, noted;
	struct jobs_judging *judging; // NULL: all communicators are judged
};

// Create a wait history, to be reused for all snapshots. Returns NULL without memory; then no
// stragglers are named.
struct jobs_wait_history *comm_wait_history_create(void);

// Begin to judge an answer. The answer must be complete and outlive the look, and the look must not
// be moved. Returns 0 or -ENOMEM.
int comm_look_init(
	struct comm_look *look,
	const struct comm_look_config *config,
	const struct overlay_answer *answer
);
// Judge for some milliseconds. Returns true once all communicators are judged.
bool comm_look_step(struct comm_look *look);
void comm_look_fini(struct comm_look *look);
// Write the sentence on the finding at one index.
void comm_look_describe(
	const struct comm_look *look, uint32_t place, char text[static JOBS_SENTENCE_BYTES]
);
// The first function returns whether a word has the form of a job id or a hash. The second one
// returns whether a word names this communicator.
// Valid names are a job id ("slurm:1234.0", "1234.0" or "1234"), a name that the user gave to the
// job, and the hash of a communicator. The hash is hexadecimal with 0x as in NCCL's report, or at
// least the first four of its sixteen digits.
bool comm_name_is_plausible(const char *word);
bool comm_matches_name(const struct ras_merged_comm *comm, const char *word);
