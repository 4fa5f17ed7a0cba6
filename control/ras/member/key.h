// SPDX-License-Identifier: BSD-3-Clause
// Binds the name of a member to the key of its agent.
//
// A name belongs to one key for as long as its member lives here. A record of the same name with
// another key is accepted in three cases only:
//
//	1. The member is dead, left or unknown.
//	2. The agent at the member's own address sent us the record. Two agents cannot listen at
//	   one address, so the old agent has ended.
//	3. Nobody answers us at this address, or an agent of another name does, and no link hears
//	   the member. Then this agent cannot decide, and relies on the reports of others.
//
// So an agent that lost its state directory comes back. A refused record makes this agent ask at
// the member's address for the identity there, once in 10 s.
#pragma once

#include <ras/types.h>

struct peer_news;
struct ras;

#define KEY_CHECKS_MAX 16
#define KEY_CHECKS_PER_TELLER 4 // so one liar cannot keep all places taken

struct key_check {
	uint64_t peer;
	uint64_t fingerprint; // of the refused key
	uint64_t teller;      // sender of the update: a neighbour, or the IP address of a newcomer
	uint64_t ask_ns;      // time at which the question is due; RAS_NEVER: already asked
	uint64_t end_ns;      // observed time at which the check ends
	bool is_unanswered;   // nobody answers at the address of the member
};

struct key_checks {
	struct key_check list[KEY_CHECKS_MAX];
	uint32_t count;
};

// Return true if the update has another key than the member in this slot, and none of the three
// exceptions above applies.
bool key_change_needs_proof(struct ras *ras, uint32_t slot, const struct peer_news *news);
// Count the refused update, and ask soon who answers at the member's address. If the member keeps
// its key, KEY_REFUSED is emitted at the end. `teller` stands for the sender of the update: the
// neighbour, or the IP address of a newcomer.
void key_change_refuse(
	struct ras *ras, uint32_t slot, const struct peer_news *news, uint64_t teller
);
// Note that a question at the address of this peer had no answer.
void key_check_unanswered(struct ras *ras, uint64_t peer);
void key_checks_tick(struct ras *ras);
