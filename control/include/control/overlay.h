// SPDX-License-Identifier: BSD-3-Clause
// This node in the overlay: the protocol core wired to sockets, timers and the state directory.
//
// What the agent's other parts (clients, HTTP, verdicts) know of the cluster they know from here:
// the core itself for questions about the present (ras_peer_at() and its like, read-only),
// listeners for what happens, and requests that answer later. All on the loop's thread.
#pragma once

#include <control/loop.h>
#include <control/state.h>
#include <lib/sockaddr.h>
#include <ras/collective.h>
#include <ras/payload.h>
#include <ras/ras.h>
#include <ras/relay.h>
#include <verdict/observation.h>

#include <stddef.h>
#include <stdint.h>

struct overlay;
struct seal_keys;
struct transport;
struct transport_sent;

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
// Begins to join through the members of earlier runs that it remembers, until overlay_join() tells
// the addresses to join through, which are looked up. Nothing if it has begun.
void overlay_join_remembered(struct overlay *overlay);
// So many it remembers; and the same when they were forgotten, here and in the state directory.
// Those who are members now are remembered again, within a minute or so.
uint32_t overlay_remembers(const struct overlay *overlay);
uint32_t overlay_forget_remembered(struct overlay *overlay);
// A ring of one, though it remembers or expects others.
bool overlay_is_alone(const struct overlay *overlay);
// Says goodbye; `done` is called once everything is said, or after the profile's close_ns.
void overlay_leave(struct overlay *overlay, void (*done)(void *ctx), void *ctx);

// The machine's addresses have changed: listens and connects elsewhere from now on, on that
// interface (NULL: none is bound), and tells others `told`. -errno with words; if it is the telling
// that failed, overlay_address() is the new address, and a call with the same makes up for it.
int overlay_readdress(
	struct overlay *overlay,
	const struct sock_addr *listen,
	const char *interface,
	const struct sock_addr *told,
	char ret_detail[static 256]
);
// The machine has no more the address that the overlay is spoken from, in words: an event, and a
// problem of the address. It has it again: others are asked anew whether they reach it.
void overlay_address_lost(struct overlay *overlay, const char *words);
void overlay_address_back(struct overlay *overlay);

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
	// The addresses that this machine shares with another have been looked at; NULL: not told.
	void (*addresses)(struct overlay_listener *listener);
	struct overlay_listener *next; // private
};

// What is said of an event in words, of the last OVERLAY_TEXTS that had any; else "".
#define OVERLAY_TEXTS 64
const char *overlay_event_text(const struct overlay *overlay, uint64_t sequence);

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
// The last one to be forgotten ends the question, here and in all agents.
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
// How long who asked waits, from when the line is handed over.
uint64_t overlay_served_life_ns(const struct overlay_served *served);
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

// A port of the relay that another part of the agent serves, on every agent by the same number.
// Messages are of at most RAS_RELAY_CONTROL_BYTES_MAX bytes, come in any order, and at most once.
#define OVERLAY_PORT_PAIRING (RAS_RELAY_PORT_MIN + 16)
#define OVERLAY_PORT_RAILS (RAS_RELAY_PORT_MIN + 17)
#define OVERLAY_PORT_WAITING_MAX 256 // beyond it senders have to try again

struct overlay_port;

typedef void overlay_port_message_fn(
	struct overlay_port *port,
	uint64_t node,
	uint64_t incarnation,
	const void *bytes,
	size_t size
);
typedef void overlay_port_undelivered_fn(
	struct overlay_port *port, uint32_t tag, const struct ras_relay_report *report
);

struct overlay_port {
	// Both on the loop, never from inside a call into the overlay.
	overlay_port_message_fn *message;
	// One that was sent will not be delivered, or nobody can say. tag as it was sent.
	overlay_port_undelivered_fn *undelivered;
	uint32_t number;
	struct overlay_port *next; // private, as the rest
	struct overlay *overlay;
	struct overlay_port_item *first, **last;
	uint32_t waiting;
	struct overlay_port_sent *sent;
	struct loop_job hand_over;
};

void overlay_port_open(struct overlay *overlay, struct overlay_port *port);
// What waits is dropped. One that was never opened is fine.
void overlay_port_close(struct overlay_port *port);
// As ras_relay_send().
struct overlay_port_message {
	uint64_t node;
	const void *bytes;
	size_t size;
	uint64_t life_ns; // 0: 10 s
	uint32_t tag;
};
int overlay_port_send(struct overlay_port *port, const struct overlay_port_message *message);

// Notices: what is told to everybody at once, best effort (ras_notice()). fn is called from inside
// the core and must not call back into the overlay. One consumer of a kind; fn NULL ends it.
typedef void overlay_notice_fn(void *ctx, uint64_t origin, const void *bytes, size_t size);
void overlay_notice_consumer(
	struct overlay *overlay, uint32_t kind, overlay_notice_fn *fn, void *ctx
);
// -EMSGSIZE, -EAGAIN (not started, or leaving).
int overlay_notice(struct overlay *overlay, uint32_t kind, const void *bytes, size_t size);

