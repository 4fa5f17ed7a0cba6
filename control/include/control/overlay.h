// SPDX-License-Identifier: BSD-3-Clause
// This node in the overlay: the protocol core wired to sockets, timers and the state directory.
//
// What the agent's other parts (clients, HTTP, verdicts) know of the cluster they know from here:
// the core itself for questions about the present (ras_peer_at() and its like, read-only),
// listeners for what happens, and requests that answer later. All on the loop's thread.
#pragma once

#include <control/loop.h>
#include <lib/sockaddr.h>
#include <ras/collective.h>
#include <ras/payload.h>
#include <ras/ras.h>
#include <ras/relay.h>

#include <stddef.h>
#include <stdint.h>

struct overlay;
struct seal_keys;
struct state;
struct transport;

struct overlay_config {
	const struct ras_profile *profile;
	const char *cluster;
	struct ras_peer_info self; // its start is learnt, its addresses[0].port may be 0
	const struct seal_keys *keys;
	struct sock_addr listen;
	const char *interface;
	struct state *state; // NULL: nothing is kept over a restart
	uint32_t conns_max;
};

// -errno, and what failed in words.
int overlay_create(
	struct loop *loop,
	const struct overlay_config *config,
	char ret_detail[static 256],
	struct overlay **ret_overlay
);
struct overlay *overlay_destroy(struct overlay *overlay);

// Begins to join through these, which may be none: then this node is a ring of its own. Called
// again, they replace those of before. Until the first call nobody is let in.
void overlay_join(struct overlay *overlay, const struct sock_addr *seeds, uint32_t count);
// Says goodbye; `done` is called once everything is said, or after the profile's close_ns.
void overlay_leave(struct overlay *overlay, void (*done)(void *ctx), void *ctx);

// For connections that begin from now on.
void overlay_use_keys(struct overlay *overlay, const struct seal_keys *keys);

// Read-only; requests go through the functions below.
const struct ras *overlay_ras(const struct overlay *overlay);
uint64_t overlay_now_ns(const struct overlay *overlay);
const struct transport *overlay_transport(const struct overlay *overlay);
struct sock_addr overlay_address(const struct overlay *overlay);
// NULL if there is none.
const struct state *overlay_state(const struct overlay *overlay);
// The time of day at which now_ns was or will be, as far as the present clock knows.
int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns);

// The roster: names that should be there, a hostlist; "" for none. -EINVAL and the like for a text
// that is no hostlist, -ENOMEM; the roster of before stays.
int overlay_expect(struct overlay *overlay, const char *names);
uint32_t overlay_expected(const struct overlay *overlay);
bool overlay_is_expected(const struct overlay *overlay, const char *name, size_t length);
// Those of the roster that no table knows: never seen, or forgotten. The cursor begins at 0; NULL
// past the last.
const char *overlay_missing_next(const struct overlay *overlay, uint32_t *cursor);

// Told of each event after it was applied; must not call back into the overlay, but may defer.
struct overlay_listener {
	void (*event)(struct overlay_listener *listener, const struct ras_event *event);
	struct overlay_listener *next; // private
};

void overlay_listen(struct overlay *overlay, struct overlay_listener *listener);
void overlay_unlisten(struct overlay *overlay, struct overlay_listener *listener);

// A question to everybody. One of a kind is on its way at a time: those who ask meanwhile, and
// for OVERLAY_SHARE_NS after, are given the same answer.
#define OVERLAY_SHARE_NS RAS_NS_PER_SEC

// What a collective brought, merged; shared by all who asked, gone when the last has put it back.
struct overlay_answer {
	uint32_t references;
	int err; // -ECANCELED, -ENOMEM: nothing below holds
	enum ras_collect_kind kind;
	uint64_t at_ns;
	struct ras_collective_result result; // .missing points into this answer, .collected is NULL
	uint32_t bad_parts;		     // could not be read, and were left out
	struct ras_conns *conns;	     // the one of this kind
	struct ras_comms *comms;
	struct ras_healths *healths;
	struct ras_paths *paths;
};

