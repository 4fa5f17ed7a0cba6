// SPDX-License-Identifier: BSD-3-Clause
// The RAS overlay of one node as a state machine.
//
// Inputs: the time, connections that opened, spoke or ended, local requests, evidence from
// elsewhere. Outputs, through struct ras_ops: connections to open and close, frames to send,
// the next wake-up, events. There is no socket, clock, thread or allocator inside: the agent
// wires it to epoll, the simulator wires thousands to a virtual network, and a run is
// repeated exactly by its inputs and its seed.
//
// Rules for the caller: one thread per instance; `now_ns` never goes back; what lies waiting
// on the connections is fed before ras_tick() is called, so that a node that was itself
// stopped hears its peers before it judges them; an operation called from inside the core
// never calls back into it.
#pragma once

#include <lib/sockaddr.h>
#include <ras/event.h>
#include <ras/memory.h>
#include <ras/profile.h>
#include <ras/record.h>
#include <ras/types.h>

struct ras;

enum ras_close {
	RAS_CLOSE_SOFT, // send what is queued, half-close, read to the end within a bound, close
	RAS_CLOSE_HARD, // now
};

struct ras_relay_delivery;
struct ras_relay_report;
struct ras_collective_result;
struct ras_contribution;
struct ras_transfer_read;
struct ras_transfer_segment;
struct ras_transfer_end;
struct wire_writer;

struct ras_ops {
	// Connects; answered by ras_conn_opened() or ras_conn_ended(), never from inside.
	void (*open)(void *ctx, uint32_t conn, const struct sock_addr *to);
	// Takes a copy of the frame. -EAGAIN: nothing was taken, ras_conn_writable() will follow.
	int (*send)(void *ctx, uint32_t conn, const void *frame, size_t size);
	// The core forgets the handle: no input may name it afterwards.
	void (*close)(void *ctx, uint32_t conn, enum ras_close how);
	// Replaces the wake-up asked for before; RAS_NEVER for none.
	void (*wake)(void *ctx, uint64_t at_ns);
	void (*event)(void *ctx, const struct ras_event *event);

	// Relay (ras/relay.h). A message for a local port: 0 takes it, -EAGAIN when its consumer
	// is full, -ENOENT when there is none.
	int (*deliver)(void *ctx, const struct ras_relay_delivery *delivery);
	// How a message that was sent with a wish to know ended.
	void (*report)(void *ctx, const struct ras_relay_report *report);

	// Collectives (ras/collective.h). Writes a part of this node's share into the writer, at
	// most RAS_COLLECT_PART_BYTES_MAX; true if there is another part to be asked for.
	bool (*contribute
	)(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer);
	void (*collected)(void *ctx, const struct ras_collective_result *result);
	// A notice of another node's, once. The payload is gone after the call.
	void (*notice)(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size);

	// Transfers (ras/transfer.h); each may be NULL. Bytes to send, from an offset on.
	int (*transfer_read)(void *ctx, struct ras_transfer_read *read);
	// A segment for a consumer here: 0 takes it, -EAGAIN when it is full; NULL: none here.
	int (*transfer_take)(void *ctx, const struct ras_transfer_segment *segment);
	void (*transfer_ended)(void *ctx, const struct ras_transfer_end *end);

	// How ras_who() ended; NULL: nobody asks. NONE: the peer itself answered, and proved the
	// key. CONFLICT: another one did, `found`. Anything else: how there was no answer.
	void (*who)(void *ctx, uint32_t conn, enum ras_cause cause, uint64_t found);
};

// What this build speaks: two adjacent builds have one in common.
extern const struct ras_versions ras_versions_built;

struct ras_config {
	const struct ras_profile *profile;
	const char *cluster;	       // name; agents of another one are refused
	struct ras_peer_info self;     // start 0: not known, learnt at join
	const struct sock_addr *seeds; // join through any of these; copied
	uint32_t seed_count;	       // 0: a ring of one
	uint64_t random_seed;	       // for jitter; no other randomness exists
	uint32_t history_events;       // kept to be asked for
	uint32_t conns_max;	       // open at once, either direction
	uint16_t version_min;	       // of the protocol; 0: what this build speaks
	uint16_t version_max;
};

