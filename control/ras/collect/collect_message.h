// SPDX-License-Identifier: BSD-3-Clause
// The messages of floods and collectives. message.h has the rules that all decoders keep.
//
//	NOTICE          u64 origin, u64 id, u32 kind, u16 hops, u16 size, payload
//	COLLECT         u64 origin, u64 id, u16 kind, u64 budget_ns, u16 hops,
//	                u16 count, count × 24 bytes: communicators to skip, rising; of a
//	                census u64 node, u64 what of it (enum collect_census_word), u64 of LATE
//	                the origin's view digest, else 0
//	COLLECTED       u64 origin, u64 id, u8 flags, items to the end:
//	                u8 type, u32 size, then by type
//	  ANSWER          u64 node, u64 incarnation, u64 view digest, u16 hops, u16 part,
//	                  u8 flags, payload to the item's end
//	  LOST            u64 peer, u8 why
//	  COUNT           u32 members reached over this leg, u32 those of them that count for
//	                  a majority, u8 a bit for each one asked about that
//	                  somebody there hears; of a census only
//	COLLECT_CANCEL  u64 origin, u64 id
//
// Items of unknown type are handed up unread: the root may know them.
#pragma once

#include <lib/wire.h>
#include <ras/collective.h>

#define COLLECTED_HEADER_BYTES 18 // type byte, origin, id, flags
#define COLLECTED_FLAGS_OFFSET 17
#define COLLECTED_FINAL 0x01 // nothing more comes over this leg

#define COLLECT_ITEM_HEADER_BYTES 5
#define COLLECT_ANSWER_HEADER_BYTES 29
#define COLLECT_ANSWER_LAST 0x01 // of the node's parts
#define COLLECT_LOST_BYTES 9
#define COLLECT_COUNT_BYTES 9
#define COLLECT_SKIP_BYTES 24
#define COLLECT_SUBJECTS_MAX 8 // of a census: who hears these?
#define COLLECT_CENSUS_MAX 128 // entries of its list, these among them
#define COLLECT_REQUEST_BYTES_MAX \
	(1 + 8 + 8 + 2 + 8 + 2 + 2 + COLLECT_SKIP_BYTES * RAS_COLLECT_SKIP_MAX)
#define COLLECT_CANCEL_BYTES 17

// Of the core's own beside enum ras_collect_kind: how many members are reached, and no more.
#define COLLECT_KIND_CENSUS 0x8000

enum collect_item_type {
	COLLECT_ITEM_ANSWER = 1,
	COLLECT_ITEM_LOST,
	COLLECT_ITEM_COUNT,
};

// Why a leg was given up; a newer one that we do not know reads as GONE.
enum collect_why {
	COLLECT_WHY_GONE,      // its link was lost or turned silent
	COLLECT_WHY_TIMED_OUT, // it did not answer in time
	COLLECT_WHY_REFUSED,   // it would not: too many run, or it does not know the kind
};

struct collect_request {
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint64_t budget_ns; // the answer is wanted within
	uint32_t hops;
	// Coded, a view; read by collect_skip_at(). Of a census: whom it asks about, and who is not
	// to count for the majority that the origin counts; see collect_census_entry().
	const uint8_t *skip;
	uint32_t skip_count;
};

struct collect_answer {
	uint64_t node;
	uint64_t incarnation;
	uint64_t view_digest;
	uint32_t hops;
	uint32_t part;
	bool last;
	const void *payload;
	size_t size;
};

struct collect_item {
	uint8_t type;
	struct collect_answer answer;
	uint32_t count, voters;
	uint8_t heard;
	uint64_t lost_peer;
	enum collect_why lost_why;
};

struct collect_notice {
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint32_t hops;
	const void *payload; // a view
	size_t size;
};

// The type byte is written by the encoders and has been read before the decoders.
void collect_request_encode(
	const struct collect_request *request,
	const struct ras_comm_id *skip,
	uint32_t skip_count,
	struct wire_writer *writer
);
// -EBADMSG, -EMSGSIZE. A skip list that does not rise is -EBADMSG.
int collect_request_decode(struct wire_reader *reader, struct collect_request *ret_request);
struct ras_comm_id collect_skip_at(const struct collect_request *request, uint32_t n);

// What an entry of a census says of a node.
enum collect_census_word {
	COLLECT_CENSUS_HEARS,	  // who hears it?
	COLLECT_CENSUS_UNCOUNTED, // it counts for no majority
	COLLECT_CENSUS_NOBODY,	  // it is no member where the count began, and is not to be counted
	COLLECT_CENSUS_LATE,	  // it counts only if it met all of the view that `pid_hash` tells
	COLLECT_CENSUS_UNKNOWN,	  // of a newer version
};

static inline struct ras_comm_id
collect_census_entry(uint64_t node, enum collect_census_word word) {
	return (struct ras_comm_id){.hash = node, .host_hash = word};
}

static inline struct ras_comm_id collect_census_late(uint64_t node, uint64_t view_digest) {
	return (struct ras_comm_id
	){.hash = node, .host_hash = COLLECT_CENSUS_LATE, .pid_hash = view_digest};
}

static inline enum collect_census_word collect_census_word(const struct ras_comm_id *entry) {
	return entry->host_hash < COLLECT_CENSUS_UNKNOWN
		       ? (enum collect_census_word)entry->host_hash
		       : COLLECT_CENSUS_UNKNOWN;
}

// The header of COLLECTED; items follow.
void collected_encode(uint64_t origin, uint64_t id, uint8_t flags, struct wire_writer *writer);
// Checks every item that follows, too, so that none is met half-way that cannot be read.
int collected_decode(
	struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id, uint8_t *ret_flags
);

void collect_answer_encode(const struct collect_answer *answer, struct wire_writer *writer);
void collect_lost_encode(uint64_t peer, enum collect_why why, struct wire_writer *writer);
void collect_count_encode(
	uint32_t count, uint32_t voters, uint8_t heard, struct wire_writer *writer
);
// 0, -EBADMSG, or -ENODATA at the end.
int collect_item_decode(struct wire_reader *reader, struct collect_item *ret_item);

void collect_cancel_encode(uint64_t origin, uint64_t id, struct wire_writer *writer);
int collect_cancel_decode(struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id);

void collect_notice_encode(const struct collect_notice *notice, struct wire_writer *writer);
int collect_notice_decode(struct wire_reader *reader, struct collect_notice *ret_notice);
