// SPDX-License-Identifier: BSD-3-Clause
// Collectives: a request is flooded to all members, and the answers return up the flood tree.
//
// A leg is the request to one neighbour. The parent is the neighbour that asked us. The root is the
// node that started the collective. These invariants hold at every node, and tests check them:
//  A. A leg is open from the sending of the request until its final answer arrives, its link is
//     lost, or it expires. It closes once. A later answer is counted as late and changes nothing.
//  B. A request that was seen before is answered at once with an empty final answer.
//  C. An inner node of the tree keeps at most one unsent frame of answers.
//  D. A leg gets a smaller budget than our own, so that it answers before we give up.
//  E. Every lost or expired leg makes one LOST item, which travels up like an answer.
//  F. A collective ends by its deadline, whatever other nodes do.
#pragma once

#include <ras/collective.h>

struct link;
struct ras;
struct wire_reader;

#define COLLECTIVES_MAX 16 // running collectives of users per instance
#define CENSUSES_MAX 8	   // running censuses per instance

struct collective; // all collectives of an instance

int collective_create(struct ras *ras); // -ENOMEM
void collective_destroy(struct ras *ras);

// Start a census, which counts the reachable members. brake_own_census_done() gets the result
// within `timeout_ns`. It gets none if there is no memory, or CENSUSES_MAX are running.
void collective_census_start(
	struct ras *ras, uint64_t timeout_ns, const struct ras_comm_id *entries, uint32_t count
);

// Process a received message whose type byte was read. Returns 0, or an error of the decoder: then
// the caller closes the connection. Well-formed but invalid messages are counted and answered here.
int collective_request_received(struct ras *ras, struct link *link, struct wire_reader *reader);
int collective_answer_received(struct ras *ras, struct link *link, struct wire_reader *reader);
int collective_cancel_received(struct ras *ras, struct link *link, struct wire_reader *reader);

// Give up the legs over a link that was lost (is not ready) or turned delayed. Requests that came
// over a lost link are abandoned. Over a delayed link the answer may still arrive.
void collective_link_lost(struct ras *ras, struct link *link);
// Give up everything from and to a peer that died, left or is about to lose its slot.
void collective_peer_gone(struct ras *ras, uint32_t slot);

void collective_tick(struct ras *ras);
// Return when the next tick is due, in the caller's time as all deadlines; RAS_NEVER for never.
uint64_t collective_next_ns(const struct ras *ras);
