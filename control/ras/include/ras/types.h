// SPDX-License-Identifier: BSD-3-Clause
// Identities, states, causes and limits that the whole protocol core shares.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Largest version of a maintenance switch, far more than a person gives orders for one node. It is
// even: a member that claims it can end maintenance, but cannot keep a node in maintenance. A
// person forgets the node to begin again at 0.
#define RAS_MAINT_VERSION_MAX (1U << 24)

#define RAS_NAME_MAX 63	      // bytes of a node or host name, without the terminating zero
#define RAS_FRAME_MAX 65536   // bytes of one message, including its type byte
#define RAS_PEERS_MAX 100000  // table entries, including dead peers and peers that left
#define RAS_OBSERVERS_MAX 2   // observers named with a death
#define RAS_SEEDS_MAX 1024    // join addresses
#define RAS_REMEMBERED_MAX 32 // addresses of members of an earlier run

// Ed25519: the public key of an agent, and a signature by its secret key.
#define RAS_KEY_BYTES 32
#define RAS_SIGNATURE_BYTES 64

#define RAS_NS_PER_MS UINT64_C(1000000)
#define RAS_NS_PER_SEC UINT64_C(1000000000)
#define RAS_NEVER UINT64_MAX
#define RAS_OFFSET_UNKNOWN INT64_MIN // the offset between two wall clocks is unknown

// A slot is the dense index of a peer in the peer table. The index of a peer never changes while
// the peer is known. RAS_NO_SLOT stands for no peer.
#define RAS_NO_SLOT UINT32_MAX

// Incarnation: the start number of the agent (how often it was started), then the number of
// suspicions that this run refuted. No clock is involved, so a clock step can neither revive nor
// kill a peer.
#define RAS_REFUTATION_BITS 16
#define RAS_REFUTATIONS_MAX ((UINT64_C(1) << RAS_REFUTATION_BITS) - 1)
#define RAS_START_MAX (UINT64_MAX >> RAS_REFUTATION_BITS)

static inline uint64_t ras_incarnation(uint64_t start, uint64_t refutations) {
	return start << RAS_REFUTATION_BITS | refutations;
}

static inline uint64_t ras_incarnation_start(uint64_t incarnation) {
	return incarnation >> RAS_REFUTATION_BITS;
}

// Protocol versions: the oldest and the newest that an agent speaks.
struct ras_versions {
	uint16_t min, max;
};

// Pack both versions into the value of an event.
static inline uint64_t ras_versions_pack(struct ras_versions versions) {
	return (uint64_t)versions.min << 16 | versions.max;
}

static inline struct ras_versions ras_versions_unpack(uint64_t value) {
	return (struct ras_versions){.min = (uint16_t)(value >> 16), .max = (uint16_t)value};
}

// State of a peer as one agent sees it. Alive, dead and left are sent between agents and merged.
// Suspect and unreachable are local to one observer: no other agent takes them over.
enum ras_state {
	RAS_UNKNOWN,	 // on the roster, never seen
	RAS_ALIVE,	 //
	RAS_SUSPECT,	 // evidence against the peer is being confirmed
	RAS_UNREACHABLE, // silent, but the brake holds the death back
	RAS_DEAD,	 //
	RAS_LEFT,	 // announced its departure
};

// Reason why a peer is suspected or dead, or why a link went down. A newer version may send other
// numbers for a death or a refusal. Such a number is kept and forwarded; its name is "unknown".
enum ras_cause {
	RAS_CAUSE_NONE,
	RAS_CAUSE_SILENT,      // no message for the time set in the profile
	RAS_CAUSE_GONE,	       // the host answers, but the process does not exist
	RAS_CAUSE_RESET,       // the connection was reset, or ended without LEAVE
	RAS_CAUSE_REFUSED,     // a connect was refused
	RAS_CAUSE_UNREACHABLE, // no route to the peer
	RAS_CAUSE_TIMEOUT,     // connect or handshake exceeded its time limit
	RAS_CAUSE_STUCK,       // the send queue does not advance
	RAS_CAUSE_PROOF,       // the peer could not prove the cluster key
	RAS_CAUSE_VERSION,     // no protocol version in common
	RAS_CAUSE_CLUSTER,     // the peer belongs to another cluster
	RAS_CAUSE_CONFLICT,    // another live agent holds the name
	RAS_CAUSE_DUPLICATE,   // the other connection of the same pair was kept
	RAS_CAUSE_DEGREE,      // the other side has all the links it wants
	RAS_CAUSE_IDLE,	       // neither side needs the link any more
	RAS_CAUSE_LEAVE,       // the peer announced its departure
	RAS_CAUSE_DEATH,       // the peer was declared dead
	RAS_CAUSE_REPORT,      // a person, a job or the data plane reported the peer
	RAS_CAUSE_OWN_FAULT,   // local failure: descriptors, memory, or own address lost
	RAS_CAUSE_PROTOCOL,    // the peer sent a message that no agent sends
	RAS_CAUSE_RESTART,     // the peer came back as a new incarnation
	RAS_CAUSE_REFUTED,     // the peer or another observer proved that it lives
	RAS_CAUSE_BUSY,	       // the peer serves as many joins as it can
	// For a connect: refused by this machine itself, whose kernel has no listener at the
	// address. For a death: an agent on the same host saw such a refusal twice.
	RAS_CAUSE_EXITED,
	RAS_CAUSE_COUNT,
};

// Return true if the cause of a death is silence only, so nothing proves that the process ended.
// Such a peer may be cut off from the overlay while RDMA reads of its memory still succeed.
static inline bool ras_cause_is_silence(enum ras_cause cause) {
	return cause == RAS_CAUSE_SILENT || cause == RAS_CAUSE_UNREACHABLE ||
	       cause == RAS_CAUSE_TIMEOUT || cause == RAS_CAUSE_STUCK || cause == RAS_CAUSE_REPORT;
}

// Return true if the process is gone but its host still answers.
static inline bool ras_cause_is_gone(enum ras_cause cause) {
	return cause == RAS_CAUSE_GONE || cause == RAS_CAUSE_EXITED;
}

// Uses of a link. INIT and BEAT carry these bits, so each side knows whether the other still needs
// the link.
#define RAS_USE_NEXT 0x0001
#define RAS_USE_PREV 0x0002
#define RAS_USE_FALLBACK_NEXT 0x0004
#define RAS_USE_FALLBACK_PREV 0x0008
#define RAS_USE_CHECK 0x0010u		  // look for another observer, or search for a lost peer
#define RAS_USE_LEVEL(k) (0x0100u << (k)) // long ring of level k, opened by the side that uses it
#define RAS_USE_RING (RAS_USE_NEXT | RAS_USE_PREV | RAS_USE_FALLBACK_NEXT | RAS_USE_FALLBACK_PREV)
#define RAS_USE_LONG 0xffffff00u
#define RAS_LEVELS_MAX 20

// Return stable names for logs, JSON and tests.
const char *ras_state_name(enum ras_state state);
const char *ras_cause_name(enum ras_cause cause);
// Return the meaning of a cause, as a phrase about the node.
const char *ras_cause_text(enum ras_cause cause);