void overlay_answer_put(struct overlay_answer *answer);

struct overlay_question {
	// Once, never from inside overlay_ask_all(). The reference passes to the callee, who puts
	// an answer that says err back at once.
	void (*answered)(struct overlay_question *question, struct overlay_answer *answer);
	struct overlay_question *next; // private, as the rest
	struct overlay *overlay;
	uint32_t kind;
};

// The timeout counts only for who asks first; 0 is the profile's.
// -EAGAIN (not joined yet, or leaving), -EBUSY, -ENOMEM.
int overlay_ask_all(
	struct overlay *overlay,
	enum ras_collect_kind kind,
	uint64_t timeout_ns,
	struct overlay_question *question
);
void overlay_forget_question(struct overlay_question *question);

// What this node says in collectives beyond the core's own rows. Set by whoever holds it.
typedef bool
overlay_contribute_fn(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer);
void overlay_contributor(
	struct overlay *overlay, enum ras_collect_kind kind, overlay_contribute_fn *fn, void *ctx
);

// A question to one node: a line of the client protocol, answered by its bytes. The other side
// serves what OVERLAY_REMOTE commands allow: those that only read.
struct overlay_call {
	// A piece of the answer in order; 0, or -EAGAIN: overlay_call_ready() will follow; anything
	// else cancels. It must not call back into the overlay.
	int (*piece)(struct overlay_call *call, const void *data, size_t size);
	// Once, after the last piece: 0, -ETIMEDOUT, -EHOSTDOWN, -EHOSTUNREACH, -ECONNREFUSED
	// (nobody serves it there), -ECANCELED, or what the other side's overlay_served_end() said.
	// Never from inside overlay_call_start().
	void (*ended)(struct overlay_call *call, int err);
	struct overlay_call *next; // private, as the rest
	struct overlay *overlay;
	uint64_t node;
	uint64_t tag;
	uint64_t message_id;
	uint64_t transfer;
	struct loop_timer deadline;
	uint8_t status[4];
	bool over;
	int err;
};

// -ENOENT (no such peer), -EHOSTDOWN (dead or left), -EMSGSIZE, -EAGAIN (as many as allowed). A
// timeout of more than RAS_TRANSFER_LIFE_MAX_NS is shortened to it.
int overlay_call_start(
	struct overlay *overlay,
	uint64_t node,
	const char *line,
	uint64_t timeout_ns,
	struct overlay_call *call
);
void overlay_call_ready(struct overlay_call *call);
void overlay_call_cancel(struct overlay_call *call);

// Who answers such calls here: handed the line, it writes the answer before it returns or later,
// and says when it is complete. Lines are of at most 2,000 bytes; what is longer is -EMSGSIZE.
struct overlay_served;
typedef void overlay_serve_fn(void *ctx, struct overlay_served *served, const char *line);
void overlay_server(struct overlay *overlay, overlay_serve_fn *fn, void *ctx);
// -ENOSPC: the answer is longer than a transfer may be.
int overlay_served_write(struct overlay_served *served, const void *data, size_t size);
// The answer is complete, or will not be (err). `served` is gone with it.
void overlay_served_end(struct overlay_served *served, int err);

// An echo over the relay, as `tocsin ping` asks for.
struct overlay_ping {
	void (*ended)(struct overlay_ping *ping, const struct ras_relay_report *report);
	struct overlay_ping *next; // private, as the rest
	struct overlay *overlay;
	uint64_t message_id;
};

// -ENOENT, -EHOSTDOWN, -EAGAIN. A timeout of more than RAS_RELAY_LIFE_MAX_NS is shortened to it.
int overlay_ping_start(
	struct overlay *overlay, uint64_t node, uint64_t timeout_ns, struct overlay_ping *ping
);
void overlay_ping_cancel(struct overlay_ping *ping);

// As ras_evidence(), ras_maint(), ras_forget().
int overlay_report(struct overlay *overlay, uint64_t subject, const char *reason);
int overlay_maint(struct overlay *overlay, uint64_t peer, bool on);
int overlay_forget(struct overlay *overlay, uint64_t peer);
