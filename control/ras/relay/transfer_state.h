// SPDX-License-Identifier: BSD-3-Clause
// Private state of the transfers, shared by their files only.
//
//	transfer_message	the wire format
//	transfer_send		sending side: reading, segments in flight, going back
//	transfer_receive	receiving side: order, credit, buffer for a full consumer
//	transfer_request	requests of users
//	transfer		the list, control messages, ends, hooks and counters
//
// Messages and reports arrive while the relay is working. So they only change this state, and at
// most offer a segment to its consumer. Sending, cancelling, reporting and freeing is done by the
// tick, which is requested at once.
#pragma once

#include "core/core.h"
#include "relay/transfer_message.h"

#define TRANSFER_LIFE_DEFAULT_NS (60 * RAS_NS_PER_SEC)
#define TRANSFER_MESSAGE_LIFE_NS (10 * RAS_NS_PER_SEC) // life of one relay message
#define TRANSFER_FLOWS 4			       // relay flows for each direction
#define TRANSFER_SEGMENTS_MAX 8			       // segments of one transfer in flight
#define TRANSFER_IN_FLIGHT_MAX 16      // segments in flight: own BULK buffers of the relay
#define TRANSFER_CREDIT_MAX (1u << 20) // largest window that a receiver may grant
// Delay of a new attempt after the relay had no room. Its other messages end within a round trip.
#define TRANSFER_WAIT_NS (50 * RAS_NS_PER_MS)

static_assert(
	TRANSFER_SEGMENTS_MAX * RAS_TRANSFER_SEGMENT_BYTES_MAX == RAS_TRANSFER_WINDOW_BYTES,
	"a window is what may be on its way"
);

struct transfer_sent {
	uint64_t message_id; // relay message, 0 once delivered
	uint32_t size;
};

struct transfer_out {
	bool granted;	// the receiver has answered the START
	bool read_all;	// the last segment is in flight or delivered
	bool starved;	// the source has no bytes until ras_transfer_ready()
	bool given_up;	// the relay gave a segment up: the tick goes back to `kept`
	bool whole;	// the last segment was sent at least once, so `ahead` is the size
	uint32_t kept;	// all bytes before this offset were delivered
	uint32_t next;	// offset of the next read
	uint32_t ahead; // highest offset that was ever sent
	uint32_t limit; // offset up to which the receiver granted credit
	uint32_t sent_count;
	struct transfer_sent sent[TRANSFER_SEGMENTS_MAX]; // segments in flight, from `kept` on
};

struct transfer_in {
	bool offered;	   // the consumer was offered a segment
	bool full;	   // the consumer is full until ras_transfer_ready()
	bool ends;	   // the last segment has arrived, so `received` is the size
	uint32_t taken;	   // bytes taken by the consumer
	uint32_t received; // bytes received in order; those after `taken` are in the buffer
	uint32_t limit;	   // highest credit sent
	uint8_t *buffer;   // RAS_TRANSFER_WINDOW_BYTES, NULL if empty
	uint32_t buffer_from;
};

struct transfer {
	struct transfer *next;
	bool incoming;
	uint64_t id;	  // own id
	uint64_t wire_id; // id given by the sender; equal to `id` on the sending side
	uint64_t peer;
	uint64_t incarnation; // incarnation of the peer
	uint32_t port;
	uint64_t tag;
	uint64_t size;
	uint64_t deadline_ns;
	uint64_t wait_ns; // nothing is sent before this time

	// One control message is in flight at a time: START or CANCEL, CREDIT or END.
	uint64_t control_id; // relay message, 0 if none is in flight
	bool control_due;
	bool control_final; // the latest control message tells the end

	bool over;
	bool told;    // the user was told the end, or does not want to be
	bool cleaned; // no segment is in flight, no buffer is allocated
	bool owed;    // the other side has yet to be told the end
	bool by_peer; // the other side ended it
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason;

	union {
		struct transfer_out out;
		struct transfer_in in;
	};
};

struct transfers {
	struct transfer *first; // a transfer that sent a segment moves to the end
	uint32_t outgoing, incoming;
	uint32_t in_flight_count; // segments in flight
	uint64_t last_id;
	uint64_t due_ns; // next time for transfer_tick()
	struct ras_transfer_counters counters;
};

static inline uint64_t transfer_peer_start(const struct transfer *transfer) {
	return ras_incarnation_start(transfer->incarnation);
}

// transfer.c

static inline void transfer_wake_at(struct ras *ras, uint64_t at_ns) {
	if (at_ns < ras->transfers->due_ns)
		ras->transfers->due_ns = at_ns;
}

// Send nothing for this transfer during the next `ns`.
void transfer_defer(struct ras *ras, struct transfer *transfer, uint64_t ns);
// Create a transfer and append it to the list. Returns 0, -EAGAIN (limit reached) or -ENOMEM.
int transfer_append(struct ras *ras, bool incoming, uint64_t peer, struct transfer **ret_transfer);
// End a transfer, unless it has ended. `owed`: the other side has to be told.
void transfer_finish(
	struct ras *ras,
	struct transfer *transfer,
	enum ras_transfer_outcome outcome,
	enum ras_transfer_reason reason,
	bool owed
);
// End a transfer that the other side ended.
void transfer_finish_by_peer(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// Send a message to the other side. Returns as ras_relay_send(). After -EAGAIN or -ENOMEM the
// transfer waits; after any other error it has ended.
int transfer_send_message(
	struct ras *ras,
	struct transfer *transfer,
	const struct transfer_message *message,
	uint64_t *ret_message_id
);
// Return true if a retry may succeed after the relay has reported this reason.
bool transfer_reason_is_transient(enum ras_relay_reason reason);

// transfer_send.c

// Cancel all segments in flight.
void transfer_out_recall(struct ras *ras, struct transfer *transfer);
// Go back to the first undelivered byte, if the relay gave up a segment.
void transfer_out_resume(struct ras *ras, struct transfer *transfer);
bool transfer_out_can_send(const struct ras *ras, const struct transfer *transfer);
// Send the next segment. If that fails, transfer_out_can_send() is false afterwards.
void transfer_out_send(struct ras *ras, struct transfer *transfer);
void transfer_out_message_received(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// Process a report. Returns true if it was about a segment of this transfer.
bool transfer_out_report_received(
	struct ras *ras, struct transfer *transfer, const struct ras_relay_report *report
);

// transfer_receive.c

// Process a START or DATA message. Both return the same values as ops.deliver.
int transfer_in_start_received(
	struct ras *ras,
	struct transfer *transfer, // NULL if the transfer is unknown
	const struct ras_relay_delivery *delivery,
	const struct transfer_message *message
);
int transfer_in_data_received(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// Offer buffered bytes, until the consumer is full.
void transfer_in_offer_buffered(struct ras *ras, struct transfer *transfer);
// Return the offset up to which the sender may send now.
uint32_t transfer_in_limit(const struct transfer *transfer);
void transfer_in_release(struct ras *ras, struct transfer *transfer);
