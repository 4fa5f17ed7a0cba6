// SPDX-License-Identifier: BSD-3-Clause
// Messages to any node, carried over the links by the nodes between.
//
// What a sender may rely on:
// - a message is delivered at most once, and its end is reported if asked for;
// - ordered messages of one flow to one port are delivered in the order they were sent; one
//   that was given up is left out, and does not come later. Unordered ones come in any order;
// - it is for one start of one agent: nobody else ever gets it, not even its next start;
// - it costs the nodes between neither state nor an answer of their consumers.
// An expired message may have been delivered: only its acknowledgement is missing.
//
// One start is told from the next by its number. Whoever forgot its own learns at the join, or when
// it is refused or held for dead, that the number was used, and takes the next one. Only a run with
// the same number and the same facts (boot, pid, addresses) as one that others still hold for alive
// passes for it: it founded a ring of its own before they had noticed the end of the other.
//
// Who sent a message is what the sender says and every holder of the key could say so: a source
// is not proven end to end.
#pragma once

#include <ras/types.h>

struct ras;

// Served in this order, the lower ones never left out altogether.
enum ras_relay_class {
	RAS_RELAY_CONTROL,
	RAS_RELAY_EVENT,
	RAS_RELAY_BULK,
	RAS_RELAY_CLASS_COUNT,
};

// Of one message, by class: small, since a keep-alive may have to wait for one. What is longer is
// a transfer (ras/transfer.h).
#define RAS_RELAY_CONTROL_BYTES_MAX 2048
#define RAS_RELAY_EVENT_BYTES_MAX 4096
#define RAS_RELAY_BULK_BYTES_MAX 8192

#define RAS_RELAY_PORT_MIN 16 // lower ones are the core's own
#define RAS_RELAY_LIFE_MAX_NS (60 * RAS_NS_PER_SEC)
#define RAS_RELAY_PENDING_MAX 256 // own messages on their way at once

// Why a message was refused or dropped.
enum ras_relay_reason {
	RAS_RELAY_REASON_NONE,
	RAS_RELAY_NO_ROUTE,	     // no link leads nearer, and the detour is spent
	RAS_RELAY_STALE_VIEW,	     // as NO_ROUTE, and the tables of source and refuser differ
	RAS_RELAY_HOPS,		     // the hop limit was reached
	RAS_RELAY_QUEUE_FULL,	     // of a link, of the receiver, or of its consumer
	RAS_RELAY_DESTINATION_DOWN,  // known to be dead or to have left
	RAS_RELAY_WRONG_INCARNATION, // it was for another start of the destination, or from one
	RAS_RELAY_NO_CONSUMER,	     // nobody took the port in time
	RAS_RELAY_EXPIRED,	     // its life ended on the way
	RAS_RELAY_UNDECODABLE, // its consumer could not read it, or no header like this exists
	RAS_RELAY_LATE,	       // behind what its flow has delivered, or its window
	RAS_RELAY_DUPLICATE,   // delivered before: acknowledged once more
	RAS_RELAY_NO_ANSWER,   // neither acknowledged nor refused
	RAS_RELAY_REASON_COUNT,
};

#define RAS_RELAY_REPORT 0x01  // ops.report tells how it ended
#define RAS_RELAY_ORDERED 0x02 // first in, first out among those of its flow and port

struct ras_relay_message {
	uint64_t destination; // id; may be our own
	enum ras_relay_class class;
	uint8_t flags;	     // RAS_RELAY_REPORT, RAS_RELAY_ORDERED
	uint32_t flow;	     // the sender's; shown to the receiver, who answers to it as port
	uint32_t port;	     // at the destination, RAS_RELAY_PORT_MIN or above
	uint64_t life_ns;    // from now, at most RAS_RELAY_LIFE_MAX_NS; 0 for 10 s
	const void *payload; // copied
	size_t size;
};

// A message for a local port; all it points to is valid during ops.deliver only, which returns
// 0 if it took it, -EAGAIN if the consumer is full (the sender tries again), -ENOENT if the port
// has no consumer (kept for a while: ras_relay_port_ready()), -EBADMSG if it cannot be read.
struct ras_relay_delivery {
	uint64_t source; // id
	uint64_t source_incarnation;
	enum ras_relay_class class;
	uint32_t flow;
	uint32_t port;
	uint32_t hops; // links it travelled over
	const void *payload;
	size_t size;
};

