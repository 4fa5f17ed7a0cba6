// SPDX-License-Identifier: BSD-3-Clause
// Who answers at the address that a member tells: asked of the agent there, who has to prove the
// key and to say its name. A connection alone is no proof, and whoever else answers is evidence of
// a mistake in somebody's configuration, not of a death.
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

// Another one answered where we look for this peer. An event when that is new.
void stranger_found(
	struct ras *ras, uint64_t peer, const struct sock_addr *address, uint64_t found
);
// The peer itself answered there.
void stranger_gone(struct ras *ras, uint64_t peer, const struct sock_addr *address);
// Who sent this answer; 0 if that cannot be read.
uint64_t stranger_of(struct ras *ras, const struct message_init_ack *ack);

// Somebody asks who we are: says so, and closes.
void who_serve(struct ras *ras, struct conn *conn);
// The answer to our question, or the end of its connection without one.
void who_answered(struct ras *ras, struct conn *conn, const struct message_init_ack *ack);
void who_ended(struct ras *ras, struct conn *conn, enum ras_cause cause);
