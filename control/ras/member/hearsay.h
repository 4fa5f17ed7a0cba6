// SPDX-License-Identifier: BSD-3-Clause
// Names learnt by hearsay: they wait outside the table until they are proven.
//
// A source is an IP address that frames come from. In a view of at least four members, a name that
// is new here is proven in one of three ways only:
//
//	1. Members at two sources report the same record.
//	2. This agent completes a handshake with it. The other end of the connection has the IP
//	   address of the record. One member from each source may have another address, if no
//	   member advertises the source.
//	3. This agent asks at the address of the record, and the agent there has this record.
//
// The agent pulls a waiting name from its other neighbours, so that the second report of a real
// name comes soon.
//
// A waiting name is not in the table of peers. So no count, ring, digest or table sent to others
// includes the name, and it is not forwarded. A member that invents names is one source, and nobody
// answers for these names. See the section "Hearsay" of docs/internals/membership.md.
#pragma once

#include "member/peers.h"

struct conn;
struct message_init_ack;
struct message_news;
struct ras;

#define HEARSAY_NAMES_MAX 4096	 // waiting names
#define HEARSAY_SOURCES_MAX 64	 // known sources; a new one replaces the one with the oldest minute
#define HEARSAY_VIEW_MIN 4	 // members; a smaller view believes each report
#define HEARSAY_REPORTS_MAX 4096 // names that begin to wait, for each source and minute
#define HEARSAY_HANDSHAKES_MAX 64 // names proven by handshakes, for each source and minute

struct hearsay_source {
	uint64_t source;   // hearsay_source_of(); 0: free
	uint64_t since_ns; // start of the current minute
	// Latest name proven from here whose record has another address; 0: none.
	uint64_t translated_id;
	uint32_t report_count, handshake_count; // in the current minute
};

struct hearsay {
	// The waiting names, as dead entries: no ring and no digest includes those. The only
	// observer of an entry is the first source that reported the name.
	struct peers names;
	struct hearsay_source sources[HEARSAY_SOURCES_MAX];
	uint64_t ask_ns;    // next question at the address of a name
	uint32_t next_slot; // slot of the name to ask next
	uint64_t pull_ns;   // next request of records from a neighbour
	uint32_t next_link; // index of the link to pull from next
};

int hearsay_init(struct ras *ras);
void hearsay_fini(struct ras *ras);
void hearsay_tick(struct ras *ras);

// Return the source of a connection: a digest of the IP address at its other end.
uint64_t hearsay_source_of(const struct conn *conn);

// Return true if the update makes a name a member here that was none before, or in an earlier start
// only. A name is also new if only a report of its end came before.
bool hearsay_name_is_new(const struct ras *ras, uint64_t id, uint8_t state, uint64_t incarnation);
// Return true if the source may report no further unknown names in this minute. Then its item can
// be skipped before its record is decoded. `source` is 0 for the table of a joiner.
bool hearsay_item_is_excess(struct ras *ras, const struct message_news *item, uint64_t source);
// Return true if the reported name has to wait, and store such a name.
bool hearsay_update_waits(struct ras *ras, const struct peer_news *news, uint64_t source);
// Do the same for the sender of a handshake message on this connection.
bool hearsay_handshake_waits(
	struct ras *ras, const struct conn *conn, const struct peer_news *news
);
// Process an answer to a question at the address of a waiting name.
void hearsay_answer_received(
	struct ras *ras, const struct conn *conn, const struct message_init_ack *ack
);
// Remove a name that is in the table now.
void hearsay_forget(struct ras *ras, uint64_t id);
