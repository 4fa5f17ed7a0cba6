// SPDX-License-Identifier: BSD-3-Clause
// Events: what happened, its cause and its observers. Operators read them as the history of a node.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

enum ras_event_kind {
	RAS_EVENT_JOINED,	  // a peer seen for the first time, or a newer start of a peer
	RAS_EVENT_ALIVE,	  // no longer unreachable or suspect, without having been dead
	RAS_EVENT_SUSPECT,	  // value: ns of silence
	RAS_EVENT_REFUTED,	  // a suspicion or death was disproved
	RAS_EVENT_UNREACHABLE,	  //
	RAS_EVENT_DEAD,		  //
	RAS_EVENT_LEFT,		  //
	RAS_EVENT_REJOINED,	  // back after having been declared dead
	RAS_EVENT_FORGOTTEN,	  // the tombstone was removed; value 1: it expired
	RAS_EVENT_CONFLICT,	  // two live holders of one name
	RAS_EVENT_MAINT,	  // maintenance switched; value: 1 on, 0 off
	RAS_EVENT_LINK_UP,	  // link established; value: ns without a connection
	RAS_EVENT_LINK_RECOVERED, // heard again on the same connection; value: ns of silence
	RAS_EVENT_LINK_DELAYED,	  // silent, floods bypass the link; value: ns of silence
	RAS_EVENT_LINK_DOWN,	  // link lost; the cause says how
	RAS_EVENT_LINK_FALLBACK,  // fallback link chosen; value: 0 next, 1 prev
	RAS_EVENT_LINK_STUCK,	  // send queue does not advance; value: ns
	RAS_EVENT_BRAKE_ON,	  // value: members that the latest census did not reach
	RAS_EVENT_BRAKE_OFF,	  //
	RAS_EVENT_PAUSED,	  // this agent itself was stopped; value: ns
	RAS_EVENT_JOIN_WAITING,	  // alone, no join address answers; value: addresses tried
	RAS_EVENT_JOIN_DONE,	  // member of a ring; value: ns since the join began
	RAS_EVENT_JOIN_REFUSED,	  // cause says why; VERSION has a value; the agent must stop
	RAS_EVENT_JOIN_DROPPED,	  // refused at a remembered address; value: as JOIN_REFUSED
	RAS_EVENT_DECLARED_DEAD,  // held for dead, or for an earlier run; value: new incarnation
	RAS_EVENT_DIVERGED,	  // tables with a peer stay different; a comparison was started
	RAS_EVENT_CLOCK_OFFSET,	  // wall clock of a peer over 1 s from ours; value: ns
	RAS_EVENT_CLOCK_AGREES,	  // wall clocks within 0.5 s again; value: ns
	RAS_EVENT_OTHER_VERSION,  // no common version; value: the peer's, by ras_versions_pack()
	// A peer was dead and came back more than three times in ten minutes. Repeated once a
	// minute; value: returns in the last ten minutes. A value of three or less ends the state.
	// Cause: DEATH if the peer is dead now, else REFUTED.
	RAS_EVENT_FLAPPING,
	RAS_EVENT_ADDRESS_OTHER,   // another agent answers at a peer's address; value: its id
	RAS_EVENT_ADDRESS_CHANGED, // this agent advertises another address with a new start
	RAS_EVENT_KEY_CHANGED,	   // a peer started with another key; value: old fingerprint
	RAS_EVENT_KEY_REFUSED,	   // another key claimed the name of a member; value: fingerprint
	// A neighbour sent a notice that its origin did not sign; value: id of the origin.
	RAS_EVENT_FORGED,
	// Added by the caller with ras_add_event().
	RAS_EVENT_REPORTED,	    // a person or job reported the peer as failed
	RAS_EVENT_ADDRESS_UNPROVEN, // peers do not reach the address that this agent advertises
	RAS_EVENT_ADDRESS_PROVEN,   // peers reach that address now
	RAS_EVENT_HOST_SHARED,	    // machines that were booted separately have one host identity
	RAS_EVENT_KEY_SHARED,	    // live members have one agent key; value: their number
	RAS_EVENT_ADDRESS_SHARED,   // this machine has the IP address of a peer
	RAS_EVENT_VERDICT,	    // the verdict on a node changed; value: the new one
	RAS_EVENT_RAILS_CHANGED,    // a node measures with other RDMA devices; value: their number
	RAS_EVENT_KIND_COUNT,
};

struct ras_event {
	uint64_t sequence; // from 1, consecutive; 0 for a quiet event
	uint64_t at_ns;
	enum ras_event_kind kind;
	enum ras_cause cause;
	uint64_t peer; // id, 0 if the event concerns no peer
	char name[RAS_NAME_MAX + 1];
	uint64_t incarnation;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	uint64_t value; // meaning depends on the kind
	// Address of the other holder (CONFLICT), or the address concerned (JOIN_DROPPED,
	// ADDRESS_OTHER, ADDRESS_SHARED, ADDRESS_CHANGED). NONE: unknown.
	struct sock_addr other;
	uint32_t hops; // hops that the news travelled to this agent; counted up to 255
	bool quiet;    // the peer flaps: the event is neither shown nor kept
};

const char *ras_event_name(enum ras_event_kind kind);
