// SPDX-License-Identifier: BSD-3-Clause
// Relay: messages to any node, forwarded over the links by the nodes between.
//
// Guarantees for a sender:
// - A message is delivered at most once. Its outcome is reported if requested.
// - Ordered messages of one flow to one port are delivered in the order they were sent. A message
//   that was given up is skipped and does not come later. Unordered messages may arrive in any
//   order.
// - A message is for one start of one agent. No other agent receives it, not even the next start.
// - Nodes between keep no state for a message, and do not involve their own consumers.
// An expired message may have been delivered; only the acknowledgement is missing.
//
// Starts are distinguished by their number. An agent that lost its number learns that the number
// was used: at the join, or when it is refused or held for dead. It then takes the next one. One
// case is not detected: a run with the number and the facts (boot, pid, addresses) of a start that
// others still hold for alive. Such a run founded a ring of its own before the others noticed the
// end of the earlier run.
//
// The source of a message is not proven end to end: every holder of the key could name any source.
#pragma once

#include <ras/types.h>

struct ras;

// Message classes in order of service. Lower classes are never starved completely.
enum ras_relay_class {
	RAS_RELAY_CONTROL,
	RAS_RELAY_EVENT,
	RAS_RELAY_BULK,
	RAS_RELAY_CLASS_COUNT,
};

// Maximum size of one message, by class. The limits are small because a keep-alive may have to wait
// for one message. Longer data is a transfer (ras/transfer.h).
#define RAS_RELAY_CONTROL_BYTES_MAX 2048
#define RAS_RELAY_EVENT_BYTES_MAX 4096
#define RAS_RELAY_BULK_BYTES_MAX 8192

#define RAS_RELAY_PORT_MIN 16 // lower ports belong to the core
#define RAS_RELAY_LIFE_MAX_NS (60 * RAS_NS_PER_SEC)
#define RAS_RELAY_PENDING_MAX 256 // own messages in flight at once

// Reason why a message was refused or dropped.
enum ras_relay_reason {
	RAS_RELAY_REASON_NONE,
	RAS_RELAY_NO_ROUTE,	     // no link leads closer, and the detour is used up
	RAS_RELAY_STALE_VIEW,	     // as NO_ROUTE, and the tables of source and refuser differ
	RAS_RELAY_HOPS,		     // the hop limit was reached
	RAS_RELAY_QUEUE_FULL,	     // queue of a link, of the receiver, or of its consumer
	RAS_RELAY_DESTINATION_DOWN,  // the destination is known to be dead or to have left
	RAS_RELAY_WRONG_INCARNATION, // to or from another start than the current one
	RAS_RELAY_NO_CONSUMER,	     // the port had no consumer in time
	RAS_RELAY_EXPIRED,	     // the lifetime ended on the way
	RAS_RELAY_UNDECODABLE,	     // the consumer could not decode it, or its header is unknown
	RAS_RELAY_LATE,		     // older than its flow delivered, or than its window
	RAS_RELAY_DUPLICATE,	     // delivered before; acknowledged once more
	RAS_RELAY_NO_ANSWER,	     // neither acknowledged nor refused
	RAS_RELAY_REASON_COUNT,
};

#define RAS_RELAY_REPORT 0x01  // ops.report receives the outcome
#define RAS_RELAY_ORDERED 0x02 // first in, first out within its flow and port

struct ras_relay_message {
	uint64_t destination; // id; may be this agent
	enum ras_relay_class class;
	uint8_t flags;	     // RAS_RELAY_REPORT, RAS_RELAY_ORDERED
	uint32_t flow;	     // chosen by the sender; the receiver replies to it as port
	uint32_t port;	     // port of the destination, at least RAS_RELAY_PORT_MIN
	uint64_t life_ns;    // lifetime from now, at most RAS_RELAY_LIFE_MAX_NS; 0 for 10 s
	const void *payload; // copied
	size_t size;
};

// A message for a local port. Everything it points to is valid during ops.deliver only. That
// operation returns 0 if the consumer took the message, or -EBADMSG if it cannot be read. On
// -EAGAIN (consumer full) the sender tries again. On -ENOENT (no consumer) the message is kept for
// a while, see ras_relay_port_ready().
struct ras_relay_delivery {
	uint64_t source; // id
	uint64_t source_incarnation;
	enum ras_relay_class class;
	uint32_t flow;
	uint32_t port;
	uint32_t hops; // links travelled
	const void *payload;
	size_t size;
};

