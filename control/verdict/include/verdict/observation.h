// SPDX-License-Identifier: BSD-3-Clause
// What one agent saw of another's pulse over one path, or says of itself: the evidence that
// travels.
//
// Observations are told to everybody (ras_notice) when they change for the worse or clear, again
// while they stay bad, and by those who see well what somebody else sees badly: from these every
// agent triangulates by itself, and all come to the same verdict.
#pragma once

#include <verdict/verdict.h>

struct wire_reader;
struct wire_writer;

enum observation_kind {
	OBSERVATION_GOOD,     // read, and it advances
	OBSERVATION_STANDING, // read, but its counter stands
	OBSERVATION_DEGRADED, // slow against its past and its like
	OBSERVATION_LOSSY,    // large sizes are lost
	OBSERVATION_SILENT,   // not read
	OBSERVATION_NO_PAIR,  // a pair could not be made: evidence of nothing but that
	OBSERVATION_KIND_COUNT,
};

// Who answers one-sided operations at the subject's end of the path.
enum observation_responder {
	OBSERVATION_RESPONDER_UNKNOWN,
	OBSERVATION_RESPONDER_HARDWARE,
	OBSERVATION_RESPONDER_KERNEL,
	// Dies and stands with the agent: tells no host from an agent.
	OBSERVATION_RESPONDER_IN_PROCESS,
	OBSERVATION_RESPONDER_COUNT,
};

// How its host takes the overlay's connections: of the observer that tells it, and not older than
// the read beside it.
enum verdict_reach {
	VERDICT_REACH_UNKNOWN, // there is no link between the two, or it says neither yet
	VERDICT_REACH_ANSWERS, // beats came since the reads turned bad
	VERDICT_REACH_ACCEPTS, // connects or acknowledges, and says nothing: the kernel lives
	VERDICT_REACH_REFUSES, // the host answers, nobody listens
	VERDICT_REACH_NONE,    // nothing comes back
	VERDICT_REACH_LOSES,   // answers, and much of what is sent to it has to be sent again
	VERDICT_REACH_COUNT,
};

static inline bool verdict_reach_is_unanswered(enum verdict_reach reach) {
	return reach == VERDICT_REACH_ACCEPTS || reach == VERDICT_REACH_REFUSES ||
	       reach == VERDICT_REACH_NONE;
}

// One observer's row of the design's table: what the read says, and what the overlay says beside
// it. So those who look at neither learn both. One with no device is of the overlay alone: its kind
// is OBSERVATION_NO_PAIR.
struct observation {
	uint64_t observer, subject;
	uint64_t incarnation; // of the subject, as the observer knows it
	enum observation_kind kind;
	enum observation_responder responder;
	enum verdict_reach reach;
	bool own_good; // the observer's device reads itself, and some other host if it could
	bool shares;   // the path uses the interface that the overlay uses
	char device[VERDICT_DEVICE_MAX + 1];	  // the observer's
	char peer_device[VERDICT_DEVICE_MAX + 1]; // the subject's
	uint32_t median_ns, baseline_ns;	  // 0: not known
	// Of the sizes that are lost, over the last window; of REACH_LOSES what was sent again.
	uint32_t lost_permille;
	// The smallest size that is lost; 0: all. Of a good one the smallest that did not pass
	// lately, of which and of larger ones it says nothing; 0: all did.
	uint32_t lost_bytes;
	// Since it was seen, when told. Of one that is read: since its counter was last seen to
	// advance. A read that shows the same counter again proves nothing yet.
	uint32_t age_ms;
	// Not told: of the notice that it came by, which grows with what its observer tells; 0: our
	// own.
	uint64_t number;
};

// What a node says of itself: local checks, its drivers, its own ports. One row for each; a
// statement with VERDICT_HEALTHY takes back the one of the same reason.
struct statement {
	uint64_t subject;     // who says it
	enum verdict verdict; // one that statement_may_say()
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t age_s;
	uint64_t number; // not told: of the notice, as an observation's
};

// Into and out of a notice. -EMSGSIZE: it does not fit, -EINVAL: no reader would take it; the
// writer is as before.
int observation_put(struct wire_writer *writer, const struct observation *observation);
int statement_put(struct wire_writer *writer, const struct statement *statement);

enum told_kind { TOLD_OBSERVATION, TOLD_STATEMENT };

struct told {
	enum told_kind kind;
	struct observation observation;
	struct statement statement;
};

// The next of a notice. 0, -ENODATA at its end, -EBADMSG, -EMSGSIZE, -EILSEQ; kinds of a newer
// version are skipped. Everything is checked: enumerations, names, numbers, UTF-8.
int told_get(struct wire_reader *reader, struct told *ret_told);

const char *verdict_reach_name(enum verdict_reach reach);
const char *observation_kind_name(enum observation_kind kind);
const char *observation_responder_name(enum observation_responder responder);
