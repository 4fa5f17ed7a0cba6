// SPDX-License-Identifier: BSD-3-Clause
// The brake: if too many members fall silent at once, the network or this agent has failed, not the
// members.
//
// No agent sees the whole view from its own links, and a sample is wrong too often. Among many
// observers, the one with a wrong sample would declare the death. So before a death an observer
// runs a census: it asks over all good links, and each asked member asks further. The numbers are
// summed on the way back (a collective of its own kind). Each origin announces its result. The
// results of two origins serve all members that need one at that time. The cost therefore does not
// grow with the number of observers. The result of one other origin alone is not believed: it may
// be a lie, or come from an agent that is cut off.
#pragma once

#include "live/liveness.h"

enum brake_decision {
	BRAKE_FREE,    // the death may be declared
	BRAKE_HELD,    // the death may not be declared
	BRAKE_UNKNOWN, // no result is recent enough; a census was requested
};

void brake_tick(struct ras *ras);
// Discard the results from before a pause of this agent.
void brake_resume(struct ras *ras);
// Request a census that begins at `since_ns` or later. Its result is available after about
// CENSUS_NS.
void brake_request_census(struct ras *ras, uint64_t since_ns);
// Return the earliest start of a census that is fresh enough for a look that begins now.
uint64_t brake_census_fresh_since_ns(const struct ras *ras);
// Decide on a death, by a census that began at `since_ns` or later. `silent_ns` is when the peer
// fell silent or was first refused.
enum brake_decision brake_decision(struct ras *ras, uint64_t silent_ns, uint64_t since_ns);
enum brake_subject_heard {
	BRAKE_HEARD_BY_NONE,   // no member hears the peer
	BRAKE_HEARD_BY_SOME,   // a member hears the peer: it lives and refuses only some
	BRAKE_HEARD_NOT_ASKED, // the census did not ask about the peer
};

// Return whether the latest census found a member that hears the subject.
enum brake_subject_heard brake_subject_heard(const struct ras *ras, uint64_t subject);

// Do the same by a census that began at `since_ns` or later and asked about the subject. If there
// is none, return NOT_ASKED and request a census.
enum brake_subject_heard
brake_subject_heard_since(struct ras *ras, uint64_t subject, uint64_t since_ns);

// Return true if this is a minority side by a recent census: see "minority side" in
// docs/internals/membership.md. Such a side never declares a death by timeout.
bool brake_is_minority_side(const struct ras *ras);
// Note that another origin began a census; with two of them no own census is needed. `serves`: the
// result of census_list_is_usable(). Members with a vote ignore a census that is not usable.
void brake_census_started(struct ras *ras, uint64_t origin, bool serves);
// Apply the result of our own census that began at `from_ns`, and announce it with the size of our
// view.
void brake_own_census_done(struct ras *ras, uint64_t from_ns, struct census_result *result);
// Handle the result announced by another origin.
void brake_peer_census_done(struct ras *ras, uint64_t origin, const struct census_result *result);
