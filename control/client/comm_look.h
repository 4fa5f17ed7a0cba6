// SPDX-License-Identifier: BSD-3-Clause
// The communicators of an answer, judged: for COMMS, WHY and STATUS.
#pragma once

#include <jansson.h>

#include <jobs/judge.h>

struct overlay_answer;
struct session;

struct comm_look {
	struct session *session;
	struct jobs_look look;
	struct ras_merged_comm *comms;
	struct jobs_finding *findings;
	struct jobs_pair *pairs;
	uint32_t *order; // worst first
	uint32_t count;
};

// Who comes last in communicators, from look to look; NULL: no memory, and nobody is named for it.
struct jobs_book *comm_book_create(void);

// -ENOMEM. The answer outlives it; it is to be settled.
int comm_look_init(
	struct comm_look *look, struct session *session, const struct overlay_answer *answer
);
void comm_look_fini(struct comm_look *look);
// The sentence on one of them, by its place.
void comm_look_say(
	const struct comm_look *look, uint32_t place, char text[static JOBS_SENTENCE_BYTES]
);
json_t *comm_look_json(const struct comm_look *look, uint32_t place);
json_t *comm_look_rank_json(const struct comm_look *look, uint32_t place, uint32_t rank);
// What a job or a communicator is called: "slurm:1234.0", or 1234.0 or 1234 of it; the hash of a
// communicator in hexadecimal with 0x as NCCL's report has it, or the first of its sixteen digits,
// at least four of them.
bool comm_look_may_be_called(const char *word);
bool comm_look_is_called(const struct ras_merged_comm *comm, const char *word);
// Whether there is something to say beside that it moves, ended or is quiet.
bool comm_look_is_told(const struct jobs_finding *finding);
