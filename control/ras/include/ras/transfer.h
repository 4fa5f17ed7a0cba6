// SPDX-License-Identifier: BSD-3-Clause
// Long answers: up to 16 MiB to any node, in segments, with credits, over the relay.
//
// What a user may rely on:
// - the consumer gets the bytes in order, each exactly once, whatever the relay retried, sent
//   another way, reordered or lost meanwhile: what it gave up is sent again from there;
// - no more than RAS_TRANSFER_WINDOW_BYTES are on their way to or wait at a consumer: the
//   receiver grants credit for what it has room for, and for nothing else;
// - each side is told once how it ended: who sends at its deadline at the latest, a consumer
//   10 s later, as the announcement may have been on its way for as long. Done means that the
//   consumer took everything; after any other outcome it may have, if its word of it was lost;
// - it is between one start of an agent and one start of another, as all of the relay;
// - segments are of the relay's lowest class and at most 8 KiB, and few are on their way at once,
//   so that no keep-alive and no other message waits behind a transfer. Transfers take turns.
//
// The bytes are kept by who sends them: they are asked for segment by segment, and again if
// some were lost. Nothing is kept here but what a full consumer has not taken.
#pragma once

#include <ras/types.h>

struct ras;

#define RAS_TRANSFER_BYTES_MAX (16u << 20)
#define RAS_TRANSFER_SIZE_UNKNOWN UINT64_MAX
#define RAS_TRANSFER_SEGMENT_BYTES_MAX 8160
#define RAS_TRANSFER_WINDOW_BYTES 65280u // 8 segments
#define RAS_TRANSFER_LIFE_MAX_NS (600 * RAS_NS_PER_SEC)
#define RAS_TRANSFERS_MAX 32	 // at once, of each direction
#define RAS_TRANSFERS_PEER_MAX 8 // of them to one peer, and from one peer

enum ras_transfer_outcome {
	RAS_TRANSFER_DONE,	// the consumer took all of it
	RAS_TRANSFER_REFUSED,	// by the consumer or its node; reason says why
	RAS_TRANSFER_CANCELLED, // by either side
	RAS_TRANSFER_EXPIRED,	// its life is over
	RAS_TRANSFER_DEAD,	// the peer died,
	RAS_TRANSFER_LEFT,	// left,
	RAS_TRANSFER_RESTARTED, // or is a newer start now
	RAS_TRANSFER_LEAVING,	// we leave
	RAS_TRANSFER_BROKEN,	// the other side sent what no agent sends
	RAS_TRANSFER_OUTCOME_COUNT,
};

enum ras_transfer_reason {
	RAS_TRANSFER_REASON_NONE,
	RAS_TRANSFER_NO_CONSUMER, // nobody takes this port there
	RAS_TRANSFER_UNREADABLE,  // the consumer, or its node, cannot read it
	RAS_TRANSFER_TOO_LONG,	  // for the consumer, or beyond RAS_TRANSFER_BYTES_MAX
	RAS_TRANSFER_DECLINED,	  // the consumer does not want it
	RAS_TRANSFER_NO_SOURCE,	  // who sends cannot give the bytes it announced
	RAS_TRANSFER_REASON_COUNT,
};

struct ras_transfer_request {
	uint64_t destination; // id; may be our own
	uint32_t port;	      // of the consumer there
	uint64_t tag;	      // the caller's, shown to the consumer: which question this answers
	uint64_t size;	      // or RAS_TRANSFER_SIZE_UNKNOWN
	uint64_t life_ns;     // from now to its end, at most RAS_TRANSFER_LIFE_MAX_NS; 0 for 60 s
};

// Asked of who sends, by ops.transfer_read: bytes from `offset` on. It sets `count`, and `last` if
// nothing follows them, which need not be said where the size is known. 0; -EAGAIN if there are
// none yet (ras_transfer_ready() when there are); any other error ends the transfer.
struct ras_transfer_read {
	uint64_t id;
	uint64_t tag;
	uint64_t offset;
	uint64_t kept; // nothing before this offset is asked for again
	void *bytes;
	size_t size; // at most so many are wanted, never 0
	size_t count;
	bool last;
};

