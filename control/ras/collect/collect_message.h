// SPDX-License-Identifier: BSD-3-Clause
// Messages of notices and collectives. message.h has the rules for all decoders.
//
//	NOTICE          u64 origin, u64 id, u32 kind, u16 hops, u16 size, payload, 64 bytes
//	                signature of the origin, see flood_signed_bytes()
//	COLLECT         u64 origin, u64 id, u16 kind, u64 budget_ns, u16 hops,
//	                u16 count, count × 24 bytes in ascending order. COMMS: communicators to
//	                skip. Census: u64 node, u64 enum collect_census_kind, u64 view digest of
//	                the origin if the kind is LATE_JOINER, else 0
//	COLLECTED       u64 origin, u64 id, u8 flags, items to the end:
//	                u8 type, u32 size, then by type
//	  ANSWER          u64 node, u64 incarnation, u64 view digest, u16 hops, u16 part,
//	                  u8 flags, payload to the item's end
//	  LOST            u64 peer, u8 enum collect_lost_reason
//	  COUNT           census only: u32 members reached over this leg, u32 of them with a
//	                  vote, u8 mask of the subjects that a member there hears
//	COLLECT_CANCEL  u64 origin, u64 id
//
// Items of unknown type are forwarded unread: the root may know them.
#pragma once

#include <lib/wire.h>
#include <ras/collective.h>

#define COLLECTED_HEADER_BYTES 18 // type byte, origin, id, flags
#define COLLECTED_FLAGS_OFFSET 17
#define COLLECTED_FINAL 0x01 // last frame of this leg

#define COLLECT_ITEM_HEADER_BYTES 5
#define COLLECT_ANSWER_HEADER_BYTES 29
#define COLLECT_ANSWER_LAST 0x01 // last part of the node's share
#define COLLECT_LOST_BYTES 9
#define COLLECT_COUNT_BYTES 9
#define COLLECT_SKIP_BYTES 24
#define COLLECT_SUBJECTS_MAX 8 // subjects of one census: peers that it asks about
#define COLLECT_CENSUS_MAX 128 // entries of one census, including the subjects
#define COLLECT_REQUEST_BYTES_MAX \
	(1 + 8 + 8 + 2 + 8 + 2 + 2 + COLLECT_SKIP_BYTES * RAS_COLLECT_SKIP_MAX)
#define COLLECT_CANCEL_BYTES 17

// Collective of the core itself, beside enum ras_collect_kind: counts the reachable members.
#define COLLECT_KIND_CENSUS 0x8000

enum collect_item_type {
	COLLECT_ITEM_ANSWER = 1,
	COLLECT_ITEM_LOST,
	COLLECT_ITEM_COUNT,
};

// Reason why a leg was given up. A reason of a newer version is decoded as GONE.
enum collect_lost_reason {
	COLLECT_LOST_LINK,    // the link of the leg was lost or turned silent
	COLLECT_LOST_TIMEOUT, // no answer within the budget
	COLLECT_LOST_REFUSED, // too many collectives run there, or their kind is unknown there
};

struct collect_request {
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint64_t budget_ns; // time in which the sender wants the answer
	uint32_t hops;
	// Encoded list, a view, read by collect_skip_at(). In a census: its subjects, and members
	// that have no vote at the origin, see collect_census_entry().
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
	enum collect_lost_reason lost_reason;
};

struct collect_notice {
	uint64_t origin;
	uint64_t id;
	uint32_t kind;
	uint32_t hops;
	const void *payload; // a view
	size_t size;
	const uint8_t *signature; // RAS_SIGNATURE_BYTES, a view
};

// Encoders write the type byte. Decoders are called after the type byte was read.
void collect_request_encode(
	const struct collect_request *request,
	const struct ras_comm_id *skip,
	uint32_t skip_count,
	struct wire_writer *writer
);
// Return 0, -EMSGSIZE or -EBADMSG. A skip list that is not in ascending order is -EBADMSG.
int collect_request_decode(struct wire_reader *reader, struct collect_request *ret_request);
struct ras_comm_id collect_skip_at(const struct collect_request *request, uint32_t n);

// Meaning of one census entry for its node.
enum collect_census_kind {
	COLLECT_CENSUS_SUBJECT,	    // subject: who hears this node?
	COLLECT_CENSUS_NO_VOTE,	    // member without a vote at the origin
	COLLECT_CENSUS_NO_MEMBER,   // no member at the origin: must not be counted at all
	COLLECT_CENSUS_LATE_JOINER, // late joiner: votes only if it has met the view in `pid_hash`
	COLLECT_CENSUS_UNKNOWN,	    // a kind of a newer version
};

static inline struct ras_comm_id
collect_census_entry(uint64_t node, enum collect_census_kind word) {
	return (struct ras_comm_id){.hash = node, .host_hash = word};
}

static inline struct ras_comm_id collect_census_late_entry(uint64_t node, uint64_t view_digest) {
	return (struct ras_comm_id
	){.hash = node, .host_hash = COLLECT_CENSUS_LATE_JOINER, .pid_hash = view_digest};
}

static inline enum collect_census_kind collect_census_kind(const struct ras_comm_id *entry) {
	return entry->host_hash < COLLECT_CENSUS_UNKNOWN
		       ? (enum collect_census_kind)entry->host_hash
		       : COLLECT_CENSUS_UNKNOWN;
}

// Encode the header of COLLECTED. Items follow.
void collected_encode(uint64_t origin, uint64_t id, uint8_t flags, struct wire_writer *writer);
// Decode the header and check all items, so that later readers meet no malformed item.
int collected_decode(
	struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id, uint8_t *ret_flags
);

void collect_answer_encode(const struct collect_answer *answer, struct wire_writer *writer);
void collect_lost_encode(uint64_t peer, enum collect_lost_reason why, struct wire_writer *writer);
void collect_count_encode(
	uint32_t count, uint32_t voters, uint8_t heard, struct wire_writer *writer
);
// Return 0, -EBADMSG, or -ENODATA at the end.
int collect_item_decode(struct wire_reader *reader, struct collect_item *ret_item);

void collect_cancel_encode(uint64_t origin, uint64_t id, struct wire_writer *writer);
int collect_cancel_decode(struct wire_reader *reader, uint64_t *ret_origin, uint64_t *ret_id);

void collect_notice_encode(const struct collect_notice *notice, struct wire_writer *writer);
int collect_notice_decode(struct wire_reader *reader, struct collect_notice *ret_notice);