enum ras_relay_outcome {
	RAS_RELAY_OUTCOME_DELIVERED, // delivered to the consumer at the destination
	RAS_RELAY_OUTCOME_REFUSED,   // not delivered, and never will be
	RAS_RELAY_OUTCOME_EXPIRED,   // no answer before its lifetime or the destination ended
	RAS_RELAY_OUTCOME_COUNT,
};

struct ras_relay_report {
	uint64_t message_id;
	uint64_t destination;
	enum ras_relay_outcome outcome;
	enum ras_relay_reason reason; // NONE if delivered
	uint64_t refuser;	      // id; 0 if it was this agent, or no agent refused
	uint32_t hops;		      // until delivery or refusal
	uint32_t tries;		      // number of transmissions
	uint64_t round_trip_ns;	      // from first try to answer, or to the end of its lifetime
};

// Send a message, or keep it until a route exists; 0 means accepted, nothing more. *ret_message_id
// is never 0 and increases. A message to this agent itself is delivered by the next ras_tick(),
// which is requested. No report comes before this call returns.
//
// Returns 0, -EINVAL (class, flags, port or lifetime), -EMSGSIZE (longer than its class allows),
// -ENOENT (destination unknown), -EHOSTDOWN (dead or left), -EAGAIN (too many in flight, in total
// or to this destination), -ESHUTDOWN (this agent is leaving) or -ENOMEM.
int ras_relay_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_relay_message *message,
	uint64_t *ret_message_id
);

// Withdraw a message: no further try and no report. The message may have been delivered already.
// Returns 0, or -ENOENT if it is not in flight.
int ras_relay_cancel(struct ras *ras, uint64_t now_ns, uint64_t message_id);

// Report that the port has a consumer, or that its consumer has room. Waiting messages are
// delivered before this call returns.
void ras_relay_port_ready(struct ras *ras, uint64_t now_ns, uint32_t port);

// The latest message that ended for one reason, and the number of such messages: enough for one log
// line now and then.
struct ras_relay_incident {
	uint64_t count;
	uint64_t at_ns;
	enum ras_relay_class class;
	uint64_t source;
	uint64_t destination;
	uint64_t from; // neighbour that delivered it here, 0 if it was an own message
	uint64_t hop;  // peer of the link that failed or was full, 0 if there was none
};

#define RAS_RELAY_HOPS_BUCKETS 16 // one per hop count 0, 1, …; the last one holds all higher counts

struct ras_relay_counters {
	uint64_t ended[RAS_RELAY_REASON_COUNT][RAS_RELAY_CLASS_COUNT]; // at this node
	uint64_t accepted[RAS_RELAY_CLASS_COUNT];		       // own messages
	uint64_t forwarded[RAS_RELAY_CLASS_COUNT];
	uint64_t forwarded_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t delivered[RAS_RELAY_CLASS_COUNT]; // to a consumer of this node
	uint64_t delivered_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t outcomes[RAS_RELAY_OUTCOME_COUNT]; // of own messages
	uint64_t hops[RAS_RELAY_HOPS_BUCKETS];	    // of messages delivered here
	uint64_t retransmitted;
	uint64_t queued;    // waited for a link
	uint64_t detours;   // forwarded over a link that leads no closer
	uint64_t rerouted;  // moved from the queue of a lost link
	uint64_t early;	    // waited for a consumer
	uint64_t reordered; // waited for an earlier message of their flow
	uint64_t acks_sent, naks_sent;
	uint64_t replies_lost;	  // ACK or NAK without a route or room
	uint64_t replies_unknown; // answers to messages that are not in flight
};

struct ras_relay_stats {
	uint32_t queued[RAS_RELAY_CLASS_COUNT];
	uint32_t queued_bytes[RAS_RELAY_CLASS_COUNT];
	uint64_t oldest_ns[RAS_RELAY_CLASS_COUNT]; // age of the oldest waiting message
	uint32_t pending;			   // own messages in flight
	uint32_t held;				   // waiting for a consumer or an earlier message
	uint32_t sources;			   // senders remembered to detect duplicates
	uint32_t flows;
};

const struct ras_relay_counters *ras_relay_counters(const struct ras *ras);
// Return NULL if there is no such reason.
const struct ras_relay_incident *
ras_relay_incident(const struct ras *ras, enum ras_relay_reason reason);
void ras_relay_stats(const struct ras *ras, struct ras_relay_stats *ret_stats);

size_t ras_relay_size_max(enum ras_relay_class class);

// Return stable names for logs, JSON and tests.
const char *ras_relay_class_name(enum ras_relay_class class);
const char *ras_relay_reason_name(enum ras_relay_reason reason);
const char *ras_relay_outcome_name(enum ras_relay_outcome outcome);
