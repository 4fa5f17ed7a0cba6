// SPDX-License-Identifier: BSD-3-Clause
// What is said of a node: one word, and what those who act on it may do.
//
// Peer states (ras/types.h) speak of agents, verdicts of hosts, fabrics and processes.
#pragma once

#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_REASON_MAX 31	 // bytes, CamelCase; stable, since schedulers and alerts match it
#define VERDICT_EVIDENCE_MAX 160 // bytes of one sentence, UTF-8
#define VERDICT_OBSERVERS_MAX 8	 // named with a verdict
#define VERDICT_DEVICE_MAX 15	 // bytes of a device's name as evidence carries it

// In the order of their weight: of several that hold, the last is told. Numbers travel.
enum verdict {
	VERDICT_NONE,	       // it left: nothing is said of it
	VERDICT_HEALTHY,       //
	VERDICT_CHECK_WARNING, // a local check warns
	VERDICT_PATH_DEGRADED, // slow against its own past and against its like
	VERDICT_PATH_LOSSY,    // loses large sizes only
	VERDICT_UNSTABLE,      // its word changed more than three times in a minute
	VERDICT_UNKNOWN,       // own evidence is stale, a pause of our own, the brake
	VERDICT_MGMT_NET_DOWN, // the overlay does not reach it, its pulse advances
	VERDICT_AGENT_DOWN,    // its host answers, its process is gone
	VERDICT_AGENT_FROZEN,  // its host answers, its process does not
	VERDICT_CHECK_FAILED,  // a local check says critical
	VERDICT_DEVICE_STUCK,  // a call into a driver hangs there
	VERDICT_FABRIC_DOWN,   // the overlay reaches it, its pulse is not to be read
	VERDICT_NODE_DOWN,     // neither plane reaches it
	VERDICT_COUNT,
};

// What a consumer may do at most.
enum verdict_advice {
	VERDICT_ADVICE_NOTHING,
	VERDICT_ADVICE_SHOW,	    // visible; neither drains nor undrains
	VERDICT_ADVICE_WARN,	    //
	VERDICT_ADVICE_RESTART,	    // the agent's service, and warn
	VERDICT_ADVICE_DRAIN_LATER, // once it has held for a confirmation time
	VERDICT_ADVICE_DRAIN,
};

enum verdict_grade {
	VERDICT_GRADE_OK,
	VERDICT_GRADE_WARNING,
	VERDICT_GRADE_CRITICAL,
	VERDICT_GRADE_UNKNOWN,
};

const char *verdict_name(enum verdict verdict); // "node-down"
const char *verdict_advice_name(enum verdict_advice advice);
enum verdict_grade verdict_grade_of(enum verdict verdict);
enum verdict_advice verdict_advice_of(enum verdict verdict);

// How sure: what the number of observers and planes allows.
enum verdict_confidence {
	VERDICT_LIKELY, // one observer, or one plane only
	VERDICT_SURE,	// two observers, or both planes
};

// A verdict on a node, as one agent holds it. Valid until the engine's next input.
struct verdict_view {
	uint64_t subject;
	enum verdict verdict;
	enum verdict_confidence confidence;
	enum verdict_advice advice; // the verdict's, no more than peer state and maintenance allow
	bool both_planes;   // overlay and data plane agree: only then jobs are told of node-down
	bool maint;	    // no alarm, no drain
	uint64_t since_ns;  // caller's clock
	uint64_t looked_ns; // when the newest of its evidence was seen
	const char *reason; // "None" when healthy
	const char *evidence;
	uint32_t observer_count;
	uint64_t observers[VERDICT_OBSERVERS_MAX];
};