enum ras_relay_outcome {
	RAS_RELAY_OUTCOME_DELIVERED, // to the destination's consumer
	RAS_RELAY_OUTCOME_REFUSED,   // was not delivered, and will not be
	RAS_RELAY_OUTCOME_EXPIRED,   // out of life, or its destination down, before an answer came
	RAS_RELAY_OUTCOME_COUNT,
};

struct ras_relay_report {
	uint64_t message_id;
	uint64_t destination;
	enum ras_relay_outcome outcome;
	enum ras_relay_reason reason; // NONE if delivered
	uint64_t refuser;	      // who said so, 0 if nobody or we ourselves
	uint32_t hops;		      // it took to be delivered, or to be refused
	uint32_t tries;		      // how often it was sent
	uint64_t round_trip_ns;	      // from the first try to the answer, or to the end of its life
};

// Sends a message, or keeps it until a way opens; 0 means accepted, nothing more. *ret_message_id
// is never 0 and grows. A message to ourselves is delivered by the next ras_tick(), which is
// asked for. No report comes before this returns.
//
// -EINVAL (class, flags, port or life), -EMSGSIZE (longer than its class allows), -ENOENT
// (destination not known), -EHOSTDOWN (dead or left), -EAGAIN (as many as allowed are on their
// way, all in all or to this destination), -ESHUTDOWN (we are leaving), -ENOMEM.
int ras_relay_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_relay_message *message,
	uint64_t *ret_message_id
);

// Takes a message back: no further try, no report. It may have been delivered.
// -ENOENT if it is not on its way.
int ras_relay_cancel(struct ras *ras, uint64_t now_ns, uint64_t message_id);

// The port has a consumer now, or one with room: what waits for it is delivered before this
// returns.
void ras_relay_port_ready(struct ras *ras, uint64_t now_ns, uint32_t port);

// The latest message that ended for a reason, and how many there were: enough to log one line
// now and then.
struct ras_relay_incident {
	uint64_t count;
	uint64_t at_ns;
	enum ras_relay_class class;
	uint64_t source;
	uint64_t destination;
	uint64_t from; // the neighbour it came by, 0 if it was our own
	uint64_t hop;  // the link that failed or was full, 0 if there was none
};

#define RAS_RELAY_HOPS_BUCKETS 16 // 0, 1, … and in the last one all that are longer

struct ras_relay_counters {
	uint64_t ended[RAS_RELAY_REASON_COUNT][RAS_RELAY_CLASS_COUNT]; // here, for a reason
	uint64_t accepted[RAS_RELAY_CLASS_COUNT];		       // of our own
	uint64_t forwarded[RAS_RELAY_CLASS_COUNT];
	uint64_t forwarded_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t delivered[RAS_RELAY_CLASS_COUNT]; // to a consumer here
	uint64_t delivered_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t outcomes[RAS_RELAY_OUTCOME_COUNT]; // of our own
	uint64_t hops[RAS_RELAY_HOPS_BUCKETS];	    // of what was delivered here
	uint64_t retransmitted;
	uint64_t queued;    // had to wait for a link
	uint64_t detours;   // went on over a link that leads no nearer
	uint64_t rerouted;  // taken from the queue of a link that was lost
	uint64_t early;	    // waited for a consumer
	uint64_t reordered; // waited for an earlier one of their flow
	uint64_t acks_sent, naks_sent;
	uint64_t replies_lost;	  // ACK or NAK without a way or room
	uint64_t replies_unknown; // answers to what is not, or no more, on its way
};

struct ras_relay_stats {
	uint32_t queued[RAS_RELAY_CLASS_COUNT];
	uint32_t queued_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t oldest_ns[RAS_RELAY_CLASS_COUNT]; // age of the one that has waited longest
	uint32_t pending;			   // own, on their way
	uint32_t held;				   // for a consumer or an earlier message
	uint32_t sources;			   // remembered, so that nothing is delivered twice
	uint32_t flows;
};

const struct ras_relay_counters *ras_relay_counters(const struct ras *ras);
// NULL if there is no such reason.
const struct ras_relay_incident *
ras_relay_incident(const struct ras *ras, enum ras_relay_reason reason);
void ras_relay_stats(const struct ras *ras, struct ras_relay_stats *ret_stats);

size_t ras_relay_size_max(enum ras_relay_class class);

// Stable names for logs, JSON and tests.
const char *ras_relay_class_name(enum ras_relay_class class);
const char *ras_relay_reason_name(enum ras_relay_reason reason);
const char *ras_relay_outcome_name(enum ras_relay_outcome outcome);
