// SPDX-License-Identifier: BSD-3-Clause
// Decides what to do with a node in Slurm, from Slurm's state and the agent's finding.
//
// Pure functions. The rules:
//   - A drain is ours only if the record holds its reason, user and time exactly. Any other
//     reason is never replaced or removed, even an empty one or one that begins like ours.
//   - An unknown state causes no drain and no undrain, and so does anything that cannot be parsed.
//   - A node is undrained only after it was healthy for `settle_s` and its own agent confirmed
//     that (slurm_round.h).
//   - A node that is said to report a fault of its own is not drained while its own agent reports
//     none. Evidence of other nodes needs no agreement. An agent that does not answer prevents no
//     drain, and the reason of the drain says so.
//   - At most `per_interval` nodes are drained per interval.
//   - No node is drained if then more than `share_percent` of all nodes would be out of service.
//     If everything seems broken, the observer itself is probably wrong.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLURM_PREFIX "tocsin: " // prefix of reasons, for readers only; it does not decide ownership
#define SLURM_REASON_MAX 160	// maximum length of our reasons, with the prefix
#define SLURM_NODE_MAX 255
#define SLURM_STAMP_MAX 127
// Delay until the agent of a node that was powered on joins; slurmd registers earlier.
#define SLURM_BOOT_S 60

// Node as reported by `scontrol show node`.
struct slurm_node {
	char name[SLURM_NODE_MAX + 1];
	char reason[512]; // "" if there is none
	// "user@seconds": user and time of the reason; "" if unknown
	char stamp[SLURM_STAMP_MAX + 1];
	bool ours;     // the record holds this reason
	bool drain;    // state has the flag DRAIN
	bool reboots;  // a reboot is requested or in progress
	bool starts;   // Slurm has not heard of it since slurmctld started (UNKNOWN)
	bool down;     // node or slurmd is down, powered off or starting: nothing to drain
	bool powers;   // powered off, powering off or powering on; a subset of `down`
	bool known;    // the state was understood
	bool returned; // an earlier round saw `powers`, and a later one did not
	uint64_t returned_for_s; // seconds since the node returned; valid if `returned`
	char silence[64];	 // why its own agent did not answer; "" if it did
};

// Action in Slurm that a row of `tocsin health --all --json` permits.
enum slurm_advice {
	SLURM_ADVICE_UNKNOWN, // no row, a stale or malformed one, or the verdict "unknown": keep
	SLURM_ADVICE_HEALTHY, // may be undrained
	SLURM_ADVICE_NONE,    // warning, restart, informative or in maintenance: keep
	SLURM_ADVICE_DRAIN,
};

struct slurm_finding {
	char node[SLURM_NODE_MAX + 1];
	enum slurm_advice advice;
	char reason[64];    // CamelCase
	char evidence[256]; // one sentence
	uint64_t for_s;	    // age of the finding in seconds
	bool own_word;	    // the node itself is the only observer
	bool is_mild;	    // the grade is ok or warning
};

// Answer of a node's own agent about its node.
struct slurm_own_answer {
	bool skipped;	 // it was not asked, because other agents did not answer
	bool is_healthy; // it confirms that the node is healthy
	bool is_mild;	 // it finds the node healthy, or worth a warning at most
};

enum slurm_action {
	SLURM_KEEP,
	SLURM_DRAIN,
	SLURM_UNDRAIN,
};

// Reason to keep a node although a change might be expected; logged once per change.
enum slurm_why {
	SLURM_WHY_NOTHING,     // nothing is wrong, or the node is already as it should be
	SLURM_WHY_FOREIGN,     // drained by somebody else
	SLURM_WHY_UNRECORDED,  // reason has our prefix, but is not in this record
	SLURM_WHY_EMPTY,       // drained without a reason: not ours
	SLURM_WHY_DOWN,	       // down in Slurm
	SLURM_WHY_UNKNOWN,     // unknown to the agents
	SLURM_WHY_UNREAD,      // Slurm's state was not understood
	SLURM_WHY_SETTLES,     // healthy, but not for long enough
	SLURM_WHY_REBOOTS,     // healthy, but a reboot was requested
	SLURM_WHY_STARTS,      // healthy, but Slurm has not heard of it since slurmctld started
	SLURM_WHY_UNCONFIRMED, // healthy, but not confirmed by its own agent
	SLURM_WHY_RETURNED,    // the problem began before the node was powered on
	SLURM_WHY_BRAKE,       // a limit on drains is reached
	SLURM_WHY_DENIED,      // its own agent denies what it is said to report
	SLURM_WHY_SKIPPED,     // its own agent could not be asked in this round
	SLURM_WHY_COUNT,
};

const char *slurm_why_words(enum slurm_why why);

struct slurm_limits {
	uint32_t per_interval;
	uint32_t share_percent;
	uint64_t settle_s;
};

// Counts of one round.
struct slurm_tally {
	uint32_t nodes;	     // nodes in Slurm
	uint32_t out;	     // drained or down for any reason, with the drains of this round
	uint32_t drained;    // drained in this interval
	uint32_t unanswered; // own agents that did not answer in this round
};

enum slurm_action slurm_decide(
	const struct slurm_limits *limits,
	const struct slurm_tally *tally,
	const struct slurm_node *node,
	const struct slurm_finding *finding, // NULL: no finding
	enum slurm_why *ret_why
);

// Return why a node may not be drained after its own agent was asked, or SLURM_WHY_NOTHING.
enum slurm_why
slurm_drain_objection(const struct slurm_finding *finding, const struct slurm_own_answer *own);

// Return true if the reason begins with SLURM_PREFIX.
bool slurm_reason_has_prefix(const char *reason);
// Return true if only Slurm appended text to the reason `before`. It does so when it reboots a
// node, and then changes the time, too.
bool slurm_reason_was_extended(const char *reason, const char *before);
// Format "tocsin: NodeSilent: 2 of 2 ...": one line of printable ASCII without quotes. Evidence
// that is too long is cut at a word. "; its agent: ..." follows if `silence` is not "".
void slurm_reason_make(
	const struct slurm_finding *finding,
	const char *silence,
	char text[static SLURM_REASON_MAX + 1]
);

// Parse a state such as "IDLE+DRAIN*". Sets `known` and adds the flags.
void slurm_node_parse_state(const char *state, size_t length, struct slurm_node *node);
// Set the stamp from user and time. The format is the same for scontrol and slurmrestd.
void slurm_node_set_stamp(const char *user, size_t length, int64_t at_s, struct slurm_node *node);
// Parse a line of `scontrol -o show node` with times in UTC. Returns false if it has no NodeName.
bool slurm_node_parse(const char *line, struct slurm_node *ret_node);
