// SPDX-License-Identifier: BSD-3-Clause
// Messages between agents: one type byte, then the fields below, little-endian.
//
// A message is at most RAS_FRAME_MAX bytes. Every decoder checks each length and count before use,
// allocates nothing and leaves its output untouched on failure. A newer version may append fields
// to a message, or to each item of a sequence. A decoder stops after the fields it knows. Only PULL
// cannot grow. docs/internals/membership.md lists what else may be new. hostile_messages.md beside
// the tests describes what happens to a message that is well-formed but wrong.
#pragma once

#include "member/peers.h"

#include <lib/wire.h>
#include <ras/types.h>

#define MESSAGE_REDIRECTS_MAX 8

enum message_type {
	MESSAGE_INIT = 1,  // opens a session: identity, versions, view of the receiver
	MESSAGE_INIT_ACK,  // accepts or refuses the session
	MESSAGE_BEAT,	   // keep-alive with digest and uses of the link
	MESSAGE_UPDATE,	   // news of peers
	MESSAGE_DIGESTS,   // digest of each range
	MESSAGE_BRIEF,	   // peers of a range, without their records
	MESSAGE_PULL,	   // requests the records of some peers
	MESSAGE_NOTICE,	   // broadcast
	MESSAGE_COLLECT,   // request of a collective
	MESSAGE_COLLECTED, // answer of a collective
	MESSAGE_COLLECT_CANCEL,
	MESSAGE_RELAY, // message forwarded over several links
	MESSAGE_TYPE_COUNT,
};

#define MESSAGE_INIT_JOIN 0x01	   // requests the table, and a start number if the sender has none
#define MESSAGE_INIT_MEMBER 0x02   // the sender is a member of a ring
#define MESSAGE_INIT_IDENTIFY 0x04 // requests the identity only; the connection is closed then

struct message_init {
	uint16_t version_min, version_max;
	uint64_t cluster;
	uint8_t flags;
	uint32_t uses;
	const void *record; // encoded; points into the message when decoded
	size_t record_size;
	uint64_t incarnation;
	uint64_t digest;
	uint8_t your_state; // state of the receiver at the sender; RAS_UNKNOWN if foreign
	uint64_t your_incarnation;
	uint64_t sought; // id of the peer to link with; 0: any agent at the address
};

#define MESSAGE_ACK_MEMBER 0x01	 // the sender is a member of a ring
#define MESSAGE_ACK_NO_VOTE 0x02 // the receiver has no vote yet

struct message_init_ack {
	uint16_t version_min; // oldest that the sender speaks
	uint16_t version;     // of the session; in a refusal, the newest that the sender speaks
	uint8_t refusal;      // enum ras_cause or a higher number of a newer version; NONE accepts
	uint32_t uses;
	const void *record;
	size_t record_size;
	uint64_t incarnation;
	uint64_t digest;
	uint8_t your_state; // state of the receiver at the sender, before its INIT
	uint64_t your_incarnation;
	uint64_t your_start; // start number for a joiner that does not know its own
	uint32_t redirect_count;
	struct sock_addr redirects[MESSAGE_REDIRECTS_MAX];
	uint8_t flags;
};

#define MESSAGE_BEAT_PING 0x01 // requests an answer at once
#define MESSAGE_BEAT_WALL 0x02 // wall_ns is appended; older agents ignore it

struct message_beat {
	uint32_t sequence;
	uint32_t echo;		// latest sequence heard from the receiver, 0 for none
	uint32_t echo_delay_us; // time since that sequence was heard
	uint64_t digest;
	uint32_t uses;
	uint8_t period;	  // the next beat comes within this many beat intervals
	uint8_t flags;	  // the encoder sets MESSAGE_BEAT_WALL
	uint64_t wall_ns; // wall clock of the sender, 0 if unknown
};

struct message_brief {
	uint64_t id;
	uint64_t incarnation;
	uint64_t record_digest;
	uint32_t maint;
	uint8_t state;	// alive, dead or left, or a state of a newer version, above RAS_LEFT
	uint8_t weight; // number of witnesses of a death
};

int message_init_encode(const struct message_init *init, struct wire_writer *writer);
int message_init_decode(struct wire_reader *reader, struct message_init *ret_init);
int message_init_ack_encode(const struct message_init_ack *ack, struct wire_writer *writer);
int message_init_ack_decode(struct wire_reader *reader, struct message_init_ack *ret_ack);
void message_beat_encode(const struct message_beat *beat, struct wire_writer *writer);
int message_beat_decode(struct wire_reader *reader, struct message_beat *ret_beat);

// UPDATE: news to the end of the message, each with a u16 length before it. Check with
// message_news_bytes() that the next item fits.
#define MESSAGE_ITEM_LENGTH_BYTES 2
size_t message_news_bytes(const struct peer_news *news);
void message_news_encode(const struct peer_news *news, struct wire_writer *writer);

struct message_news {
	struct peer_news news; // record NULL; with a foreign state only id and incarnation. The
			       // signature points into the message.
	const void *record;    // its encoding, points into the message; NULL if none was sent
	size_t record_size;
	const void *item; // the whole item without its length, points into the message
	size_t item_size;
	bool foreign;	    // a part is of a newer version: flags, cause or more bytes
	bool state_foreign; // even the state is of a newer version
};

// Return true for a state that only a newer version knows. Known states that are never sent are
// malformed instead.
static inline bool message_state_is_foreign(uint8_t state) {
	return state > RAS_LEFT;
}

// Decode the next item. Returns 0, -EBADMSG or a similar error, or -ENODATA at the end.
int message_news_decode(struct wire_reader *reader, struct message_news *ret_news);

// Compare two items of one peer, as in struct message_news. Returns >0 if the first is greater. The
// hop count is not compared.
int message_item_compare(const void *a, size_t a_size, const void *b, size_t b_size);

// BRIEF: u64 mask of the ranges that this sequence lists completely, u8 flags, u16 bytes of an
// entry, then the entries.
#define MESSAGE_BRIEF_FIRST 0x01
#define MESSAGE_BRIEF_LAST 0x02
#define MESSAGE_BRIEF_BYTES 30

struct message_brief_head {
	uint64_t mask;
	uint8_t flags;
	uint16_t entry_bytes;
};

// Offset of the flags, which may be changed until the message is sent.
#define MESSAGE_BRIEF_FLAGS_AT 9
void message_brief_begin(uint64_t mask, uint8_t flags, struct wire_writer *writer);
void message_brief_encode(const struct message_brief *brief, struct wire_writer *writer);
int message_brief_head_decode(struct wire_reader *reader, struct message_brief_head *ret_head);
// Decode the next entry. Returns 0, -EBADMSG or a similar error, or -ENODATA at the end.
int message_brief_decode(
	struct wire_reader *reader, uint16_t entry_bytes, struct message_brief *ret_brief
);

void message_sock_addr_encode(const struct sock_addr *address, struct wire_writer *writer);
void message_sock_addr_decode(struct wire_reader *reader, struct sock_addr *ret_address);
