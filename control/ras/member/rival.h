// SPDX-License-Identifier: BSD-3-Clause
// Two holders of one name: another one whose ring meets ours, or an earlier run of ours that those
// whom we meet still hold for the one that lives.
#pragma once

#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stdint.h>

struct message_init_ack;
struct ras;
struct ras_record;

struct rival {
	struct sock_addr address; // where it is said to live
	uint64_t start;		  // above its own, 0 if that was not told
	uint64_t next_ns;	  // none is called before this; observed time
	bool gave_way;		  // we did
};

// True if a record of our name is another holder's, and stands above ours.
bool rival_is_above(const struct ras *ras, const struct ras_record *record);
// Another holder of our name is said to live there: is called, if we are a member. A start that is
// above its own is taken if somebody else answers there: then it is a run of ours, of before the
// addresses changed.
void rival_call(struct ras *ras, const struct sock_addr *address, uint64_t start);
// What was answered at an address that we called.
void rival_answered(
	struct ras *ras, const struct sock_addr *address, const struct message_init_ack *ack
);
