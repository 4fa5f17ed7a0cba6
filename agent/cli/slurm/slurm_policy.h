// SPDX-License-Identifier: BSD-3-Clause
// What may be done to a node in Slurm, from what Slurm says of it and what the agent says of it.
//
// Pure. The rules, each paid for by somebody's cluster:
//  - only what our record holds word for word, with who gave it and when, is ours: any other reason
//    is never overwritten and never taken away, one that begins as ours do and an empty one too;
//  - unknown neither drains nor undrains, and so does anything that cannot be parsed;
//  - nothing is undrained before it has been healthy for `settle_s`, and has been looked at once
//    more by its own agent (slurm_round.h);
//  - not more than `per_interval` nodes are drained in one interval, nor are more than
//    `share_percent` of all nodes ever out of service when we drain another: whoever sees
//    everything break doubts himself first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLURM_PREFIX "tocsin: " // of reasons; it tells a reader whom to ask, and decides nothing
#define SLURM_REASON_MAX 160	// bytes of ours, prefix and all
#define SLURM_NODE_MAX 255
#define SLURM_STAMP_MAX 127
#define SLURM_BOOT_S 60 // slurmd of a node that was powered on registers before its agent is heard

// A node as `scontrol show node` has it.
struct slurm_node {
	char name[SLURM_NODE_MAX + 1];
	char reason[512];		 // "" if there is none
	char stamp[SLURM_STAMP_MAX + 1]; // who gave it and when, "user@second"; "" if not told
	bool ours;			 // our record holds that reason
	bool drain;			 // DRAIN is among its state's flags
	bool reboots;			 // a reboot was asked for, or is under way
	bool starts;	 // Slurm does not know it yet and takes no other state for it
	bool down;	 // it, or its slurmd, is down, powered off or being made: nothing to drain
	bool powers;	 // of these: powered off, or on its way there or back
	bool known;	 // its state was understood
	bool returned;	 // a look found that it powers, and a later one that it does not:
	uint64_t back_s; // for so long
};

// A node as `tocsin health --all --json` has it.
enum slurm_advice {
	SLURM_ADVICE_UNKNOWN, // not there, not understood, stale, or unknown
	SLURM_ADVICE_HEALTHY, // may be undrained
	SLURM_ADVICE_NONE,    // warned about, shown, in maintenance: as it is
	SLURM_ADVICE_DRAIN,
};

struct slurm_finding {
	char node[SLURM_NODE_MAX + 1];
	enum slurm_advice advice;
	char reason[64];    // CamelCase
	char evidence[256]; // a sentence
	uint64_t for_s;	    // it has been so
};

enum slurm_action {
	SLURM_KEEP,
	SLURM_DRAIN,
	SLURM_UNDRAIN,
};

// Why it is kept although something else might be expected; for the log, once per change.
enum slurm_why {
	SLURM_WHY_NOTHING,     // nothing is wrong, or it is as it should be
	SLURM_WHY_FOREIGN,     // drained by somebody else
	SLURM_WHY_UNRECORDED,  // in words that begin as ours, but this record does not hold them
	SLURM_WHY_EMPTY,       // drained without a reason: not ours
	SLURM_WHY_DOWN,	       // Slurm itself has it down
	SLURM_WHY_UNKNOWN,     // the agents do not know
	SLURM_WHY_UNREAD,      // Slurm's word for its state was not understood
	SLURM_WHY_SETTLES,     // healthy, but not for long enough
	SLURM_WHY_REBOOTS,     // healthy, but a person wants it rebooted first
	SLURM_WHY_STARTS,      // healthy, but Slurm has not heard of it since its controller began
	SLURM_WHY_UNCONFIRMED, // healthy, but its own agent did not say so just now
	SLURM_WHY_RETURNED,    // what is wrong was so before it was powered on
	SLURM_WHY_BRAKE,       // as many as allowed are drained
	SLURM_WHY_COUNT,
};

const char *slurm_why_words(enum slurm_why why);

struct slurm_limits {
	uint32_t per_interval;
	uint32_t share_percent;
	uint64_t settle_s;
};

// What a run has done so far, and what it found when it began.
struct slurm_tally {
	uint32_t nodes;	     // in Slurm
	uint32_t out;	     // drained or down, by whomever; those drained since are added
	uint32_t drained;    // in this interval
	uint32_t unanswered; // own agents that were asked in it, and did not answer
};

enum slurm_action slurm_decide(
	const struct slurm_limits *limits,
	const struct slurm_tally *tally,
	const struct slurm_node *node,
	const struct slurm_finding *finding, // NULL: the agents say nothing of it
	enum slurm_why *ret_why
);

// Whether it begins as ours do.
bool slurm_reason_is_like_ours(const char *reason);
// Whether Slurm itself, and nobody else, has written behind a reason since: of a node that it
// reboots, with a time of its own.
bool slurm_reason_grew(const char *reason, const char *before);
// "tocsin: NodeSilent: 2 of 2 ...": one line of printable ASCII without quotes, cut at a word.
void slurm_reason_make(const struct slurm_finding *finding, char text[static SLURM_REASON_MAX + 1]);

// "IDLE+DRAIN*", as Slurm writes states: sets known, and adds drain and down.
void slurm_node_take_state(const char *state, size_t length, struct slurm_node *node);
// Who gave the reason, and the second: the same whichever way to Slurm tells it.
void slurm_node_take_stamp(const char *user, size_t length, int64_t at_s, struct slurm_node *node);
// A line of `scontrol -o show node`, whose times are UTC. False if there is no NodeName in it.
bool slurm_node_parse(const char *line, struct slurm_node *ret_node);