// Copies the configuration; interner, memory and ops must outlive the instance.
// -EINVAL (name, host or address missing), -ENOMEM.
int ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
);
struct ras *ras_destroy(struct ras *ras);

// These peers are known from the start, as after a join, and no join is done. For simulations
// that begin with a standing ring, and for a table kept over a restart. Before ras_start().
int ras_preload(struct ras *ras, struct ras_record *const *records, uint32_t count);

// The same for many instances of one interner: the table is made once and copied. It may be
// destroyed as soon as the last copy is made. -ENOMEM.
struct ras_table;
int ras_table_create(
	const struct ras_memory *memory,
	struct ras_interner *interner,
	struct ras_record *const *records,
	uint32_t count,
	struct ras_table **ret_table
);
struct ras_table *ras_table_destroy(struct ras_table *table);
// -ENOENT if our own record is none of the table's, -ENOMEM.
int ras_preload_table(struct ras *ras, const struct ras_table *table);

// For whoever runs thousands of instances, which no cache holds: brings near what the next frame
// of a connection, or the next tick, will touch. A step follows pointers that the step before it
// brought, so some time should pass between them. Nothing changes.
#define RAS_FETCH_STEPS 4
void ras_fetch_frame(const struct ras *ras, uint32_t handle, uint32_t step);
void ras_fetch_tick(const struct ras *ras, uint32_t step);

// Joins through these addresses from now on, instead of those of before: a list that was read
// anew, a name that resolves to another address. Any time. -EINVAL (more than RAS_SEEDS_MAX) or
// -ENOMEM, and those of before stay.
int ras_seeds(struct ras *ras, const struct sock_addr *seeds, uint32_t count);

// There are seeds, but their addresses are not known yet: until ras_seeds() tells them, who knows
// nobody else does not take itself for one without seeds.
void ras_seeds_unknown(struct ras *ras);
// Members of an earlier run, at most RAS_REMEMBERED_MAX: asked beside the seeds, but nobody's
// refusal there ends a start (JOIN_DROPPED, not JOIN_REFUSED). Who has no seeds founds a ring at
// once only if it remembers nobody. Any time; they replace those of before. -EINVAL or -ENOMEM.
int ras_remembered(struct ras *ras, const struct sock_addr *addresses, uint32_t count);
// One of them is remembered no more.
void ras_remembered_drop(struct ras *ras, const struct sock_addr *address);
// Those of them that were neither dropped nor found in the table.
uint32_t ras_remembered_count(const struct ras *ras);

// Begins to join. To be called once, before any other input.
void ras_start(struct ras *ras, uint64_t now_ns);
// Announces that we leave; links close softly. ras_gone() turns true when nothing is open.
void ras_leave(struct ras *ras, uint64_t now_ns);
bool ras_gone(const struct ras *ras);

// Connections. Handles of accepted ones are made here, of opened ones by the core.
// -EMFILE if there are as many as allowed: the caller closes it.
int ras_conn_accepted(
	struct ras *ras, uint64_t now_ns, const struct sock_addr *from, uint32_t *ret_conn
);
// Connected, and the key proven where there is one.
void ras_conn_opened(struct ras *ras, uint64_t now_ns, uint32_t conn);
void ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
void ras_conn_writable(struct ras *ras, uint64_t now_ns, uint32_t conn);
// Failed to open or came to an end, everything it carried having been fed before. EXITED instead of
// REFUSED only if the address is one of this machine's own, and its kernel knows of nobody who
// listens there: then no firewall, on the way or here, made that up.
void ras_conn_ended(struct ras *ras, uint64_t now_ns, uint32_t conn, enum ras_cause cause);

