// SPDX-License-Identifier: BSD-3-Clause
// Becoming a member, and making others members.
//
// A joiner asks several seeds at short intervals; the first that accepts sends its table, and
// the joiner then links itself into the ring, by which the others hear of it. A seed serves a
// few joins at once and points the rest to other members. If no seed is a member yet, the seed
// that comes first by address founds the ring; if no seed comes for half a minute, the first of
// those who meet, or, alone, who has no seed and only remembers others (remembered.h). Seeds that
// could not see each other then may have founded two: members look for every seed that is none of
// their ring (search.h) and take the table of the other; links and comparisons of tables do the
// rest. A member that calls one without a ring invites it.
//
// Two such rings may each have a holder of one name. No clock says which was earlier, so what
// decides is the order in which tables merge: the higher start stays, of equal starts the record
// with the higher digest, and every member ends up with that one without asking. A holder that
// is refused as the other one, or hears of one above it, calls at that one's address. If there
// lives another holder of its name that stands above it, it gives way (JOIN_REFUSED, and no
// farewell in a name that is no longer its own). Nobody gives way to hearsay, to a record at its
// own address, or to one who does not answer.
#pragma once

#include "member/rival.h"

#include <lib/sockaddr.h>
#include <ras/types.h>

struct conn;
struct message_init;
struct message_init_ack;
struct ras;
struct ras_record;
struct wire_reader;

// At once: one that does not answer holds its place for three seconds and delays nobody.
#define JOIN_ASKS_MAX 12
#define JOIN_ALONE_NS (30 * RAS_NS_PER_SEC) // without a member: those who met found a ring

struct join_seed {
	struct sock_addr address;
	uint32_t slot; // of the peer that came last with this address, see join_came(); or another
	uint64_t peer; // who answered there, by whatever address it calls itself; 0 if nobody did
};

struct join {
	struct join_seed *seeds;
	uint32_t seed_count;
	uint32_t seed_next;
	bool seeds_unknown;	 // there are some, whose addresses are looked up
	bool remembered_is_next; // seeds and remembered ones take turns
	struct sock_addr redirects[8];
	uint32_t redirect_count;
	struct conn *asks[JOIN_ASKS_MAX];
	struct conn *source; // whose table we are taking
	uint64_t started_ns;
	uint64_t ask_ns; // next one, RAS_NEVER while none is due
	uint32_t rounds; // through all seeds, without one that accepts
	struct rival rival;
	struct sock_addr refused_by; // as in struct ras_view
	// Of the round under way: who answered, and is no member either.
	bool met;	  // anybody
	bool lower;	  // one before us by address
	bool lower_seed;  // which is a seed, and may yet found the ring
	bool is_seed;	  // we are one
	uint64_t start;	  // given by the one whose table we take
	bool uncounted;	  // who gave it says that we count for no majority yet
	uint32_t serving; // joins of others
};

int join_init(struct ras *ras, const struct sock_addr *seeds, uint32_t count);
void join_fini(struct ras *ras);
void join_begin(struct ras *ras);
void join_tick(struct ras *ras);

// Of the joiner.
void join_ack(struct ras *ras, struct conn *conn, const struct message_init_ack *ack);
int join_frame(struct ras *ras, struct conn *conn, const void *frame, size_t size);
// Of the seed.
void join_serve(struct ras *ras, struct conn *conn, const struct message_init *init);
// The holder of the name it wants was looked at: CONFLICT if it lives, BUSY if nobody could
// look, NONE if it is gone and the name is free.
void join_claimed(struct ras *ras, struct conn *conn, uint32_t slot, enum ras_cause refusal);
void join_writable(struct ras *ras, struct conn *conn);
// A member called us, who are none: we join through it.
void join_invited(struct ras *ras, const struct sock_addr *address);
// Whether the address is one of ours.
bool join_is_self(const struct ras *ras, const struct sock_addr *address);
// Whether the address is one of the seeds.
bool join_is_configured(const struct ras *ras, const struct sock_addr *address);
// Calls there, unless that is under way, or as many calls as there may be.
void join_ask(struct ras *ras, const struct sock_addr *address);
// The peer is new in the table, or has another record: who looks for a seed then need not walk it.
void join_came(struct ras *ras, uint32_t slot);
void join_place_seeds(struct ras *ras);
// Calls at a seed, if it is none of our ring.
void join_look_for(struct ras *ras, uint32_t seed);
// Of both.
void join_ended(struct ras *ras, struct conn *conn, enum ras_cause cause);
