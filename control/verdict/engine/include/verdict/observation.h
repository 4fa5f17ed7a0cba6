// SPDX-License-Identifier: BSD-3-Clause
// Evidence that travels between agents: what an agent saw of a peer's pulse over one path, or
// reports about itself.
//
// Observations are flooded (ras_notice) when they get worse or clear, and repeated while they stay
// bad. Agents that read a node well answer those that read it badly. Every agent triangulates by
// itself, and all reach the same verdict.
#pragma once

#include <verdict/verdict.h>

struct wire_reader;
struct wire_writer;

enum observation_kind {
	OBSERVATION_GOOD,     // read, and the pulse counter advances
	OBSERVATION_STANDING, // read, but the pulse counter does not advance
	OBSERVATION_DEGRADED, // slow against the own baseline and against comparable paths
	OBSERVATION_LOSSY,    // loses probes of large sizes, or of all sizes
	OBSERVATION_SILENT,   // not read
	OBSERVATION_NO_PAIR,  // no pair could be made, which proves nothing else
	OBSERVATION_KIND_COUNT,
};

// Responder of one-sided operations at the subject's end of the path.
enum observation_responder {
	OBSERVATION_RESPONDER_UNKNOWN,
	OBSERVATION_RESPONDER_HARDWARE,
	OBSERVATION_RESPONDER_KERNEL,
	// The agent itself: it fails with the agent, so it cannot tell a dead host from a dead
	// agent.
	OBSERVATION_RESPONDER_IN_PROCESS,
	OBSERVATION_RESPONDER_COUNT,
};

// How the subject's host treats the overlay connections of the observer. Not older than the read in
// the same observation.
enum verdict_reach {
	VERDICT_REACH_UNKNOWN, // no link between the two, or no result yet
	VERDICT_REACH_ANSWERS, // beats arrived after the reads turned bad
	VERDICT_REACH_ACCEPTS, // connects or acknowledges but sends nothing: the kernel lives
	VERDICT_REACH_REFUSES, // the host answers, but no process listens
	VERDICT_REACH_NONE,    // no answer at all
	VERDICT_REACH_LOSES,   // answers, but many segments must be retransmitted
	VERDICT_REACH_OTHER,   // another agent answers at the subject's address
	VERDICT_REACH_COUNT,
};

static inline bool verdict_reach_is_unanswered(enum verdict_reach reach) {
	return reach == VERDICT_REACH_ACCEPTS || reach == VERDICT_REACH_REFUSES ||
	       reach == VERDICT_REACH_NONE;
}

// One observer's report on a subject: the read over one path, and the state of the overlay link. A
// report without a device concerns the overlay alone; its kind is OBSERVATION_NO_PAIR.
struct observation {
	uint64_t observer, subject;
	uint64_t incarnation; // the subject's, as the observer knows it
	enum observation_kind kind;
	enum observation_responder responder;
	enum verdict_reach reach;
	// The observer's device reads itself, and another host if it has a path to one.
	bool own_good;
	bool shares;				  // the path uses the overlay's interface
	char device[VERDICT_DEVICE_MAX + 1];	  // the observer's
	char peer_device[VERDICT_DEVICE_MAX + 1]; // the subject's
	uint32_t median_ns, baseline_ns;	  // 0: unknown
	// Share of lost probes of the lost sizes, over the last window. For VERDICT_REACH_LOSES:
	// share of retransmitted segments.
	uint32_t lost_permille;
	// Lossy: smallest size that is lost; 0: all sizes. Good: smallest size that failed its last
	// try, so that the report proves nothing for it and larger sizes; 0: all passed.
	uint32_t lost_bytes;
	// Time since the state was seen, when published. For a good path it counts from the last
	// advance of the counter. A second read of the same counter value proves nothing yet.
	uint32_t age_ms;
	// Number of the notice that carried it, not sent itself; it grows with each notice of the
	// observer. 0: own observation.
	uint64_t number;
};

#define PROCESSOR_SHORT "ProcessorShort" // reason of VERDICT_NODE_BUSY

// Statement of a node about itself: local checks, drivers, own ports. One per reason.
// VERDICT_HEALTHY withdraws the statement with the same reason.
struct statement {
	uint64_t subject;     // the node that makes the statement
	enum verdict verdict; // one that statement_verdict_is_allowed() accepts
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t age_s;
	uint64_t number; // of the notice, as in struct observation; not sent
};

// Return how important a statement is; a full table gives up its least important one. Withdrawn
// statements come first, then unknown ones, then the others by severity.
static inline uint32_t statement_weight(const struct statement *statement) {
	if (statement->verdict == VERDICT_HEALTHY)
		return 0;
	return statement->verdict == VERDICT_UNKNOWN ? 1 : (uint32_t)statement->verdict;
}

// Append to a notice. Returns 0, -EMSGSIZE if it does not fit, or -EINVAL if no reader would accept
// it. On error the writer is unchanged.
int observation_put(struct wire_writer *writer, const struct observation *observation);
int statement_put(struct wire_writer *writer, const struct statement *statement);

enum told_kind { TOLD_OBSERVATION, TOLD_STATEMENT };

struct told {
	enum told_kind kind;
	struct observation observation;
	struct statement statement;
};

// Read the next item of a notice, with all fields validated; kinds of a newer version are skipped.
// Returns 0, -ENODATA at the end, -EBADMSG, -EMSGSIZE or -EILSEQ.
int notice_item_get(struct wire_reader *reader, struct told *ret_told);

const char *verdict_reach_name(enum verdict_reach reach);
const char *observation_kind_name(enum observation_kind kind);
const char *observation_responder_name(enum observation_responder responder);
