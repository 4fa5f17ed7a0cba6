// SPDX-License-Identifier: BSD-3-Clause
// What the files of the transfers share with each other and with nobody else.
//
//	transfer_message	the wire format
//	transfer_send		who sends: reading, segments on their way, going back
//	transfer_receive	who receives: order, credit, what a full consumer left
//	transfer_request	what users ask for
//	transfer		the list, control messages, ends, hooks and counters
//
// Messages and reports come in the middle of the relay's work: they change this state alone, but
// for a segment that is offered to its consumer. Whatever sends, takes back, tells or frees is done
// by the tick, which asks for itself at once.
#pragma once

#include "core/core.h"
#include "relay/transfer_message.h"

#define TRANSFER_LIFE_DEFAULT_NS (60 * RAS_NS_PER_SEC)
#define TRANSFER_MESSAGE_LIFE_NS (10 * RAS_NS_PER_SEC) // of one of the relay
#define TRANSFER_FLOWS 4	       // of the relay, and as many for what comes back
#define TRANSFER_SEGMENTS_MAX 8	       // of one transfer on their way
#define TRANSFER_ON_WAY_MAX 16	       // of all: the relay's buffers for our own of this class
#define TRANSFER_CREDIT_MAX (1u << 20) // a window that a receiver may ask for
// The relay had no room: soon again, as its other messages end within a round trip.
#define TRANSFER_WAIT_NS (50 * RAS_NS_PER_MS)

static_assert(
	TRANSFER_SEGMENTS_MAX * RAS_TRANSFER_SEGMENT_BYTES_MAX == RAS_TRANSFER_WINDOW_BYTES,
	"a window is what may be on its way"
);

struct transfer_sent {
	uint64_t message_id; // of the relay; 0: delivered
	uint32_t size;
};

struct transfer_out {
	bool granted;	// the receiver has answered the START
	bool read_all;	// the last segment is on its way or delivered
	bool starved;	// the source has no bytes: ras_transfer_ready()
	bool given_up;	// the relay gave a segment up: to go back
	bool whole;	// the last segment was sent at least once: `ahead` is the size
	uint32_t kept;	// delivered, with everything before
	uint32_t next;	// offset to be read
	uint32_t ahead; // the farthest that was ever sent
	uint32_t limit; // of credit
	uint32_t sent_count;
	struct transfer_sent sent[TRANSFER_SEGMENTS_MAX]; // from `kept` on
};

struct transfer_in {
	bool offered;	   // the consumer knows of it
	bool full;	   // its consumer is: ras_transfer_ready()
	bool ends;	   // the last segment came: `received` is the size
	uint32_t taken;	   // by the consumer
	uint32_t received; // in order; the bytes between the two are in the buffer
	uint32_t limit;	   // of credit that was sent
	uint8_t *buffer;   // RAS_TRANSFER_WINDOW_BYTES, NULL while nothing waits
	uint32_t buffer_from;
};

struct transfer {
	struct transfer *next;
	bool incoming;
	uint64_t id;	  // ours
	uint64_t wire_id; // the sender's; the same if that is us
	uint64_t peer;
	uint64_t incarnation; // of the peer
	uint32_t port;
	uint64_t tag;
	uint64_t size;
	uint64_t deadline_ns;
	uint64_t wait_ns; // nothing is sent before

	// One control message at a time: START or CANCEL; CREDIT or END.
	uint64_t control_id; // of the relay, 0 if none is on its way
	bool control_due;
	bool control_final; // the latest one tells of the end

	bool over;
	bool told;    // the user, or there is nobody to tell
	bool cleaned; // nothing of it is on its way or in a buffer
	bool owed;    // the other side has yet to be told
	bool by_peer;
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason;

	union {
		struct transfer_out out;
		struct transfer_in in;
	};
};

struct transfers {
	struct transfer *first; // who sends is moved behind the others
	uint32_t outgoing, incoming;
	uint32_t on_way; // segments
	uint64_t last_id;
	uint64_t due_ns; // nothing happens by time before
	struct ras_transfer_counters counters;
};

static inline uint64_t transfer_start(const struct transfer *transfer) {
	return ras_incarnation_start(transfer->incarnation);
}

// transfer.c

static inline void transfer_due(struct ras *ras, uint64_t at_ns) {
	if (at_ns < ras->transfers->due_ns)
		ras->transfers->due_ns = at_ns;
}

// Sends nothing before then.
void transfer_wait(struct ras *ras, struct transfer *transfer, uint64_t ns);
// -EAGAIN (as many as allowed), -ENOMEM; else a transfer in the list.
int transfer_make(struct ras *ras, bool incoming, uint64_t peer, struct transfer **ret_transfer);
// Ends it unless it has ended. `owed`: the other side does not know of it.
void transfer_over(
	struct ras *ras,
	struct transfer *transfer,
	enum ras_transfer_outcome outcome,
	enum ras_transfer_reason reason,
	bool owed
);
// The other side ended it.
void transfer_over_by_peer(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// Sends a message to the other side. As ras_relay_send(); -EAGAIN and -ENOMEM set a time to wait.
int transfer_post(
	struct ras *ras,
	struct transfer *transfer,
	const struct transfer_message *message,
	uint64_t *ret_message_id
);
// Whether what the relay said may be different later.
bool transfer_may_pass(enum ras_relay_reason reason);

// transfer_send.c

// Takes segments back from the relay, all of them.
void transfer_out_recall(struct ras *ras, struct transfer *transfer);
// Goes back to what was given up.
void transfer_out_resume(struct ras *ras, struct transfer *transfer);
bool transfer_out_can_send(const struct ras *ras, const struct transfer *transfer);
// Sends the next segment, or finds why not; it can send no more then.
void transfer_out_send(struct ras *ras, struct transfer *transfer);
void transfer_out_message(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// True if the report was of a segment of this transfer.
bool transfer_out_report(
	struct ras *ras, struct transfer *transfer, const struct ras_relay_report *report
);

// transfer_receive.c

// As ops.deliver.
int transfer_in_start(
	struct ras *ras,
	struct transfer *transfer, // NULL if there is none
	const struct ras_relay_delivery *delivery,
	const struct transfer_message *message
);
int transfer_in_data(
	struct ras *ras, struct transfer *transfer, const struct transfer_message *message
);
// Offers what waits, until the consumer is full.
void transfer_in_pump(struct ras *ras, struct transfer *transfer);
// How far the sender may go now.
uint32_t transfer_in_limit(const struct transfer *transfer);
void transfer_in_release(struct ras *ras, struct transfer *transfer);
