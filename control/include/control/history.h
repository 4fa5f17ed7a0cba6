// SPDX-License-Identifier: BSD-3-Clause
// The history of this node: what the agent keeps for weeks, and answers about the past.
//
// The control thread counts each probe of a path to a neighbour in bins. Once in a period it stores
// these bins, and the state of each node that is not well, in the file `history` of the state
// directory (<control/history_block.h>). A keeper makes all calls that touch the disk, so a disk
// that hangs may cost records, but delays nothing else. At most one block is written in a second.
//
// Events are not stored twice: answers about the past read them from the journal
// (<control/state.h>).
#pragma once

#include <control/history_block.h>
#include <control/keeper.h>
#include <control/state.h>

#include <stdint.h>

#define HISTORY_SIZE_MIN (UINT64_C(2) << 20)
#define HISTORY_COARSE_S 3600

struct health;
struct history;
struct loop;
struct overlay;

struct history_config {
	const char *directory; // the state directory
	uint64_t size_bytes;   // 0: keep no file; events can still be asked for
	uint32_t interval_s;   // a fine period
	const struct overlay *overlay;
	const struct health *health;	// NULL: no verdicts
	struct keeper_counters *totals; // over all keepers; may be NULL
};

// Create the history and open its file on the keeper. Returns 0, -ENOMEM or the error of a keeper.
int history_create(
	struct loop *loop, const struct history_config *config, struct history **ret_history
);
// Destroy the history without waiting for the disk. Records of the unfinished periods are lost.
struct history *history_destroy(struct history *history);

// Count a probe of a path. latency_ns is 0 for a probe that is not a read of the smallest size.
// Names of nodes are looked up later, so `node` of the path may be "".
void history_add_probe(
	struct history *history,
	const struct history_path_name *path,
	bool answered,
	uint64_t latency_ns
);

// Return the typical time in seconds for which a file holds the records of `paths` paths.
uint64_t history_retention_s(
	uint64_t size_bytes, uint32_t interval_s, uint32_t paths, enum history_tier tier
);

// Questions.

#define HISTORY_POINTS_MAX 240
#define HISTORY_SERIES_MAX 128
#define HISTORY_EVENTS_MAX 4096
#define HISTORY_QUESTIONS_MAX 8 // questions that wait for the disk

struct history_question {
	int64_t since_s, until_s; // UNIX time
	uint64_t peer;		  // node that is asked about
	bool all_paths;		  // paths to all peers, instead of those to this peer
	uint32_t points; // wanted number, 1 to HISTORY_POINTS_MAX; the answer may have one more
	int64_t events_since_ns, events_until_ns;
	uint32_t events; // maximum number of events about the peer; the latest ones are returned
};

// A part of the time that was asked about. All points last equally long.
struct history_point {
	uint64_t sent, lost;
	uint64_t min_ns, median_ns, p99_ns, max_ns; // 0: unknown
};

struct history_series {
	struct history_path_name name;
	struct history_point points[HISTORY_POINTS_MAX];
};

struct history_node_point {
	bool is_covered; // this agent stored records of this time, and the node's is among them
	bool is_cut;	 // more nodes were unwell than a period records
	uint8_t state;	 // enum ras_state at the worst verdict; RAS_UNKNOWN: the node was well
	uint8_t verdict; // worst verdict
};

struct history_answer {
	int64_t since_s; // begin of the first point
	uint32_t step_s, points;
	struct history_node_point node[HISTORY_POINTS_MAX];
	uint32_t series_count;
	bool is_cut; // there are more than HISTORY_SERIES_MAX paths
	struct history_series *series[HISTORY_SERIES_MAX];
	uint32_t event_count;
	struct state_event *events;
	int64_t oldest_s; // begin of the oldest record; INT64_MAX: none
	uint64_t damaged; // blocks that could not be read
	bool has_file;	  // the file is in use
};

struct history_query {
	// Called once, on the loop; never from inside history_ask(). The callback owns the answer.
	// It is NULL if `err` is not 0: -ENOMEM, -ETIMEDOUT (the disk hangs), -EFBIG (too many
	// records), or the error of reading the journal.
	void (*ended)(struct history_query *query, int err, struct history_answer *answer);
	// Private.
	struct history *history;
	struct history_query *next;
	struct keeper_request request;
};

// Ask about the past. Returns 0, -ENOMEM, -EAGAIN (too many questions) or -ETIMEDOUT (the disk
// hangs).
int history_ask(
	struct history *history,
	const struct history_question *question,
	struct history_query *query
);
void history_cancel(struct history_query *query);
struct history_answer *history_answer_free(struct history_answer *answer);
