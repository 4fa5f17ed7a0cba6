// SPDX-License-Identifier: BSD-3-Clause
// Transfers: up to 16 MiB to any node, sent over the relay in segments, with credits.
//
// Guarantees for a user:
// - The consumer receives the bytes in order, each exactly once, even if the relay retries,
//   reroutes, reorders or loses segments. Sending resumes where the relay gave up.
// - At most RAS_TRANSFER_WINDOW_BYTES are in flight to, or waiting at, a consumer. The receiver
//   grants credit only for what it has room for.
// - Each side learns the outcome once: the sender at its deadline at the latest, a consumer 10 s
//   later, since the announcement may have taken that long. DONE means that the consumer took
//   everything. After any other outcome it may have, if its confirmation was lost.
// - A transfer is between one start of an agent and one start of another, like a relay message.
// - Segments use the lowest class of the relay, at most 8 KiB each and few in flight. No keep-alive
//   or other message waits behind a transfer. Transfers take turns.
//
// The sender keeps the bytes: the core reads them segment by segment, and again if some were lost.
// The core stores only bytes that a full consumer has not taken.
#pragma once

#include <ras/types.h>

struct ras;

#define RAS_TRANSFER_BYTES_MAX (16u << 20)
#define RAS_TRANSFER_SIZE_UNKNOWN UINT64_MAX
#define RAS_TRANSFER_SEGMENT_BYTES_MAX 8160
#define RAS_TRANSFER_WINDOW_BYTES 65280u // 8 segments
#define RAS_TRANSFER_LIFE_MAX_NS (600 * RAS_NS_PER_SEC)
#define RAS_TRANSFERS_MAX 32	 // at once, in each direction
#define RAS_TRANSFERS_PEER_MAX 8 // the same to one peer, and from one peer

enum ras_transfer_outcome {
	RAS_TRANSFER_DONE,	// the consumer took everything
	RAS_TRANSFER_REFUSED,	// by the consumer or its node; the reason says why
	RAS_TRANSFER_CANCELLED, // by either side
	RAS_TRANSFER_EXPIRED,	// the lifetime has ended
	RAS_TRANSFER_DEAD,	// the peer died
	RAS_TRANSFER_LEFT,	// the peer left
	RAS_TRANSFER_RESTARTED, // the peer is a newer start now
	RAS_TRANSFER_LEAVING,	// this agent leaves
	RAS_TRANSFER_BROKEN,	// the other side sent what no agent sends
	RAS_TRANSFER_OUTCOME_COUNT,
};

enum ras_transfer_reason {
	RAS_TRANSFER_REASON_NONE,
	RAS_TRANSFER_NO_CONSUMER, // the port has no consumer at the destination
	RAS_TRANSFER_UNREADABLE,  // the consumer, or its node, cannot decode it
	RAS_TRANSFER_TOO_LONG,	  // too long for the consumer, or beyond RAS_TRANSFER_BYTES_MAX
	RAS_TRANSFER_DECLINED,	  // the consumer rejected it
	RAS_TRANSFER_NO_SOURCE,	  // the sender cannot supply the announced bytes
	RAS_TRANSFER_REASON_COUNT,
};

struct ras_transfer_request {
	uint64_t destination; // id; may be this agent
	uint32_t port;	      // port of the consumer
	uint64_t tag;	      // chosen by the caller, shown to the consumer: the question answered
	uint64_t size;	      // or RAS_TRANSFER_SIZE_UNKNOWN
	uint64_t life_ns;     // lifetime from now, at most RAS_TRANSFER_LIFE_MAX_NS; 0 for 60 s
};

// Request for bytes to send, starting at `offset`, passed to ops.transfer_read of the sender. The
// operation sets `count`, and `last` if no bytes follow; `last` is optional where the size is
// known. It returns 0, or -EAGAIN if there are no bytes yet (call ras_transfer_ready() later). Any
// other error ends the transfer.
struct ras_transfer_read {
	uint64_t id;
	uint64_t tag;
	uint64_t offset;
	uint64_t kept; // offset; earlier bytes are never requested again
	void *bytes;
	size_t size; // maximum number of bytes wanted, never 0
	size_t count;
	bool last;
};

