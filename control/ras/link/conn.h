// SPDX-License-Identifier: BSD-3-Clause
// Connections: from open or accept, through INIT and INIT_ACK, until they are ready or refused.
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
	CONN_JOIN_READY, // carries a table: to a joiner, or to this agent
};

struct conn {
	uint32_t handle; // index | generation << CONN_INDEX_BITS
	enum conn_stage stage;
	bool outgoing;
	bool join;     // to a seed or from a joiner; has no link
	bool serving;  // counted in join.serving
	bool outlived; // uses a lost own address; ends soon
	bool blocked;  // the transport accepts nothing until it is writable
	uint64_t who;  // id of the peer whose identity is queried, 0 for other connections
	uint16_t version;
	struct link *link;    // NULL for a join, an identity query, and before INIT
	uint64_t deadline_ns; // end of the stage, observed time; RAS_NEVER once ready
	uint64_t opened_ns;
	uint64_t ready_ns;
	uint32_t next_slot;    // next table slot to send to a joiner
	uint64_t foreign_told; // id of the last foreign item sent after the table (foreign.h)
	struct sock_addr address;
};

#define CONN_INDEX_BITS 12
#define CONNS_MAX (1u << CONN_INDEX_BITS)

struct conns {
	struct conn **table; // indexed by handle, NULL if free; entries stay valid during one input
	uint32_t count, capacity;
	uint32_t open;
	uint32_t freed;	      // ended, not reclaimed yet
	uint32_t generation;  // generation of the latest handle
	uint64_t deadline_ns; // earliest end of a stage
};

void conns_fini(struct ras *ras);
void conns_tick(struct ras *ras);
// Free the ended connections. Call it when no input is being handled any more.
void conns_reap(struct ras *ras);
// Close all connections that carry no link.
void conns_close_without_link(struct ras *ras);

// Return the connection of a handle, or NULL if it has ended.
struct conn *conn_find(const struct ras *ras, uint32_t handle);
// Connect for a link, or to join if `link` is NULL. Returns NULL without memory, or if conns_max
// are open.
struct conn *conn_open(struct ras *ras, const struct sock_addr *address, struct link *link);
// Connect to query the identity of the agent at the address of a record.
struct conn *conn_open_identity_query(struct ras *ras, const struct ras_record *record);
// Close a connection without a notification of its user.
void conn_close(struct ras *ras, struct conn *conn, enum ras_close how);
// Close a connection and notify its join, identity query or link of the cause.
void conn_abort(struct ras *ras, struct conn *conn, enum ras_close how, enum ras_cause cause);
// Enter a stage that may last `limit_ns`; RAS_NEVER for no limit.
void conn_stage(struct ras *ras, struct conn *conn, enum conn_stage stage, uint64_t limit_ns);
// Restart the time limit of the current stage.
void conn_set_deadline(struct ras *ras, struct conn *conn, uint64_t limit_ns);
// Send a frame. Returns 0, or -EAGAIN if the frame was not accepted; the connection is then
// blocked.
int conn_send(struct ras *ras, struct conn *conn, const void *frame, size_t size);
// Fill in the fields about this agent that every INIT_ACK has.
void conn_ack_fill(const struct ras *ras, struct message_init_ack *ret_ack);
// Send an INIT_ACK.
void conn_ack_send(struct ras *ras, struct conn *conn, const struct message_init_ack *ack);
// Return the versions that the sender of a refusal speaks.
struct ras_versions conn_ack_versions(const struct message_init_ack *ack);
// Emit OTHER_VERSION after a refusal for lack of a common version. The event is rate-limited.
void conn_report_version_mismatch(struct ras *ras, const struct message_init_ack *ack);
// Answer with a refusal and close softly.
void conn_refuse(struct ras *ras, struct conn *conn, struct message_init_ack *ack);
// Handle the first frame of an accepted connection, or the answer to our own INIT. Returns 0,
// -EBADMSG or a similar error.
int conn_init_received(struct ras *ras, struct conn *conn, struct wire_reader *reader);
int conn_ack_received(struct ras *ras, struct conn *conn, struct wire_reader *reader);
