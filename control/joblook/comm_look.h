// SPDX-License-Identifier: BSD-3-Clause
// The communicators of an answer, judged in steps: for COMMS, WHY, STATUS, and for jobs themselves.
#pragma once

#include <jobs/judge.h>

struct health;
struct overlay_answer;

struct comm_look_config {
	const struct health *health; // NULL: no paths are known, and no node is dead
	uint64_t now_ns;	     // on the clock of `health`
	struct jobs_limits limits;
	struct jobs_book *book;	 // NULL: nobody is named for coming last
	struct jobs_words words; // names of nodes
};

struct comm_look {
	struct comm_look_config config;
	struct jobs_look look;
	struct ras_merged_comm *comms;
	struct jobs_finding *findings;
	struct jobs_pair *pairs;
	uint32_t *order; // worst first
	uint32_t count, noted;
	struct jobs_judging *judging; // NULL: all is judged
};

// Who comes last in communicators, from look to look; NULL: no memory, and nobody is named for it.
struct jobs_book *comm_book_create(void);

// -ENOMEM. The answer outlives it, and is to be settled; the look stays where it is.
int comm_look_init(
	struct comm_look *look,
	const struct comm_look_config *config,
	const struct overlay_answer *answer
);
// Some milliseconds of work. true: all is judged.
bool comm_look_step(struct comm_look *look);
void comm_look_fini(struct comm_look *look);
// The sentence on one of them, by its place.
void comm_look_say(
	const struct comm_look *look, uint32_t place, char text[static JOBS_SENTENCE_BYTES]
);
// What a job or a communicator is called: "slurm:1234.0", or 1234.0 or 1234 of it; the hash of a
// communicator in hexadecimal with 0x as NCCL's report has it, or the first of its sixteen digits,
// at least four of them.
bool comm_look_may_be_called(const char *word);
bool comm_look_is_called(const struct ras_merged_comm *comm, const char *word);
