// SPDX-License-Identifier: BSD-3-Clause
// Verdicts: the state of one node in one word, and what its consumers may do.
//
// Peer states (ras/types.h) describe agents; verdicts describe hosts, fabrics and processes.
#pragma once

#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

#define VERDICT_REASON_MAX 31	 // bytes, CamelCase; stable, since schedulers and alerts match it
#define VERDICT_EVIDENCE_MAX 160 // bytes of one sentence, UTF-8
#define VERDICT_OBSERVERS_MAX 8	 // observers named with a verdict
#define VERDICT_DEVICE_MAX 15	 // bytes of a device name in an observation

// In order of severity: of several verdicts that hold, the last one is reported. The protocol has
// its own numbers (observation.c).
enum verdict {
	VERDICT_NONE,	       // the node left; there is no verdict on it
	VERDICT_HEALTHY,       // nothing speaks against the node
	VERDICT_NODE_BUSY,     // its agent is short of processor time, as it states itself
	VERDICT_CHECK_WARNING, // a local check warns
	VERDICT_PATH_DEGRADED, // slow against the own baseline and against comparable paths
	VERDICT_PATH_LOSSY,    // loses large probes, probes of any size, or packets
	VERDICT_UNSTABLE,      // changed more than three times in a minute
	VERDICT_UNKNOWN,       // undecided, for example stale evidence, an own pause or the brake
	VERDICT_MGMT_NET_DOWN, // unreachable on the overlay, but the pulse advances
	VERDICT_AGENT_DOWN,    // the host answers, the agent's process is gone
	VERDICT_AGENT_FROZEN,  // the host answers, the agent's process does not
	VERDICT_CHECK_FAILED,  // a local check reports critical
	VERDICT_DEVICE_STUCK,  // a call into a driver of the node hangs
	VERDICT_FABRIC_DOWN,   // reachable on the overlay, but the pulse cannot be read
	VERDICT_NODE_DOWN,     // unreachable on overlay and data plane
	VERDICT_COUNT,
};

// Most severe action that a consumer may take.
enum verdict_advice {
	VERDICT_ADVICE_NOTHING,
	VERDICT_ADVICE_SHOW,	    // display it; do not drain or undrain
	VERDICT_ADVICE_WARN,	    // raise a warning
	VERDICT_ADVICE_RESTART,	    // restart the agent's service, and warn
	VERDICT_ADVICE_DRAIN_LATER, // drain once it has held for a confirmation time
	VERDICT_ADVICE_DRAIN,
};

enum verdict_grade {
	VERDICT_GRADE_OK,
	VERDICT_GRADE_WARNING,
	VERDICT_GRADE_CRITICAL,
	VERDICT_GRADE_UNKNOWN,
};

const char *verdict_name(enum verdict verdict); // for example "node-down"
const char *verdict_advice_name(enum verdict_advice advice);
enum verdict_grade verdict_grade_of(enum verdict verdict);
enum verdict_advice verdict_advice_of(enum verdict verdict);

// How sure a verdict is, by the number of observers and planes.
enum verdict_confidence {
	VERDICT_LIKELY, // one observer, or one plane only
	VERDICT_SURE,	// two observers, or both planes
};

// Verdict on one node from this agent's view. Valid until the engine's next input.
struct verdict_view {
	uint64_t subject;
	enum verdict verdict;
	enum verdict_confidence confidence;
	enum verdict_advice advice; // limited by the peer state and maintenance
	bool both_planes;   // overlay and data plane agree; only then do jobs learn of node-down
	bool maint;	    // in maintenance: no alarm, no drain
	uint64_t since_ns;  // caller's clock
	uint64_t looked_ns; // when the newest evidence was seen
	const char *reason; // "None" when healthy
	const char *evidence;
	uint32_t observer_count;
	uint64_t observers[VERDICT_OBSERVERS_MAX];
};