// We are to be spoken with at another address from now on: a new start of ours tells it, and all
// connections end, for they are from the old one. With the address that we tell already only they
// end. 0; -EAGAIN (leaving), -ENOMEM, -EINVAL, -ENOSPC, and nothing has changed.
int ras_readdress(struct ras *ras, uint64_t now_ns, const struct sock_addr *address);
// The machine has our address again, which it had lost: whom we missed meanwhile we could not hear.
void ras_address_back(struct ras *ras, uint64_t now_ns);

// Asks the agent at the address that a peer tells who it is; ops.who is told, once, unless we leave
// first. No link comes of it. -ENOENT, -EAGAIN (leaving), -EMFILE.
int ras_who(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t *ret_conn);

// Where another one answered than the peer that tells this address: a mistake in the configuration
// of one of them. Kept until the peer answers there itself, tells another address, starts anew, is
// no member any more, or for ten minutes.
struct ras_stranger {
	uint64_t peer, found; // ids; who was found may be unknown here
	struct sock_addr address;
	uint64_t start;	  // of the peer, when another one was found there
	uint64_t seen_ns; // private
};

// The n-th; -ESTALE: it holds no more; -ENOENT past the last.
int ras_stranger_at(const struct ras *ras, uint32_t n, struct ras_stranger *ret_stranger);
// Whether another one answers at the address that this peer tells, or told before it died or left:
// what the host there does says nothing of the peer.
bool ras_is_stranger_at(const struct ras *ras, uint64_t peer);

// What an errno of connect, send or receive means here: evidence, retry or our own fault.
enum ras_cause ras_cause_of_errno(int error);

void ras_tick(struct ras *ras, uint64_t now_ns);

// What the wall clock shows, in ns since 1970, at this time; 0: it is not known any more. To be
// told every minute or so, and at once when it was set: beats carry it, and a peer whose
// clock is more than a second away is an event. Nothing in the core is timed by it.
void ras_wall_clock(struct ras *ras, uint64_t now_ns, uint64_t wall_ns);

// Evidence from elsewhere: the data plane, local checks, people and jobs.
enum ras_evidence_source {
	RAS_SOURCE_DATA_PLANE, // part of our own observation
	RAS_SOURCE_CHECK,
	RAS_SOURCE_REPORT, // raises suspicion, is never an observer
};

struct ras_evidence {
	enum ras_evidence_source source;
	uint64_t observer; // id of the agent that saw it
	uint64_t subject;
	bool alive;	 // a proof of life, else of its absence
	uint64_t age_ns; // since it was seen
};

// -ENOENT if the subject is not known, -ESTALE if the evidence is older than what we hold: the last
// word of the subject, or, of a life, the doubt about it.
int ras_evidence(struct ras *ras, uint64_t now_ns, const struct ras_evidence *evidence);

// Puts an event that is no matter of the protocol among the others: its kind (one of the caller's
// own), cause, peer, observers and value; the core adds the rest. -ENOENT: the peer is not known.
int ras_note(struct ras *ras, uint64_t now_ns, const struct ras_event *note);

// Maintenance and forgetting are known to everybody; -ENOENT, for forget also -EBUSY if the
// peer is neither dead, left nor unreachable here. An unreachable one, which the brake holds, is
// forgotten by all who do not reach it either; if it lives after all it comes back by itself.
int ras_maint(struct ras *ras, uint64_t now_ns, uint64_t peer, bool on);
int ras_forget(struct ras *ras, uint64_t now_ns, uint64_t peer);
// The same of all whom anybody in reach holds unreachable; returns how many that were here. Those
// whom only others hold so follow within some seconds.
uint32_t ras_forget_unreachable(struct ras *ras, uint64_t now_ns);

