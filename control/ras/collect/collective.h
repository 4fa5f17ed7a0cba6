// SPDX-License-Identifier: BSD-3-Clause
// Collectives: a request floods out, answers come back up the tree.
//
// What holds at every node, and is tested:
//  A. A leg is outstanding from the moment the request is sent to it until its final answer
//     came, its link was lost, or it expired. It leaves that state once; what arrives for it
//     afterwards is counted as late and changes nothing.
//  B. A request that was seen before is answered at once, empty and final.
//  C. A node above the leaves keeps at most one frame of what it has not sent up yet.
//  D. The budget handed to a leg is smaller than our own, so that it answers before we give up.
//  E. Every lost or expired leg makes one LOST item, which travels up like an answer.
//  F. A collective ends by its deadline whatever the others do.
#pragma once

#include <ras/collective.h>

struct link;
struct ras;
struct wire_reader;

#define COLLECTIVES_MAX 16 // running per instance
#define CENSUSES_MAX 8	   // and of the core's own beside them

struct collective; // all of an instance's

int collective_create(struct ras *ras); // -ENOMEM
void collective_destroy(struct ras *ras);

// Counts the members that can be reached; brake_counted() is told within the time. What cannot
// be begun for want of memory is not answered.
void collective_census(
	struct ras *ras, uint64_t timeout_ns, const struct ras_comm_id *entries, uint32_t count
);

// Messages, the type byte read already. 0, or the decoder's error: the caller then closes the
// connection. A message that is well-formed but wrong is counted and answered here.
int collective_request(struct ras *ras, struct link *link, struct wire_reader *reader);
int collective_response(struct ras *ras, struct link *link, struct wire_reader *reader);
int collective_cancelled(struct ras *ras, struct link *link, struct wire_reader *reader);

// The link was lost (no longer ready) or turned delayed. Legs over it are given up. What came
// by it is abandoned if it is lost; by a merely delayed link the answer may still go home.
void collective_link_lost(struct ras *ras, struct link *link);
// The peer died, left or is about to lose its slot.
void collective_peer_gone(struct ras *ras, uint32_t slot);

void collective_tick(struct ras *ras);
// In the caller's time, since that is what a deadline is stated in; RAS_NEVER if nothing waits.
uint64_t collective_next_ns(const struct ras *ras);
