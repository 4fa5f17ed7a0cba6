// SPDX-License-Identifier: BSD-3-Clause
// The RAS overlay of one node as a state machine.
//
// Inputs: the time, connections that opened, delivered a frame or ended, local requests, and
// evidence from other parts of the agent. Outputs, through struct ras_ops: connections to open and
// close, frames to send, the next wake-up, events. There is no socket, clock, thread or allocator
// inside. The agent connects the core to epoll; the simulator connects thousands of cores to a
// virtual network. The same inputs and seed repeat a run exactly.
//
// Rules for the caller:
// - Use one thread per instance.
// - Never let `now_ns` go back.
// - Feed everything that is pending on the connections before calling ras_tick(). A node that was
//   stopped itself thereby hears its peers before it judges them.
// - Never call the core from inside one of its operations.
#pragma once

#include <lib/sockaddr.h>
#include <ras/event.h>
#include <ras/memory.h>
#include <ras/profile.h>
#include <ras/record.h>
#include <ras/types.h>

struct ras;

enum ras_close {
	RAS_CLOSE_SOFT, // send what is queued, half-close, read to the end, then close
	RAS_CLOSE_HARD, // close at once
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
	// Connect. Report the outcome by ras_conn_opened() or ras_conn_ended(), but not from inside
	// this call.
	void (*open)(void *ctx, uint32_t conn, const struct sock_addr *to);
	// Copy and send the frame. Returns 0, or -EAGAIN if nothing was accepted;
	// ras_conn_writable() must follow then.
	int (*send)(void *ctx, uint32_t conn, const void *frame, size_t size);
	// Close the connection. The core forgets the handle, so no later input may use it.
	void (*close)(void *ctx, uint32_t conn, enum ras_close how);
	// Set the next wake-up, replacing the previous one; RAS_NEVER for none.
	void (*wake)(void *ctx, uint64_t at_ns);
	void (*event)(void *ctx, const struct ras_event *event);

	// Relay (ras/relay.h). Deliver a message to a local port. Returns 0 if the consumer took
	// it, -EAGAIN if the consumer is full, -ENOENT if the port has none.
	int (*deliver)(void *ctx, const struct ras_relay_delivery *delivery);
	// Report how a message ended that was sent with RAS_RELAY_REPORT.
	void (*report)(void *ctx, const struct ras_relay_report *report);

	// Collectives (ras/collective.h). Write one part of this node's share, at most
	// RAS_COLLECT_PART_BYTES_MAX bytes. Returns true if another part follows.
	bool (*contribute
	)(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer);
	void (*collected)(void *ctx, const struct ras_collective_result *result);
	// Receive a notice of another node, once per notice. The payload is valid during the call
	// only.
	void (*notice)(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size);

	// Transfers (ras/transfer.h); each may be NULL. Read bytes to send, starting at an offset.
	int (*transfer_read)(void *ctx, struct ras_transfer_read *read);
	// Pass a segment to a local consumer. Returns 0 if it was taken, -EAGAIN if the consumer is
	// full. NULL: there is no consumer here.
	int (*transfer_take)(void *ctx, const struct ras_transfer_segment *segment);
	void (*transfer_ended)(void *ctx, const struct ras_transfer_end *end);

	// Receive the result of ras_who(); NULL if the caller never asks. Cause NONE: the peer
	// itself answered and proved the key. CONFLICT: agent `found` answered instead. Any other
	// cause: why there was no answer.
	void (*who)(void *ctx, uint32_t conn, enum ras_cause cause, uint64_t found);

	// Sign bytes with the secret key of this agent, whose public key is config.self.key. Equal
	// bytes have equal signatures.
	void (*sign
	)(void *ctx,
	  const void *bytes,
	  size_t size,
	  uint8_t ret_signature[static RAS_SIGNATURE_BYTES]);
	// Return true if the owner of this public key signed these bytes.
	bool (*verify
	)(void *ctx,
	  const uint8_t key[static RAS_KEY_BYTES],
	  const void *bytes,
	  size_t size,
	  const uint8_t signature[static RAS_SIGNATURE_BYTES]);
};

// Protocol versions of this build. Two adjacent builds have one version in common.
extern const struct ras_versions ras_versions_built;

struct ras_config {
	const struct ras_profile *profile;
	const char *cluster;	       // name; agents of another cluster are refused
	struct ras_peer_info self;     // start 0: unknown, learnt at the join
	const struct sock_addr *seeds; // join addresses; copied
	uint32_t seed_count;	       // 0: this agent forms a ring of its own
	uint64_t random_seed;	       // seed for jitter; the core has no other randomness
	uint32_t history_events;       // events kept for ras_history()
	uint32_t conns_max;	       // connections open at once, both directions
	uint16_t version_min;	       // protocol; 0: as built
	uint16_t version_max;
};

