// SPDX-License-Identifier: BSD-3-Clause
// Identity check of an advertised address. The agent there must prove the key and state its name; a
// connection alone proves nothing. A stranger is another agent that answers there. A stranger is
// evidence of a wrong configuration, not of a death.
#pragma once

#include <ras/ras.h>

struct conn;
struct link;
struct message_init;
struct message_init_ack;

#define STRANGERS_MAX 8 // findings kept; the oldest makes room

struct strangers {
	struct ras_stranger list[STRANGERS_MAX];
	uint32_t count;
};

// Store that agent `found` answered at the address of `peer`. Emits an event if that is new.
void stranger_add(struct ras *ras, uint64_t peer, const struct sock_addr *address, uint64_t found);
// Drop a finding, because the peer itself answered at the address.
void stranger_remove(struct ras *ras, uint64_t peer, const struct sock_addr *address);
// Return the id of the sender of this answer, 0 if its record is malformed.
uint64_t stranger_id_from_ack(struct ras *ras, const struct message_init_ack *ack);

// Answer a caller that asks for our identity, and close the connection.
void who_query_answer(struct ras *ras, struct conn *conn);
// Process the answer to our own question, or the end of its connection without an answer.
void who_answer_received(struct ras *ras, struct conn *conn, const struct message_init_ack *ack);
void who_conn_ended(struct ras *ras, struct conn *conn, enum ras_cause cause);
