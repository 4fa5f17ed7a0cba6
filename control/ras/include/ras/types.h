// SPDX-License-Identifier: BSD-3-Clause
// Words that the whole protocol core shares: identities, states, reasons and limits.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAS_NAME_MAX 63	      // bytes of a node or host name, without the terminator
#define RAS_FRAME_MAX 65536   // bytes of one message, its type byte included
#define RAS_PEERS_MAX 100000  // table entries, dead and left included
#define RAS_OBSERVERS_MAX 2   // named with a death
#define RAS_SEEDS_MAX 1024    // addresses to join through
#define RAS_REMEMBERED_MAX 32 // of members of an earlier run

#define RAS_NS_PER_MS UINT64_C(1000000)
#define RAS_NS_PER_SEC UINT64_C(1000000000)
#define RAS_NEVER UINT64_MAX
#define RAS_OFFSET_UNKNOWN INT64_MIN // between two wall clocks

// A peer's dense place in the table; never moves while the peer is known.
#define RAS_NO_SLOT UINT32_MAX

// Incarnation: how often the agent was started, then how often this run refuted a suspicion.
// No clock is involved, so a clock step cannot revive or kill anybody.
#define RAS_REFUTATION_BITS 16
#define RAS_REFUTATIONS_MAX ((UINT64_C(1) << RAS_REFUTATION_BITS) - 1)
#define RAS_START_MAX (UINT64_MAX >> RAS_REFUTATION_BITS)

static inline uint64_t ras_incarnation(uint64_t start, uint64_t refutations) {
	return start << RAS_REFUTATION_BITS | refutations;
}

static inline uint64_t ras_incarnation_start(uint64_t incarnation) {
	return incarnation >> RAS_REFUTATION_BITS;
}

// Of the protocol: the oldest and the newest that an agent speaks.
struct ras_versions {
	uint16_t min, max;
};

// As the value of an event.
static inline uint64_t ras_versions_pack(struct ras_versions versions) {
	return (uint64_t)versions.min << 16 | versions.max;
}

static inline struct ras_versions ras_versions_unpack(uint64_t value) {
	return (struct ras_versions){.min = (uint16_t)(value >> 16), .max = (uint16_t)value};
}

// What an agent thinks of a peer. Alive, dead and left travel between agents and are merged;
// suspect and unreachable are this observer's own and never leave it as facts.
enum ras_state {
	RAS_UNKNOWN,	 // on the roster, never seen
	RAS_ALIVE,	 //
	RAS_SUSPECT,	 // evidence against it is being confirmed
	RAS_UNREACHABLE, // silent, but so is too much else: the brake holds the verdict
	RAS_DEAD,	 //
	RAS_LEFT,	 // said goodbye
};

// Why a peer is suspected, dead, or a link went down. A newer version may know others, of a death
// or a refusal: the number is kept and passed on, its name is "unknown".
enum ras_cause {
	RAS_CAUSE_NONE,
	RAS_CAUSE_SILENT,      // nothing heard for the profile's time
	RAS_CAUSE_GONE,	       // its host answers, the process does not exist
	RAS_CAUSE_RESET,       // the connection was reset or ended without LEAVE
	RAS_CAUSE_REFUSED,     // a connect was refused
	RAS_CAUSE_UNREACHABLE, // no route to it
	RAS_CAUSE_TIMEOUT,     // connect or handshake did not end in time
	RAS_CAUSE_STUCK,       // what is queued for it does not move
	RAS_CAUSE_PROOF,       // it could not prove the key
	RAS_CAUSE_VERSION,     // no protocol version in common
	RAS_CAUSE_CLUSTER,     // it belongs to another cluster
	RAS_CAUSE_CONFLICT,    // another live agent holds the name
	RAS_CAUSE_DUPLICATE,   // the other connection of the pair was kept
	RAS_CAUSE_DEGREE,      // the other side has all the links it wants
	RAS_CAUSE_IDLE,	       // nobody needs the link any more
	RAS_CAUSE_LEAVE,       // announced
	RAS_CAUSE_DEATH,       // the peer was declared dead
	RAS_CAUSE_REPORT,      // a person, job or the data plane said so
	RAS_CAUSE_OWN_FAULT,   // our side could not (descriptors, memory, address gone)
	RAS_CAUSE_PROTOCOL,    // it sent what no agent sends
	RAS_CAUSE_RESTART,     // it came back as a new incarnation
	RAS_CAUSE_REFUTED,     // it or another observer proved it alive
	RAS_CAUSE_BUSY,	       // it serves as many joins as it can
	// Of a connect: refused by our own machine, at whose address nobody listens. Of a death: an
	// agent of the same host saw that, twice.
	RAS_CAUSE_EXITED,
	RAS_CAUSE_COUNT,
};

// Of a death: nothing says that the process ended. The peer may be cut off from the overlay alone,
// and its memory be read all the same.
static inline bool ras_cause_is_silence(enum ras_cause cause) {
	return cause == RAS_CAUSE_SILENT || cause == RAS_CAUSE_UNREACHABLE ||
	       cause == RAS_CAUSE_TIMEOUT || cause == RAS_CAUSE_STUCK || cause == RAS_CAUSE_REPORT;
}

// Its process is gone, and its host is not.
static inline bool ras_cause_is_gone(enum ras_cause cause) {
	return cause == RAS_CAUSE_GONE || cause == RAS_CAUSE_EXITED;
}

// What a link is used for; exchanged in INIT and BEAT so that either side knows when the
// other still wants it.
#define RAS_USE_NEXT 0x0001
#define RAS_USE_PREV 0x0002
#define RAS_USE_FALLBACK_NEXT 0x0004
#define RAS_USE_FALLBACK_PREV 0x0008
#define RAS_USE_CHECK 0x0010u		  // looked at on somebody's behalf, or rediscovered
#define RAS_USE_LEVEL(k) (0x0100u << (k)) // long ring of level k, opened by the user's side
#define RAS_USE_RING (RAS_USE_NEXT | RAS_USE_PREV | RAS_USE_FALLBACK_NEXT | RAS_USE_FALLBACK_PREV)
#define RAS_USE_LONG 0xffffff00u
#define RAS_LEVELS_MAX 20

// Stable names for logs, JSON and tests.
const char *ras_state_name(enum ras_state state);
const char *ras_cause_name(enum ras_cause cause);
