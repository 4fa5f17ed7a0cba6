// SPDX-License-Identifier: BSD-3-Clause
// Connections: from open or accept, through INIT and INIT_ACK, to ready or refused.
#pragma once

#include <lib/sockaddr.h>
#include <ras/ras.h>

struct link;
struct message_init;
struct message_init_ack;
struct wire_reader;

enum conn_stage {
	CONN_FREE,
	CONN_CONNECTING, // outgoing, not yet open
	CONN_INIT_SENT,	 // outgoing, waits for INIT_ACK
	CONN_INIT_WAIT,	 // incoming, waits for INIT
	CONN_READY,	 // carries a link
	CONN_JOIN_READY, // carries a table to a joiner, or to us
};

struct conn {
	uint32_t handle; // index | generation << CONN_INDEX_BITS
	enum conn_stage stage;
	bool outgoing;
	bool join;     // to a seed, or from a joiner: there is no link
	bool serving;  // it is one of the joins we serve
	bool outlived; // from an address that is ours no more: to be ended
	bool blocked;  // the transport takes nothing until it is writable
	uint64_t who;  // only asks who is there, looking for this peer; 0: no
	uint16_t version;
	struct link *link;    // NULL for a join or a question, and before INIT
	uint64_t deadline_ns; // of the stage, observed time; RAS_NEVER once ready
	uint64_t opened_ns;
	uint64_t ready_ns;
	uint32_t next_slot;    // of the table, when we serve a join
	uint64_t foreign_told; // and then the id of the last item of foreign.h
	struct sock_addr address;
};

#define CONN_INDEX_BITS 12
#define CONNS_MAX (1u << CONN_INDEX_BITS)

struct conns {
	struct conn **table; // NULL where there is none; one holds as long as an input is handled
	uint32_t count, capacity;
	uint32_t open;
	uint32_t freed;	      // ended, their places to be given back
	uint32_t generation;  // of the latest handle
	uint64_t deadline_ns; // no stage ends before this
};

void conns_fini(struct ras *ras);
void conns_tick(struct ras *ras);
// Gives back what ended. Called when no input is being handled any more.
void conns_reap(struct ras *ras);
// Closes those that carry no link.
void conns_leave(struct ras *ras);

// NULL if the handle's connection is no more.
struct conn *conn_find(const struct ras *ras, uint32_t handle);
// Starts to connect, for a link or to join; NULL if there are as many connections as allowed.
struct conn *conn_open(struct ras *ras, const struct sock_addr *address, struct link *link);
// The same, to ask who is at the peer's address.
struct conn *conn_open_to_ask(struct ras *ras, uint32_t slot);
// Ends it from our side; nobody is told.
void conn_close(struct ras *ras, struct conn *conn, enum ras_close how);
// Ends it from our side; join or link hear why.
void conn_failed(struct ras *ras, struct conn *conn, enum ras_close how, enum ras_cause cause);
// The stage that follows, and how long it may last; RAS_NEVER for as long as it likes.
void conn_stage(struct ras *ras, struct conn *conn, enum conn_stage stage, uint64_t limit_ns);
// The stage it is in ends after this much more.
void conn_extend(struct ras *ras, struct conn *conn, uint64_t limit_ns);
// 0, or -EAGAIN: the frame was not taken and the connection is now blocked.
int conn_send(struct ras *ras, struct conn *conn, const void *frame, size_t size);
// What every INIT and INIT_ACK says of us.
void conn_ack_fill(const struct ras *ras, struct message_init_ack *ret_ack);
// What a refusal says of the versions that its sender speaks.
struct ras_versions conn_ack_versions(const struct message_init_ack *ack);
// It refused us since we have none in common: now and then that is an event.
void conn_other_version(struct ras *ras, const struct message_init_ack *ack);
// Answers with a refusal and closes softly.
void conn_refuse(struct ras *ras, struct conn *conn, struct message_init_ack *ack);
// The first frame of a connection that was accepted, and the answer to ours. -EBADMSG or the like.
int conn_init_received(struct ras *ras, struct conn *conn, struct wire_reader *reader);
int conn_ack_received(struct ras *ras, struct conn *conn, struct wire_reader *reader);
