// SPDX-License-Identifier: BSD-3-Clause
// Joining a ring, founding a ring, and serving joiners.
//
// A joiner asks several seeds at short intervals. The first seed that accepts sends its table. The
// joiner then links itself into the ring, and the other members hear of it over these links. A
// member serves a few joins at once and redirects further joiners to other members.
//
// If no seed is a member yet, the seed with the lowest address founds the ring. If no seed founds
// one for JOIN_ALONE_NS, the joiner with the lowest address among those that met does. An agent
// without seeds that only remembers other addresses (remembered.h) founds a ring alone after that
// time. Seeds that could not reach each other may have founded two rings. So members look for each
// seed outside their ring (search.h) and take its table. Links and comparisons of tables then join
// the two rings. A member that calls an agent without a ring invites that agent.
//
// Two such rings may each have a holder of the same name. No clock tells which one was earlier, so
// the merge order decides: the higher start wins, of equal starts the higher record digest. All
// members come to the same result without asking. A holder that is refused because of another
// holder, or hears of one above itself, calls the address of that other holder. If a holder above
// it answers there, the caller gives way: it emits JOIN_REFUSED and sends no LEAVE, since the name
// is no longer its own. A mere report, a record with its own address, or an address that does not
// answer is no reason to give way.
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

// Join connections at once. An address that does not answer holds one for three seconds only.
#define JOIN_ASKS_MAX 12
#define JOIN_ALONE_NS (30 * RAS_NS_PER_SEC) // time to find a member before joiners found a ring

struct join_seed {
	struct sock_addr address;
	// Hint: slot of the peer that advertised this address last. It may be stale.
	uint32_t slot;
	// Id of the member that answered here, 0 for none. It may advertise another address.
	uint64_t peer;
};

struct join {
	struct join_seed *seeds;
	uint32_t seed_count;
	uint32_t seed_next;
	bool seeds_unknown;	 // seeds are configured, but their names are not resolved yet
	bool remembered_is_next; // seeds and remembered addresses take turns
	struct sock_addr redirects[8];
	uint32_t redirect_count;
	struct conn *asks[JOIN_ASKS_MAX];
	struct conn *source; // connection over which the table arrives, or NULL
	uint64_t started_ns; // observed time
	uint64_t ask_ns;     // observed time of the next ask, RAS_NEVER if none is due
	uint32_t rounds;     // completed rounds through all addresses in which nobody accepted
	struct rival rival;
	struct sock_addr refused_by; // as in struct ras_view
	// Agents that answered in the current round and have no ring either.
	bool met;	  // at least one such agent
	bool lower;	  // one of them has a lower address than we
	bool lower_seed;  // one with a lower address is a seed, and may yet found the ring
	bool is_seed;	  // our own address is a seed
	uint64_t start;	  // start number that the source of the table gave us
	bool uncounted;	  // the source of the table says that we have no vote yet
	bool is_believed; // our view was too small to demand proof of the names in this table
	uint32_t serving; // joins of other agents that we serve now
};

int join_init(struct ras *ras, const struct sock_addr *seeds, uint32_t count);
void join_fini(struct ras *ras);
void join_begin(struct ras *ras);
void join_tick(struct ras *ras);

// Joiner side: process the answer of a seed, and the frames of its table.
void join_ack_received(struct ras *ras, struct conn *conn, const struct message_init_ack *ack);
int join_frame_received(struct ras *ras, struct conn *conn, const void *frame, size_t size);
// Seed side: answer the INIT of a joiner.
void join_serve(struct ras *ras, struct conn *conn, const struct message_init *init);
// Answer a joiner whose name another agent holds, once that holder was checked. `refusal` is
// CONFLICT if the holder lives, BUSY if no observer could check, NONE if the name is free.
void join_name_claim_decided(
	struct ras *ras, struct conn *conn, uint32_t slot, enum ras_cause refusal
);
// Send more of the table to a joiner, as much as the connection takes.
void join_send_table(struct ras *ras, struct conn *conn);
// Join through a member that called us, if we are not a member.
void join_accept_invitation(struct ras *ras, const struct sock_addr *address);
// Return true if the address is our own.
bool join_is_own_address(const struct ras *ras, const struct sock_addr *address);
// Return true if the address is one of the seeds.
bool join_is_seed_address(const struct ras *ras, const struct sock_addr *address);
// Connect to the address to join, or to take another ring's table. Does nothing if a connection
// to it is open, or JOIN_ASKS_MAX are.
void join_connect(struct ras *ras, const struct sock_addr *address);
// Note the slot of a peer that is new or has a new record at the seed with its address. So the
// search for a seed need not walk the table.
void join_note_seed_slot(struct ras *ras, uint32_t slot);
void join_fill_seed_slots(struct ras *ras);
// Connect to a seed, unless it is known to belong to our ring.
void join_try_seed(struct ras *ras, uint32_t seed);
// Both sides: a join connection ended.
void join_conn_ended(struct ras *ras, struct conn *conn, enum ras_cause cause);
