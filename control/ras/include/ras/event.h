// SPDX-License-Identifier: BSD-3-Clause
// What happened, with its cause and its observers: the story that operators read.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

enum ras_event_kind {
	RAS_EVENT_JOINED,	  // a peer seen for the first time, or a newer start of it
	RAS_EVENT_ALIVE,	  // unreachable or suspect no more without having been dead
	RAS_EVENT_SUSPECT,	  //
	RAS_EVENT_REFUTED,	  // a suspicion or death was disproved
	RAS_EVENT_UNREACHABLE,	  //
	RAS_EVENT_DEAD,		  //
	RAS_EVENT_LEFT,		  //
	RAS_EVENT_REJOINED,	  // back after having been declared dead
	RAS_EVENT_FORGOTTEN,	  // its tombstone was removed; value 1: it expired
	RAS_EVENT_CONFLICT,	  // two live holders of one name
	RAS_EVENT_MAINT,	  // maintenance switched; value 1 on, 0 off
	RAS_EVENT_LINK_UP,	  // established; value: ns from the first try
	RAS_EVENT_LINK_RECOVERED, // spoke again on a standing connection; value: ns of silence
	RAS_EVENT_LINK_DELAYED,	  // silent, floods go round it; value: ns of silence
	RAS_EVENT_LINK_DOWN,	  // lost; cause says how
	RAS_EVENT_LINK_FALLBACK,  // a fallback was chosen; value: 0 next, 1 prev
	RAS_EVENT_LINK_STUCK,	  // its queue did not move; value: ns
	RAS_EVENT_BRAKE_ON,	  // value: silent peers, estimated over the view
	RAS_EVENT_BRAKE_OFF,	  //
	RAS_EVENT_PAUSED,	  // we were stopped ourselves; value: ns
	RAS_EVENT_JOIN_WAITING,	  // alone, no join address answers; value: addresses tried
	RAS_EVENT_JOIN_DONE,	  // member of a ring; value: ns it took
	RAS_EVENT_JOIN_REFUSED,	  // cause says why, VERSION with value; the agent must not go on
	RAS_EVENT_JOIN_DROPPED,	  // what is at a remembered address refused us; value as above
	RAS_EVENT_DECLARED_DEAD,  // we were held for dead, or for another run; value: incarnation
	RAS_EVENT_DIVERGED,	  // tables with a peer stay different; a comparison was started
	RAS_EVENT_CLOCK_OFFSET,	  // a peer's wall clock is over 1 s from ours; value: ns
	RAS_EVENT_CLOCK_AGREES,	  // within 0.5 s again; value: ns
	RAS_EVENT_OTHER_VERSION,  // none in common with it; value: its, by ras_versions_pack()
	// Dead and back more than three times in ten minutes: value, or no more than that; told
	// once a minute. Cause: DEATH if it is dead now, else REFUTED.
	RAS_EVENT_FLAPPING,
	RAS_EVENT_ADDRESS_OTHER,   // at a peer's address another answers; value: its id
	RAS_EVENT_ADDRESS_CHANGED, // our own: a new start of ours tells another one
	// The caller's own, by ras_note().
	RAS_EVENT_REPORTED,	    // a person or job spoke against it
	RAS_EVENT_ADDRESS_UNPROVEN, // others do not reach the address that we tell
	RAS_EVENT_ADDRESS_PROVEN,   // and now they do
	RAS_EVENT_HOST_SHARED,	    // machines that were booted apart have one host identity
	RAS_EVENT_ADDRESS_SHARED,   // two machines have a peer's IP address, ours is one
	RAS_EVENT_VERDICT,	    // another one than before; value: which
	RAS_EVENT_RAILS_CHANGED,    // a node measures with other RDMA devices; value: how many
	RAS_EVENT_KIND_COUNT,
};

struct ras_event {
	uint64_t sequence; // from 1, without gaps; 0 of a quiet one
	uint64_t at_ns;
	enum ras_event_kind kind;
	enum ras_cause cause;
	uint64_t peer; // id, 0 if it is about nobody else
	char name[RAS_NAME_MAX + 1];
	uint64_t incarnation;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
	uint64_t value; // by kind
	// Where: of a CONFLICT the other holder is, of JOIN_DROPPED, ADDRESS_OTHER, ADDRESS_SHARED
	// and ADDRESS_CHANGED the address. NONE: not known.
	struct sock_addr other;
	uint32_t hops; // the news travelled this far to us; counted to 255
	bool quiet;    // of a peer that flaps: for tables, shown to nobody, not in the history
};

const char *ras_event_name(enum ras_event_kind kind);