// How a peer's host took what was tried from here last: whether its kernel lives, where its agent
// says nothing. An open connection tells, too: what is sent on it is acknowledged by the kernel.
struct overlay_tcp_reach {
	enum verdict_reach reach;
	uint64_t at_ns;	   // when it was heard, or tried
	uint64_t since_ns; // it was so already then; at_ns, where that is not known
	uint64_t quiet_ns; // of its link, see <ras/ras.h>; RAS_NEVER: there is none
};
// REACH_UNKNOWN, at 0: nothing was tried lately.
void overlay_tcp_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_reach
);

// As transport_kernel_sent().
int overlay_sent(
	const struct overlay *overlay, const struct sock_addr *host, struct transport_sent *ret_sent
);

// As ras_link_ask().
int overlay_link_ask(struct overlay *overlay, uint64_t peer);

// An event about a verdict, with a sentence; the value says which. Of one that was forgotten
// meanwhile there is none.
void overlay_note_verdict(
	struct overlay *overlay, uint64_t peer, uint64_t verdict, const char *sentence
);

// An event about the RDMA devices of a node, ours or another, with a sentence.
void overlay_note_rails(
	struct overlay *overlay, uint64_t node, uint64_t count, const char *sentence
);

// Whether others can connect to the address that this node tells them. It asks one or two of them,
// on other hosts if there is a choice, soon after it joined and until one says yes.
enum overlay_reach_state {
	OVERLAY_REACH_UNKNOWN, // not asked yet, or nobody could tell
	OVERLAY_REACH_PROVEN,
	OVERLAY_REACH_UNPROVEN, // those who tried got nowhere, or the machine has it no more
};

struct overlay_reach_counters {
	uint64_t asked;		   // questions to others whether they reach us
	uint64_t reached;	   // of these: yes
	uint64_t not_reached;	   // no
	uint64_t unanswered;	   // nothing that tells
	uint64_t tries;		   // connections begun for others
	uint64_t tries_failed;	   // of these, to an address where nobody answered
	uint64_t tries_turned_off; // questions of others not looked into, for their number
};

struct overlay_reach {
	enum overlay_reach_state state;
	char words[STATE_TEXT_BYTES]; // UNPROVEN: who tried, from where, and what came of it
	struct overlay_reach_counters counters;
};

const struct overlay_reach *overlay_reach(const struct overlay *overlay);

// Mistakes in the configuration of nodes, this one's or others', a sentence each that names all who
// are in it: another one answers at somebody's address, several machines have one host identity or
// one address, a member is not in the roster.
// The cursor begins at 0; false past the last.
bool overlay_mistake_next(
	const struct overlay *overlay, uint32_t *cursor, char ret_words[static STATE_TEXT_BYTES]
);

// Whether machines that were booted apart have this host identity: then each boot is a host.
bool overlay_host_is_shared(const struct overlay *overlay, uint64_t host_name_id);

// The addresses that this machine has now, without ports and scopes: each is compared with those
// that agents of other hosts tell. 0 or -ENOMEM.
int overlay_own_addresses(struct overlay *overlay, const struct sock_addr *addresses, size_t count);

// Of those the n-th address that two machines have, this one and that of another member; false past
// the last.
bool overlay_shared_address_at(
	const struct overlay *overlay, uint32_t n, char ret_words[static STATE_TEXT_BYTES]
);

// What this node finds of itself, beside those: one sentence of each, "": none.
enum overlay_own {
	OVERLAY_OWN_DEVICE, // where its software device is
	OVERLAY_OWN_RELOAD, // what became of the configuration when it was last read
	OVERLAY_OWN_COUNT,
};

void overlay_own_mistake(struct overlay *overlay, enum overlay_own own, const char *words);

// The names to join through cannot be used, in words; "": they can.
void overlay_join_names(struct overlay *overlay, const char *words);
// Why this node is no member yet, or alone in a ring of its own, in words; false: there is nothing
// to say.
bool overlay_join_problem(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]);

// Those who came and could not prove the key, until nobody has for TRANSPORT_STRANGERS_NS.
struct overlay_strangers {
	uint32_t count;
	struct sock_addr last;
	uint64_t last_ns;
};
bool overlay_strangers(const struct overlay *overlay, struct overlay_strangers *ret_strangers);

// As ras_evidence(), ras_maint(), ras_forget(). A report that was taken is an event, with its
// reason, less than STATE_TEXT_BYTES of UTF-8, and the uid of who gave it as its value.
int overlay_report(struct overlay *overlay, uint64_t subject, uint32_t uid, const char *reason);
// What this node's data plane saw of a peer that long ago: as ras_evidence().
int overlay_evidence(struct overlay *overlay, uint64_t subject, bool alive, uint64_t age_ns);
int overlay_maint(struct overlay *overlay, uint64_t peer, bool on);
int overlay_forget(struct overlay *overlay, uint64_t peer);
uint32_t overlay_forget_unreachable(struct overlay *overlay);