// Offered to a consumer by ops.transfer_take; what it points to is valid during the call only,
// which returns 0 if it took all of it, -EAGAIN if it is full (ras_transfer_ready() when it
// has room), and ends the transfer else: -ENOENT (no such port), -EBADMSG (unreadable),
// -EMSGSIZE (too long), any other (declined).
struct ras_transfer_segment {
	uint64_t id; // ours, not the sender's
	uint64_t source;
	uint64_t source_incarnation;
	uint32_t port;
	uint64_t tag;
	uint64_t total; // or RAS_TRANSFER_SIZE_UNKNOWN
	uint64_t offset;
	const void *bytes;
	size_t size; // 0 only if it is the last
	bool last;
};

// Told by ops.transfer_ended, once, to who sends, and to a consumer that was offered something.
struct ras_transfer_end {
	uint64_t id;
	uint64_t peer;
	uint32_t port;
	uint64_t tag;
	bool incoming;
	bool by_peer; // the other side ended it
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason; // NONE unless refused or cancelled
	uint64_t bytes;			 // acknowledged by the other side, or taken by the consumer
};

// Sends what ops.transfer_read gives, from the next ras_tick() on, which is asked for. *ret_id is
// never 0 and of no other transfer of this instance in either direction. A destination that
// takes as many as it can is asked again until the life is over.
//
// -EINVAL (life, or ops.transfer_read is NULL), -EMSGSIZE (beyond RAS_TRANSFER_BYTES_MAX),
// -ENOENT (destination not known), -EHOSTDOWN (dead or left), -EAGAIN (as many as allowed, all
// in all or to this peer), -ESHUTDOWN (we are leaving), -ENOMEM.
int ras_transfer_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_transfer_request *request,
	uint64_t *ret_id
);

// Ends it, from either side; both are told, we by the next ras_tick(). -ENOENT if there is no such
// transfer or it has ended.
int ras_transfer_cancel(struct ras *ras, uint64_t now_ns, uint64_t id);

// After -EAGAIN: there are bytes to send, or the consumer has room. It is asked by the next
// ras_tick(). -ENOENT as above.
int ras_transfer_ready(struct ras *ras, uint64_t now_ns, uint64_t id);

struct ras_transfer_counters {
	uint64_t started, accepted; // outgoing, incoming
	uint64_t ended_out[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t ended_in[RAS_TRANSFER_OUTCOME_COUNT];
	uint64_t segments_sent, bytes_sent; // repetitions included
	uint64_t segments_taken, bytes_taken;
	uint64_t credits_sent;
	uint64_t kept;	  // segments that had to wait for a full consumer
	uint64_t resumed; // the relay gave something up, which is sent again
	uint64_t waited;  // the relay had no room
	uint64_t busy;	  // starts that found as many as allowed, or no memory

	// What was not believed.
	uint64_t malformed;  // refused as unreadable
	uint64_t unknown;    // of a transfer that is not, or no more
	uint64_t duplicates; // taken before
	uint64_t gaps;	     // ahead of what is missing
	uint64_t overruns;   // beyond the credit: the transfer was ended
	uint64_t lies;	     // sizes or ends that disagree: ended
	uint64_t credits_refused;
};

struct ras_transfer_stats {
	uint32_t outgoing, incoming; // with those whose end the other side has not confirmed yet
	uint32_t segments;	     // on their way from here
	uint32_t held_bytes;	     // of buffers for full consumers
};

const struct ras_transfer_counters *ras_transfer_counters(const struct ras *ras);
void ras_transfer_stats(const struct ras *ras, struct ras_transfer_stats *ret_stats);

// Stable names for logs, JSON and tests.
const char *ras_transfer_outcome_name(enum ras_transfer_outcome outcome);