// Create an instance. The configuration is copied; interner, memory and ops must outlive the
// instance. Returns 0, -EINVAL (name, host or address missing) or -ENOMEM.
int ras_create(
	const struct ras_config *config,
	const struct ras_memory *memory,
	struct ras_interner *interner,
	const struct ras_ops *ops,
	void *ops_ctx,
	struct ras **ret_ras
);
struct ras *ras_destroy(struct ras *ras);

// Fill the table with known peers, as after a join; no join follows. For simulations that begin
// with a complete ring, and for a table kept over a restart. Call it before ras_start().
int ras_preload(struct ras *ras, struct ras_record *const *records, uint32_t count);

// Do the same for many instances of one interner: the table is built once and copied. It may be
// destroyed once the last copy is made. Returns 0 or -ENOMEM.
struct ras_table;
int ras_table_create(
	const struct ras_memory *memory,
	struct ras_interner *interner,
	struct ras_record *const *records,
	uint32_t count,
	struct ras_table **ret_table
);
struct ras_table *ras_table_destroy(struct ras_table *table);
// Returns 0, -ENOENT if the table does not hold this agent's own record, or -ENOMEM.
int ras_preload_table(struct ras *ras, const struct ras_table *table);

// Prefetch what the next frame of a connection, or the next tick, will touch. For callers that run
// thousands of instances, which exceed every cache. Each step follows pointers that the previous
// step fetched, so some time should pass between steps. Nothing changes.
#define RAS_PREFETCH_STEPS 4
void ras_prefetch_frame(const struct ras *ras, uint32_t handle, uint32_t step);
void ras_prefetch_tick(const struct ras *ras, uint32_t step);

// Replace the join addresses, for example after a list was read again or a name resolved to another
// address. May be called any time. Returns 0, -EINVAL (more than RAS_SEEDS_MAX) or -ENOMEM; on
// failure the old addresses stay.
int ras_set_seeds(struct ras *ras, const struct sock_addr *seeds, uint32_t count);

// Announce that seeds are configured whose addresses are not resolved yet. Until ras_set_seeds()
// supplies them, this agent does not act as one without seeds.
void ras_set_seeds_unresolved(struct ras *ras);
// Set the addresses of members of an earlier run, at most RAS_REMEMBERED_MAX. They are asked beside
// the seeds, but a refusal there does not end the start (event JOIN_DROPPED, not JOIN_REFUSED). An
// agent without seeds founds a ring at once only if it remembers no member. May be called any time;
// replaces the previous addresses. Returns 0, -EINVAL or -ENOMEM.
int ras_remembered(struct ras *ras, const struct sock_addr *addresses, uint32_t count);
// Forget one remembered address.
void ras_remembered_drop(struct ras *ras, const struct sock_addr *address);

// Begin to join. Call it once, before any other input.
void ras_start(struct ras *ras, uint64_t now_ns);
// Announce the departure of this agent and close its links softly. ras_is_shut_down() turns true
// when no connection is open any more.
void ras_leave(struct ras *ras, uint64_t now_ns);
bool ras_is_shut_down(const struct ras *ras);

// Connections. The core makes the handles of both accepted and opened connections. Returns 0, or
// -EMFILE if conns_max are open; the caller then closes the new one.
int ras_conn_accepted(
	struct ras *ras, uint64_t now_ns, const struct sock_addr *from, uint32_t *ret_conn
);
// Report that a connection is open, and the key proven where there is one.
void ras_conn_opened(struct ras *ras, uint64_t now_ns, uint32_t conn);
// Feed one frame that arrived on a connection.
void ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
// Report that a connection accepts frames again after -EAGAIN.
void ras_conn_writable(struct ras *ras, uint64_t now_ns, uint32_t conn);
// Report that a connection failed to open or ended. Feed everything it carried before. Use EXITED
// instead of REFUSED only if the address is of this machine and its kernel has no listener there.
// Then no firewall can have made up the refusal.
void ras_conn_ended(struct ras *ras, uint64_t now_ns, uint32_t conn, enum ras_cause cause);

// Change the address that this agent advertises. The agent takes a new start number, and all
// connections end, since they use the old address. If the address is unchanged, only the
// connections end. Returns 0, -EAGAIN (leaving), -ENOMEM, -EINVAL or -ENOSPC; on failure nothing
// has changed.
int ras_set_own_address(struct ras *ras, uint64_t now_ns, const struct sock_addr *address);
// Report that this machine has its lost address back. Silences measured in between are discarded,
// since no peer could be heard.
void ras_own_address_restored(struct ras *ras, uint64_t now_ns);