// Segment for a consumer, passed to ops.transfer_take. Its bytes are valid during the call only.
// The operation returns 0 if the consumer took all of it, or -EAGAIN if the consumer is full (call
// ras_transfer_ready() later). Any other error ends the transfer: -ENOENT (no such port),
// -EBADMSG (unreadable), -EMSGSIZE (too long), else declined.
struct ras_transfer_segment {
	uint64_t id; // id at this agent, not at the sender
	uint64_t source;
	uint64_t source_incarnation;
	uint32_t port;
	uint64_t tag;
	uint64_t total; // size in bytes, or RAS_TRANSFER_SIZE_UNKNOWN
	uint64_t offset;
	const void *bytes;
	size_t size; // 0 only for the last segment
	bool last;
};

// Outcome of a transfer, passed once to ops.transfer_ended of the sender, and of a consumer that
// was offered a segment.
struct ras_transfer_end {
	uint64_t id;
	uint64_t peer;
	uint32_t port;
	uint64_t tag;
	bool incoming;
	bool by_peer; // ended by the other side
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason; // NONE unless refused or cancelled
	uint64_t bytes;			 // acknowledged by the other side, or taken by the consumer
};

// Start a transfer of the bytes that ops.transfer_read supplies. Sending begins with the next
// ras_tick(), which is requested. *ret_id is never 0 and differs from all other transfers of this
// instance. If the destination has no room for another transfer, it is asked again until the
// lifetime ends.
//
// Returns 0, -EINVAL (lifetime, or ops.transfer_read is NULL), -EMSGSIZE (beyond
// RAS_TRANSFER_BYTES_MAX), -ENOENT (destination unknown), -EHOSTDOWN (dead or left), -EAGAIN (too
// many, in total or to this peer), -ESHUTDOWN (this agent is leaving) or -ENOMEM.
int ras_transfer_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_transfer_request *request,
	uint64_t *ret_id
);

// Cancel a transfer, from either side. Both sides receive the outcome, this side by the next
// ras_tick(). Returns 0, or -ENOENT if the transfer is unknown or has ended.
int ras_transfer_cancel(struct ras *ras, uint64_t now_ns, uint64_t id);

// Resume after -EAGAIN: there are bytes to send, or the consumer has room. The operation is called
// again by the next ras_tick(). Returns 0, or -ENOENT as above.
int ras_transfer_ready(struct ras *ras, uint64_t now_ns, uint64_t id);

struct ras_transfer_counters {
	uint64_t started, accepted; // outgoing, incoming
	uint64_t ended_out[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t ended_in[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t segments_sent, bytes_sent; // including repetitions
	uint64_t segments_taken, bytes_taken;
	uint64_t credits_sent;
	uint64_t kept;	  // segments that waited for a full consumer
	uint64_t resumed; // restarts after the relay gave up a segment
	uint64_t waited;  // the relay had no room
	uint64_t busy;	  // starts postponed: too many transfers, no memory, or unknown sender

	// Rejected messages.
	uint64_t malformed;  // unreadable messages
	uint64_t unknown;    // messages for an unknown or ended transfer
	uint64_t duplicates; // segments or starts received before
	uint64_t gaps;	     // segments that begin after the next expected byte
	uint64_t overruns;   // segments beyond the credit: the transfer was ended
	uint64_t lies;	     // contradicting sizes or ends; a receiver then ends the transfer
	uint64_t credits_refused;
};

struct ras_transfer_stats {
	uint32_t outgoing, incoming; // including those whose end the other side has not confirmed
	uint32_t segments;	     // in flight from this agent
	uint32_t held_bytes;	     // buffered for full consumers
};

const struct ras_transfer_counters *ras_transfer_counters(const struct ras *ras);
void ras_transfer_stats(const struct ras *ras, struct ras_transfer_stats *ret_stats);

// Return stable names for logs, JSON and tests.
const char *ras_transfer_outcome_name(enum ras_transfer_outcome outcome);
