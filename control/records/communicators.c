// SPDX-License-Identifier: BSD-3-Clause
// The fields of communicators in COMMS, WHY and STATUS.
#include <lib/fact.h>
#include <records/communicators.h>

#include <inttypes.h>
#include <string.h>

#define HASH_DIGITS 16

const char *show_communicator_hash(const json_t *row, char text[static SHOW_BYTES]) {
	const char *hash = fact_word(row, "hash");
	size_t length;

	if (strncmp(hash, "0x", 2) == 0)
		hash += 2;
	length = strlen(hash);
	snprintf(
		text, SHOW_BYTES, "%.*s%.16s",
		length < HASH_DIGITS ? (int)(HASH_DIGITS - length) : 0, "0000000000000000", hash
	);
	return text;
}

static const char *show_missing(const json_t *row, char text[static SHOW_BYTES]) {
	uint64_t missing = fact_number(row, "missing") + fact_number(row, "not_members");

	snprintf(text, SHOW_BYTES, "%" PRIu64, missing);
	return text;
}

static const char *show_errors(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(
		text, SHOW_BYTES, "%.31s%s%s", fact_name(row, "errors"),
		fact_holds(row, "collision") ? ",COLLISION" : "",
		fact_holds(row, "jobs_differ") ? ",TWO-JOBS" : ""
	);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct communicator_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct communicator_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(hash, UNIT_NONE, "hash of the communicator's identity",
		"COMMUNICATOR", 16, 0, show_communicator_hash),
	MEMBER(secondary_hash, UNIT_NONE, "hashes of the host and the process that made it"),
	COLUMN(job, UNIT_NONE, "job that it belongs to, or null", "JOB", 12, 0, NULL),
	COLUMN(size, UNIT_COUNT, "ranks that it should have", "SIZE", 6, 0, NULL),
	COLUMN(ranks, UNIT_COUNT, "ranks that were reported", "RANKS", 6, 2, NULL),
	MEMBER(missing, UNIT_COUNT, "ranks that no agent reported"),
	MEMBER(not_members, UNIT_COUNT, "ranks whose process does not know the communicator"),
	RECORD_MADE(UNIT_COUNT, "MISSING", 7, 0, show_missing),
	COLUMN(nodes, UNIT_COUNT, "nodes that hold ranks", "NODES", 5, 3, NULL),
	COLUMN(status, UNIT_NONE, "state in NCCL's words", "STATUS", 8, 1, NULL),
	MEMBER(finding, UNIT_NONE, "diagnosis"),
	RECORD_INNER("finding", "state", UNIT_NONE, "STATE", 7, 0),
	COLUMN(errors, UNIT_NONE, "errors in NCCL's words", "ERRORS", 26, 0, show_errors),
	MEMBER(collision, UNIT_NONE, "whether two communicators have this hash"),
	MEMBER(jobs_differ, UNIT_NONE, "whether its ranks name different jobs"),
};
// clang-format on

const struct record communicator_record = RECORD("communicators", fields);

#define DIAGNOSIS(...) RECORD_MEMBER(struct diagnosis_row, __VA_ARGS__)

// clang-format off
static const struct record_field diagnosis[] = {
	DIAGNOSIS(state, UNIT_NONE, "quiet, moving, ended, waiting or stuck"),
	DIAGNOSIS(cause, UNIT_NONE, "why it waits, as one word"),
	DIAGNOSIS(sentence, UNIT_NONE, "diagnosis, as a sentence"),
	DIAGNOSIS(operation, UNIT_NONE, "number of the operation in which ranks wait"),
	DIAGNOSIS(waited_ns, UNIT_NANOSECONDS, "time for which these ranks wait"),
	DIAGNOSIS(waiting, UNIT_COUNT, "ranks that wait"),
	DIAGNOSIS(late_count, UNIT_COUNT, "late ranks: those that the waiting ranks wait for"),
	DIAGNOSIS(absent, UNIT_COUNT, "ranks that no agent reported"),
	DIAGNOSIS(late, UNIT_NONE, "the first of the late ranks, with the members of ranks"),
	DIAGNOSIS(told, UNIT_NONE, "facts that the ranks report: started, completed and so on"),
	DIAGNOSIS(waits_in, UNIT_NONE,
		"hash of the communicator in which the late ranks wait, or null"),
	DIAGNOSIS(mismatch, UNIT_NONE, "number of the first operation that differs, or null"),
};
// clang-format on

#define STORY(...) RECORD_MEMBER(struct communicator_story_row, __VA_ARGS__)

static const struct record_field story[] = {
	STORY(hash, UNIT_NONE, "hash of the communicator's identity"),
	STORY(job, UNIT_NONE, "job that it belongs to, or null"),
	STORY(size, UNIT_COUNT, "ranks that it should have"),
	STORY(ranks_count, UNIT_COUNT, "ranks that were reported"),
	STORY(finding, UNIT_NONE, "diagnosis"),
	STORY(ranks, UNIT_NONE, "a row for each rank, late ones first"),
};

const struct record diagnosis_record = RECORD("finding", diagnosis);
const struct record communicator_story_record = RECORD("communicators", story);