// Ask the agent at the address that a peer advertises for its identity. ops.who receives the result
// once, unless this agent leaves first. No link results. Returns 0, -ENOENT, -EAGAIN (leaving) or
// -EMFILE.
int ras_who(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t *ret_conn);

// A stranger: another agent that answered at the address which a peer advertises. One of the two is
// misconfigured. The finding is kept for ten minutes. It ends earlier when the peer answers there
// itself, advertises another address, starts anew or is no member any more.
struct ras_stranger {
	uint64_t peer, found; // ids; `found` may be unknown to this agent
	struct sock_addr address;
	uint64_t start;	  // start number of the peer when the stranger answered
	uint64_t seen_ns; // private to the core
};

// Copy finding n. Returns 0, -ESTALE if it no longer holds, or -ENOENT past the last.
int ras_stranger_at(const struct ras *ras, uint32_t n, struct ras_stranger *ret_stranger);
// Return how long ago a stranger answered at the address that this peer advertises, or advertised
// before it died or left. Then that host's behaviour says nothing about the peer. RAS_NEVER: there
// is no such finding.
uint64_t ras_peer_stranger_age_ns(const struct ras *ras, uint64_t peer);

// Return what an errno of connect, send or receive means: evidence, a reason to retry, or a local
// failure.
enum ras_cause ras_cause_of_errno(int error);

// Run the timers that are due. Call it at the time that ops.wake requested.
void ras_tick(struct ras *ras, uint64_t now_ns);

// Set the wall clock: ns since 1970 at `now_ns`, or 0 if it is no longer known. Call it about every
// minute, and at once after the clock was set. Beats carry the value; a peer whose clock differs by
// more than a second causes an event. The core times nothing by it.
void ras_set_wall_clock(struct ras *ras, uint64_t now_ns, uint64_t wall_ns);

// Evidence from outside the overlay: the data plane, local checks, people and jobs.
enum ras_evidence_source {
	RAS_SOURCE_DATA_PLANE, // counts as this agent's own observation
	RAS_SOURCE_CHECK,
	RAS_SOURCE_REPORT, // raises a suspicion, never counts as an observer
};

struct ras_evidence {
	enum ras_evidence_source source;
	uint64_t observer; // id of the agent that saw it
	uint64_t subject;
	bool alive;	 // true: proof of life; false: evidence of a failure
	uint64_t age_ns; // time since it was observed
};

// Feed evidence. Returns 0, or -ENOENT if the subject is unknown. Returns -ESTALE if the evidence
// is older than the last message of the subject. A proof of life is also stale if it is older than
// the suspicion.
int ras_evidence(struct ras *ras, uint64_t now_ns, const struct ras_evidence *evidence);

// Add an event that does not come from the protocol. The caller sets its kind (one of the caller's
// own), cause, peer, observers and value; the core adds the rest. Returns 0, or -ENOENT if the peer
// is unknown.
int ras_add_event(struct ras *ras, uint64_t now_ns, const struct ras_event *note);

// Switch maintenance of a peer, or forget a peer; both are announced to all agents. Returns 0,
// -ENOENT, -ENOMEM or -EOVERFLOW (version RAS_MAINT_VERSION_MAX). ras_forget() also returns -EBUSY
// unless the peer is dead, left or unreachable here. An unreachable peer, which the brake holds, is
// also forgotten by all agents that do not reach it. If it is alive after all, it comes back by
// itself.
int ras_set_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, bool on);
int ras_forget(struct ras *ras, uint64_t now_ns, uint64_t peer);
// Raise the maintenance switch of a peer to a version that was stored before a restart. The new
// version is announced. A version that is not higher changes nothing. Returns 0, -ENOENT, -ENOMEM
// or -EOVERFLOW.
int ras_restore_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t version);
// Forget all peers that any reachable agent holds unreachable. Returns the number of those that
// were unreachable here. Peers that only other agents hold unreachable follow within some seconds.
uint32_t ras_forget_unreachable(struct ras *ras, uint64_t now_ns);

