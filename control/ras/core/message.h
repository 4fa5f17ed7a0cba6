// SPDX-License-Identifier: BSD-3-Clause
// The messages between agents: one type byte, then the fields below, little-endian.
//
// A message is at most RAS_FRAME_MAX bytes. Every decoder checks each length and count before
// it is used, allocates nothing and leaves its output untouched on failure. A newer version may
// append fields to a message, or, in one that is a run, to each item: a decoder stops after those
// it knows. PULL alone cannot grow. docs/internals/membership.md lists what else may be new, and
// hostile_messages.md beside the tests what happens to a message that is well-formed but wrong.
#pragma once

#include "member/peers.h"

#include <lib/wire.h>
#include <ras/types.h>

#define MESSAGE_REDIRECTS_MAX 8

enum message_type {
	MESSAGE_INIT = 1,  // opens a session: who I am, what I speak, what I hold of you
	MESSAGE_INIT_ACK,  // accepts or refuses it
	MESSAGE_BEAT,	   // I live, this is my digest, this is what I use the link for
	MESSAGE_UPDATE,	   // news of peers
	MESSAGE_DIGESTS,   // my digest per range
	MESSAGE_BRIEF,	   // the peers of a range without their records
	MESSAGE_PULL,	   // send me the records of these
	MESSAGE_NOTICE,	   // a broadcast
	MESSAGE_COLLECT,   // a collective goes out
	MESSAGE_COLLECTED, // and comes back
	MESSAGE_COLLECT_CANCEL,
	MESSAGE_RELAY, // a message for somebody, over several links
	MESSAGE_TYPE_COUNT,
};

#define MESSAGE_INIT_JOIN 0x01	 // send me the table, and a start number if mine is 0
#define MESSAGE_INIT_MEMBER 0x02 // the sender is of a ring
#define MESSAGE_INIT_WHO 0x04	 // say who you are, and close

struct message_init {
	uint16_t version_min, version_max;
	uint64_t cluster;
	uint8_t flags;
	uint32_t uses;
	const void *record; // encoding; a view when decoded
	size_t record_size;
	uint64_t incarnation;
	uint64_t digest;
	uint8_t your_state; // what I hold of you; RAS_UNKNOWN also for what only newer ones know
	uint64_t your_incarnation;
	uint64_t sought; // the peer that is called, for a link; 0: whoever is there
};

#define MESSAGE_ACK_MEMBER 0x01	   // the sender is of a ring
#define MESSAGE_ACK_UNCOUNTED 0x02 // you count for no majority yet

struct message_init_ack {
	uint16_t version_min; // the oldest that the sender speaks
	uint16_t version;     // of the session; in a refusal the newest that the sender speaks
	uint8_t refusal;      // enum ras_cause or a number past it, NONE accepts
	uint32_t uses;
	const void *record;
	size_t record_size;
	uint64_t incarnation;
	uint64_t digest;
	uint8_t your_state; // what I held of you before your INIT
	uint64_t your_incarnation;
	uint64_t your_start; // for a joiner that does not know its own
	uint32_t redirect_count;
	struct sock_addr redirects[MESSAGE_REDIRECTS_MAX];
	uint8_t flags;
};

#define MESSAGE_BEAT_PING 0x01 // answer at once
#define MESSAGE_BEAT_WALL 0x02 // wall_ns is appended: older peers stop before it

struct message_beat {
	uint32_t sequence;
	uint32_t echo;		// the last sequence heard from you, 0 for none
	uint32_t echo_delay_us; // how long ago that was
	uint64_t digest;
	uint32_t uses;
	uint8_t period;	  // you hear from me again within so many beats
	uint8_t flags;	  // MESSAGE_BEAT_WALL is set by the encoder
	uint64_t wall_ns; // the sender's wall clock, 0 if it does not say
};

struct message_brief {
	uint64_t id;
	uint64_t incarnation;
	uint64_t record_digest;
	uint32_t maint;
	uint8_t state;	// alive, dead or left, or one of a newer version: past RAS_LEFT
	uint8_t weight; // of a death: how many saw it
};

int message_init_encode(const struct message_init *init, struct wire_writer *writer);
int message_init_decode(struct wire_reader *reader, struct message_init *ret_init);
int message_init_ack_encode(const struct message_init_ack *ack, struct wire_writer *writer);
int message_init_ack_decode(struct wire_reader *reader, struct message_init_ack *ret_ack);
void message_beat_encode(const struct message_beat *beat, struct wire_writer *writer);
int message_beat_decode(struct wire_reader *reader, struct message_beat *ret_beat);

// UPDATE is a run of news to the end of the message, each a u16 length and so many bytes. `room`
// for one more is asked first.
#define MESSAGE_ITEM_LENGTH_BYTES 2
size_t message_news_bytes(const struct peer_news *news);
void message_news_encode(const struct peer_news *news, struct wire_writer *writer);

struct message_news {
	struct peer_news news; // record is NULL; id and incarnation alone if the state is foreign
	const void *record;    // its encoding, a view, NULL if none came
	size_t record_size;
	const void *item; // the whole of it without its length, a view
	size_t item_size;
	bool foreign;	    // something in it is of a newer version: flags, cause, more bytes
	bool state_foreign; // even its state
};

// A state that only a newer version knows. Those of ours that never travel are malformed.
static inline bool message_state_is_foreign(uint8_t state) {
	return state > RAS_LEFT;
}

// 0, -EBADMSG and the like, or -ENODATA at the end.
int message_news_decode(struct wire_reader *reader, struct message_news *ret_news);

// >0 if the first of two items of one peer, as message_news has them, is the greater. Over how
// many links one came is no part of it.
int message_item_compare(const void *a, size_t a_size, const void *b, size_t b_size);

// BRIEF: u64 mask of the ranges that are listed whole in this run, u8 flags, u16 bytes of an entry,
// then entries of so many bytes each.
#define MESSAGE_BRIEF_FIRST 0x01
#define MESSAGE_BRIEF_LAST 0x02
#define MESSAGE_BRIEF_BYTES 30

struct message_brief_head {
	uint64_t mask;
	uint8_t flags;
	uint16_t entry_bytes;
};

// The flags of a run that is not sent yet may be changed, at this place in the message.
#define MESSAGE_BRIEF_FLAGS_AT 9
void message_brief_begin(uint64_t mask, uint8_t flags, struct wire_writer *writer);
void message_brief_encode(const struct message_brief *brief, struct wire_writer *writer);
int message_brief_head_decode(struct wire_reader *reader, struct message_brief_head *ret_head);
// 0, -EBADMSG and the like, or -ENODATA at the end.
int message_brief_decode(
	struct wire_reader *reader, uint16_t entry_bytes, struct message_brief *ret_brief
);

void message_sock_addr_encode(const struct sock_addr *address, struct wire_writer *writer);
void message_sock_addr_decode(struct wire_reader *reader, struct sock_addr *ret_address);

const char *message_type_name(uint8_t type);
