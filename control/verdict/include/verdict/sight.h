// SPDX-License-Identifier: BSD-3-Clause
// What one agent saw of another's pulse over one path, or says of itself: the evidence that
// travels.
//
// Sights are told to everybody (ras_notice) when they change for the worse or clear, again while
// they stay bad, and by those who see well what somebody else sees badly: from these every agent
// triangulates by itself, and all come to the same verdict.
#pragma once

#include <verdict/verdict.h>

struct wire_reader;
struct wire_writer;

enum sight_kind {
	SIGHT_GOOD,	// read, and it advances
	SIGHT_STANDING, // read, but its counter stands
	SIGHT_DEGRADED, // slow against its past and its like
	SIGHT_LOSSY,	// large sizes are lost
	SIGHT_SILENT,	// not read
	SIGHT_NO_PAIR,	// a pair could not be made: evidence of nothing but that
	SIGHT_KIND_COUNT,
};

// Who answers one-sided operations at the subject's end of the path.
enum sight_responder {
	SIGHT_RESPONDER_UNKNOWN,
	SIGHT_RESPONDER_HARDWARE,
	SIGHT_RESPONDER_KERNEL,
	SIGHT_RESPONDER_IN_PROCESS, // dies and stands with the agent: tells no host from an agent
	SIGHT_RESPONDER_COUNT,
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
// is SIGHT_NO_PAIR.
struct sight {
	uint64_t observer, subject;
	uint64_t incarnation; // of the subject, as the observer knows it
	enum sight_kind kind;
	enum sight_responder responder;
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
};

// What a node says of itself: local checks, its drivers, its own ports. One row for each; a
// statement with VERDICT_HEALTHY takes back the one of the same reason.
struct statement {
	uint64_t subject;     // who says it
	enum verdict verdict; // one that statement_may_say()
	char reason[VERDICT_REASON_MAX + 1];
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t age_s;
};

// Into and out of a notice. -EMSGSIZE: it does not fit, -EINVAL: no reader would take it; the
// writer is as before.
int sight_put(struct wire_writer *writer, const struct sight *sight);
int statement_put(struct wire_writer *writer, const struct statement *statement);

enum told_kind { TOLD_SIGHT, TOLD_STATEMENT };

struct told {
	enum told_kind kind;
	struct sight sight;
	struct statement statement;
};

// The next of a notice. 0, -ENODATA at its end, -EBADMSG, -EMSGSIZE, -EILSEQ; kinds of a newer
// version are skipped. Everything is checked: enumerations, names, numbers, UTF-8.
int told_get(struct wire_reader *reader, struct told *ret_told);

const char *verdict_reach_name(enum verdict_reach reach);
const char *sight_kind_name(enum sight_kind kind);
const char *sight_responder_name(enum sight_responder responder);
