// SPDX-License-Identifier: BSD-3-Clause
// Rivals: other holders of our name. A rival is an agent of another ring that met ours. Or it is an
// earlier run of this agent that other members still believe alive.
#pragma once

#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stdint.h>

struct message_init_ack;
struct ras;
struct ras_record;

struct rival {
	struct sock_addr address; // reported address of the rival
	uint64_t start;		  // a start above that of the rival, 0 if unknown
	uint64_t next_ns;	  // observed time before which no rival is called
	bool gave_way;		  // this agent gave its name up
};

// Return true if the record has our name, another holder, and a higher start or digest than ours.
bool rival_outranks_us(const struct ras *ras, const struct ras_record *record);
// Call the reported address of a rival, if we are a member. If another agent answers there, the
// rival was an earlier run of this agent at an old address. We then take `start`, if it is higher
// than our own.
void rival_call(struct ras *ras, const struct sock_addr *address, uint64_t start);
// Process the answer from an address that we called.
void rival_answer_received(
	struct ras *ras, const struct sock_addr *address, const struct message_init_ack *ack
);