// The view. Agents that applied the same changes show the same digest.
struct ras_view {
	uint64_t number; // grows with each change
	uint64_t digest;
	uint32_t alive; // we included; suspect and unreachable count as alive
	uint32_t suspect;
	uint32_t unreachable;
	uint32_t dead;
	uint32_t left;
	uint32_t slots_max; // all slots in use are below
	bool joined;
	bool brake;
	// No more than half of the members that have a vote can be reached (who was declared dead
	// and came back has none for a while): no time lets the brake go. It ends when
	// they are back, or when a person says ras_forget_unreachable().
	bool waits;
	uint32_t reached, reached_of; // by the latest count, while it waits
	uint32_t silent;	      // whom the latest count did not reach, while the brake is on
	// After JOIN_REFUSED: where the other holder of the name lives, or who refused for another
	// reason. No family while nobody has.
	struct sock_addr refused_by;
	struct ras_versions versions; // that we speak
};

void ras_view(const struct ras *ras, struct ras_view *ret_view);

struct ras_peer {
	const struct ras_record *record; // valid until the next input
	uint32_t slot;
	uint64_t incarnation;
	enum ras_state state;
	enum ras_cause cause; // of suspect, dead, left
	bool sole;	      // declared by its only possible observer
	bool maint;
	uint64_t since_ns;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
};

uint64_t ras_self_id(const struct ras *ras);
uint64_t ras_self_incarnation(const struct ras *ras);
// -ENOENT if the slot is empty or the id not known.
int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer);
int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer);

struct ras_link_info {
	uint64_t peer;
	bool ready;
	bool delayed;
	bool outgoing;
	uint16_t version; // of the protocol, 0 while it is not ready
	uint32_t mine;	  // RAS_USE_* bits, what we use it for
	uint32_t theirs;  // and the other side
	uint64_t silent_ns;
	uint64_t quiet_ns;   // the same, less what it promised to be silent for beyond a beat
	uint64_t rtt_min_ns; // of beats, RAS_NEVER if none came back
	uint64_t rtt_mean_ns;
	uint64_t rtt_max_ns;
	// The peer's wall clock less ours, to half a round trip: the median of the last few told,
	// RAS_OFFSET_UNKNOWN if it or we tell none. No decision of the core rests on it.
	int64_t wall_offset_ns;
	uint64_t sent_bytes, sent_frames, received_bytes, received_frames;
	uint64_t age_ns; // in which they were
	uint32_t reconnects;
	uint32_t queued_bytes;
};

// The n-th link, in no order; -ENOENT past the last.
int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info);
// Sends a beat on the link of that peer, out of turn, which asks for one at once: segments both
// ways for whoever counts what of them is lost. -ENOENT: it has no link that is ready.
int ras_link_ask(struct ras *ras, uint64_t now_ns, uint64_t peer);

// Copies up to `count` events from sequence `from` on; returns how many. *ret_oldest is the
// first one still kept.
uint32_t ras_history(
	const struct ras *ras,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
);

// Everything the core drops, refuses or repeats, by name.
struct ras_counters {
	uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	uint64_t frames_malformed;  // the connection was closed for it
	uint64_t frames_unknown;    // of a newer version: skipped
	uint64_t frames_unexpected; // well-formed, but not now or not from there
	uint64_t queue_dropped;
	uint64_t conns_refused, inits_refused;
	uint64_t versions_refused; // on either side
	uint64_t joins_served, joins_redirected;
	uint64_t syncs, news_sent, news_received, news_fresh;
	uint64_t news_foreign;	       // partly of a newer version: kept and passed on
	uint64_t news_foreign_dropped; // not kept, for want of room
	uint64_t suspicions, suspicions_cleared, deaths_declared;
	uint64_t long_links_opened, ring_links_opened; // and accepted by the other side
	uint64_t links_retired, links_shed;
	uint64_t own_pauses, own_paused_ns;
	uint64_t memory_failures;
	uint64_t news_hops_max; // counted to 255: a ring without long links may need more
};

const struct ras_counters *ras_counters(const struct ras *ras);
// Bytes allocated for this instance, the shared records apart.
size_t ras_memory_used(const struct ras *ras);
// Of these, what the events that are kept take.
size_t ras_history_bytes(const struct ras *ras);