// Summary of the view. Agents that applied the same changes show the same digest.
struct ras_view {
	uint64_t number; // grows with each change
	uint64_t digest;
	uint32_t alive; // includes this agent, suspect and unreachable peers
	uint32_t suspect;
	uint32_t unreachable;
	uint32_t dead;
	uint32_t left;
	uint32_t slots_max; // all used slots are below
	bool joined;
	bool brake;
	// This agent is on a minority side: at most half of the members with a vote are reachable.
	// A member that was declared dead and came back has no vote for a while. No timeout
	// releases the brake in this case. It ends when the others are back, or by
	// ras_forget_unreachable().
	bool waits;
	uint32_t reached, reached_of; // latest census, while `waits`
	uint32_t silent;	      // not reached by the latest census, while `brake`
	// After JOIN_REFUSED: address of the other holder of the name, or of the agent that refused
	// for another reason. Family NONE before that.
	struct sock_addr refused_by;
	struct ras_versions versions; // versions that this agent speaks
};

void ras_view(const struct ras *ras, struct ras_view *ret_view);

struct ras_peer {
	const struct ras_record *record; // valid until the next input
	uint32_t slot;
	uint64_t incarnation;
	enum ras_state state;
	enum ras_cause cause; // for suspect, dead and left
	bool sole;	      // declared dead by its only possible observer
	bool maint;
	uint32_t maint_version; // grows each time the switch is turned, odd is on
	uint64_t since_ns;
	uint32_t observer_count;
	uint64_t observers[RAS_OBSERVERS_MAX];
};

uint64_t ras_self_id(const struct ras *ras);
uint64_t ras_self_incarnation(const struct ras *ras);
// Returns 0, or -ENOENT if the slot is empty or the id unknown.
int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer);
int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer);

struct ras_link_info {
	uint64_t peer;
	bool ready;
	bool delayed;
	bool outgoing;
	uint16_t version; // protocol version, 0 while the link is not ready
	uint32_t mine;	  // RAS_USE_* bits of this agent
	uint32_t theirs;  // RAS_USE_* bits of the peer
	uint64_t silent_ns;
	uint64_t quiet_ns;   // silent_ns minus the pause that the peer promised beyond one beat
	uint64_t rtt_min_ns; // round trip of beats, RAS_NEVER if none came back
	uint64_t rtt_mean_ns;
	uint64_t rtt_max_ns;
	// Wall clock of the peer minus our own, accurate to half a round trip. Median of the latest
	// samples; RAS_OFFSET_UNKNOWN if either side sends none. The core bases no decision on it.
	int64_t wall_offset_ns;
	uint64_t sent_bytes, sent_frames, received_bytes, received_frames;
	uint64_t age_ns; // time over which the four counters ran
	uint32_t reconnects;
	uint32_t queued_bytes;
};

// Copy the state of link n, in no particular order. Returns 0, or -ENOENT past the last.
int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info);
// Send an extra beat on the link of a peer and ask for an answer at once. This puts segments on the
// wire in both directions, for callers that count lost segments. Returns 0, or -ENOENT if the peer
// has no ready link.
int ras_link_ping(struct ras *ras, uint64_t now_ns, uint64_t peer);

// Copy up to `count` events, starting at sequence `from`. Returns the number copied; *ret_oldest is
// the first event still kept.
uint32_t ras_history(
	const struct ras *ras,
	uint64_t from,
	struct ras_event *events,
	uint32_t count,
	uint64_t *ret_oldest
);

// Counters of everything that the core drops, refuses or repeats.
struct ras_counters {
	uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	uint64_t frames_malformed;  // the connection was closed because of them
	uint64_t frames_unknown;    // types of a newer version: skipped
	uint64_t frames_unexpected; // well-formed, but not allowed at this time or from this peer
	uint64_t queue_dropped;
	uint64_t conns_refused, inits_refused;
	uint64_t versions_refused; // refused by either side
	uint64_t joins_served, joins_redirected;
	uint64_t syncs, news_sent, news_received, news_fresh;
	uint64_t news_foreign;	       // partly of a newer version: kept and forwarded
	uint64_t news_foreign_dropped; // discarded for lack of room
	uint64_t suspicions, suspicions_cleared, deaths_declared;
	uint64_t long_links_opened, ring_links_opened; // opened by this agent, accepted by the peer
	uint64_t links_retired, links_shed;
	uint64_t own_pauses, own_paused_ns;
	uint64_t keys_refused;	    // records refused: not the key by which the member is known
	uint64_t departures_forged; // news that a peer left, not signed by its key
	uint64_t names_held;	    // new names that had to wait for a proof
	uint64_t memory_failures;
	uint64_t news_hops_max; // counted up to 255; a ring without long links may need more
};

const struct ras_counters *ras_counters(const struct ras *ras);
// Return the bytes allocated for this instance, without the shared records.
size_t ras_memory_used(const struct ras *ras);
// Return the bytes of the kept events, a part of ras_memory_used().
size_t ras_history_bytes(const struct ras *ras);
