// SPDX-License-Identifier: BSD-3-Clause
// The overlay of this node: the protocol core connected to sockets, timers and the state directory.
//
// The agent's other parts (clients, HTTP, verdicts) learn about the cluster here. The core answers
// questions about the present (ras_peer_at() and similar, read-only). Listeners receive events.
// Requests are answered later. Loop thread only.
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
struct transport_segments;

struct overlay_config {
	const struct ras_profile *profile;
	const char *cluster;
	// the start number is filled in later; addresses[0].port may be 0
	struct ras_peer_info self;
	const struct seal_keys *keys;
	struct sock_addr listen;
	const char *interface;
	struct state *state;	   // NULL: nothing is kept over a restart
	const char *key_directory; // holds this agent's key, see agent_key_open(); NULL: none
	uint32_t conns_max;
};

// Create the overlay. Returns 0, or -errno with an explanation in ret_detail.
int overlay_create(
	struct loop *loop,
	const struct overlay_config *config,
	char ret_detail[static 256],
	struct overlay **ret_overlay
);
struct overlay *overlay_destroy(struct overlay *overlay);

// Start to join through these addresses; without any, this node forms a ring of its own. A later
// call replaces the addresses. Before this call or overlay_join_remembered(), no other node is
// accepted.
void overlay_join(struct overlay *overlay, const struct sock_addr *seeds, uint32_t count);
// Start to join through the members remembered from earlier runs, while the addresses to join
// through are still being resolved. overlay_join() follows. Ignored if joining has started.
void overlay_join_remembered(struct overlay *overlay);
// Return the number of remembered members; forget them, here and in the state directory, and return
// their number. Current members are remembered again within about a minute.
uint32_t overlay_remembered_count(const struct overlay *overlay);
uint32_t overlay_forget_remembered(struct overlay *overlay);
// Return whether this node is a ring of one although it remembers or expects other members.
bool overlay_is_alone(const struct overlay *overlay);
// Say goodbye to all links. `done` is called after the last goodbye was sent, or after the
// profile's close_ns.
void overlay_leave(struct overlay *overlay, void (*done)(void *ctx), void *ctx);

// Move the overlay to a new address of this machine: listen and connect there, bound to `interface`
// (NULL: none), and advertise `told`. Returns 0, or -errno with an explanation. If only the
// advertising failed, overlay_address() is the new address, and the same call can be repeated.
int overlay_change_address(
	struct overlay *overlay,
	const struct sock_addr *listen,
	const char *interface,
	const struct sock_addr *told,
	char ret_detail[static 256]
);
// Report that the machine has lost the overlay's address. `reason` describes the loss. The result
// is an event and an address problem. overlay_address_restored() reports that the address is back;
// other members then test it again.
void overlay_report_address_lost(struct overlay *overlay, const char *reason);
void overlay_address_restored(struct overlay *overlay);

// Use these keys for new connections.
void overlay_use_keys(struct overlay *overlay, const struct seal_keys *keys);

// Read-only access to the core. Changes go through the functions below.
const struct ras *overlay_ras(const struct overlay *overlay);
// Return the time for an input to the core. It advances within a loop turn, and never goes back.
uint64_t overlay_now_ns(const struct overlay *overlay);
const struct transport *overlay_transport(const struct overlay *overlay);
struct sock_addr overlay_address(const struct overlay *overlay);
// Return the state directory, or NULL.
const struct state *overlay_state(const struct overlay *overlay);
// Convert a time of the loop's clock to UNIX time in nanoseconds, by the current system clock.
int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns);

// Set the roster: a hostlist of the nodes that should be members, or "". Returns 0, -EINVAL (or
// another parse error) or -ENOMEM; on error the old roster stays.
int overlay_set_roster(struct overlay *overlay, const char *names);
uint32_t overlay_roster_count(const struct overlay *overlay);
bool overlay_roster_has_node(const struct overlay *overlay, const char *name, size_t length);
// Return the next roster node that is in no table: never seen, or forgotten. The cursor starts at
// 0. Returns NULL past the last.
const char *overlay_missing_next(const struct overlay *overlay, uint32_t *cursor);

// A subscriber to events, called after each event is applied. It may defer a job, but must not call
// back into the overlay.
struct overlay_listener {
	void (*event)(struct overlay_listener *listener, const struct ras_event *event);
	// The agent checked again which addresses of this machine another member's machine also
	// has; overlay_shared_address_at() lists them. NULL: not interested.
	void (*addresses)(struct overlay_listener *listener);
	struct overlay_listener *next; // private
};

// Return the description of an event. Only the last OVERLAY_TEXTS descriptions are kept; otherwise
// "".
#define OVERLAY_TEXTS 64
const char *overlay_event_text(const struct overlay *overlay, uint64_t sequence);

void overlay_listen(struct overlay *overlay, struct overlay_listener *listener);
void overlay_unlisten(struct overlay *overlay, struct overlay_listener *listener);

// A question to all nodes. One question of each kind runs at a time. Callers that ask meanwhile, or
// up to OVERLAY_SHARE_NS later, get the same answer.
#define OVERLAY_SHARE_NS RAS_NS_PER_SEC

// The merged answer of a collective. All callers share it; the last overlay_answer_put() frees it.
struct overlay_answer {
	uint32_t references;
	int err; // -ECANCELED or -ENOMEM: the fields below are invalid
	enum ras_collect_kind kind;
	uint64_t at_ns;
	struct ras_collective_result result; // .missing points into this answer, .collected is NULL
	uint32_t bad_parts;	 // partial answers that could not be parsed and were left out
	struct ras_conns *conns; // only the one of this kind is set
	struct ras_comms *comms;
	struct ras_paths *paths;
};

void overlay_answer_put(struct overlay_answer *answer);

struct overlay_question {
	// Called once, never from inside overlay_ask_all(). The callee owns the reference. If the
	// answer has an error, the callee must put it at once.
	void (*answered)(struct overlay_question *question, struct overlay_answer *answer);
	struct overlay_question *next; // private from here on
	struct overlay *overlay;
	uint32_t kind;
};

// Ask all nodes. Only the timeout of the first caller counts; 0: the profile's. Returns 0, -EAGAIN
// (not joined yet, or leaving), -EBUSY or -ENOMEM.
int overlay_ask_all(
	struct overlay *overlay,
	enum ras_collect_kind kind,
	uint64_t timeout_ns,
	struct overlay_question *question
);
// Cancel a question. When its last caller cancels, the question ends in all agents.
void overlay_cancel_question(struct overlay_question *question);

// Set the function that adds this node's part to a collective, beyond the core's own rows.
typedef bool
overlay_contribute_fn(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer);
void overlay_contributor(
	struct overlay *overlay, enum ras_collect_kind kind, overlay_contribute_fn *fn, void *ctx
);

// A call to one node: a line of the client protocol, answered in the same protocol. The other side
// accepts read-only commands only.
struct overlay_call {
	// Receives the answer in pieces, in order. Returns 0, or -EAGAIN if overlay_call_ready()
	// will follow; any other value cancels. It must not call back into the overlay.
	int (*piece)(struct overlay_call *call, const void *data, size_t size);
	// Called once after the last piece, never from inside overlay_call_start(). `err` is 0,
	// -ETIMEDOUT, -EHOSTDOWN, -EHOSTUNREACH, -ECONNREFUSED (no server there), -EBADMSG (the
	// answer is damaged) or -ECANCELED. Or it is the error that the other side passed to
	// overlay_served_end().
	void (*ended)(struct overlay_call *call, int err);
	struct overlay_call *next; // private from here on
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

// Start a call. A timeout above RAS_TRANSFER_LIFE_MAX_NS is shortened to it. Returns 0, -ENOENT (no
// such peer), -EHOSTDOWN (dead or left), -EMSGSIZE, -EAGAIN (too many calls) or -ENOMEM.
int overlay_call_start(
	struct overlay *overlay,
	uint64_t node,
	const char *line,
	uint64_t timeout_ns,
	struct overlay_call *call
);
void overlay_call_ready(struct overlay_call *call);
void overlay_call_cancel(struct overlay_call *call);

// Set the server of such calls on this node. It receives the line and writes the answer, at once or
// later, then ends it. A line has at most 2,000 bytes; a longer one fails with -EMSGSIZE.
struct overlay_served;
typedef void overlay_serve_fn(void *ctx, struct overlay_served *served, const char *line);
void overlay_set_call_server(struct overlay *overlay, overlay_serve_fn *fn, void *ctx);
// Return how long the caller waits, counted from the start of the serve function.
uint64_t overlay_served_life_ns(const struct overlay_served *served);
// Append to the answer. Returns 0, or -ENOSPC if it exceeds the size of a transfer.
int overlay_served_write(struct overlay_served *served, const void *data, size_t size);
// End the answer: complete (0) or failed (err). `served` is freed.
void overlay_served_end(struct overlay_served *served, int err);

// An echo over the relay, as for `tocsin ping`.
struct overlay_ping {
	void (*ended)(struct overlay_ping *ping, const struct ras_relay_report *report);
	struct overlay_ping *next; // private from here on
	struct overlay *overlay;
	uint64_t message_id;
};

// Send an echo. A timeout above RAS_RELAY_LIFE_MAX_NS is shortened to it. Returns 0, -ENOENT,
// -EHOSTDOWN or -EAGAIN, as overlay_call_start().
int overlay_ping_start(
	struct overlay *overlay, uint64_t node, uint64_t timeout_ns, struct overlay_ping *ping
);
void overlay_ping_cancel(struct overlay_ping *ping);

// A relay port that another part of the agent serves; its number is the same on all agents. A
// message has at most RAS_RELAY_CONTROL_BYTES_MAX bytes. Messages arrive in any order, each at most
// once.
#define OVERLAY_PORT_PAIRING (RAS_RELAY_PORT_MIN + 16)
#define OVERLAY_PORT_RAILS (RAS_RELAY_PORT_MIN + 17)
#define OVERLAY_PORT_JOBS (RAS_RELAY_PORT_MIN + 18)
#define OVERLAY_PORT_WAITING_MAX 256 // queued messages; beyond it senders must retry

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
	// Both callbacks run on the loop, never from inside a call into the overlay.
	overlay_port_message_fn *message;
	// A sent message will not be delivered, or its delivery is unknown. `tag` is the sender's.
	overlay_port_undelivered_fn *undelivered;
	uint32_t number;
	struct overlay_port *next; // private from here on
	struct overlay *overlay;
	struct overlay_port_item *first, **last;
	uint32_t waiting;
	struct overlay_port_sent *sent;
	struct loop_job hand_over;
};

void overlay_port_open(struct overlay *overlay, struct overlay_port *port);
// Close a port and drop its queued messages. A port that was never opened is ignored.
void overlay_port_close(struct overlay_port *port);
// Arguments of overlay_port_send(), as for ras_relay_send().
struct overlay_port_message {
	uint64_t node;
	const void *bytes;
	size_t size;
	uint64_t life_ns; // 0: 10 s
	uint32_t tag;
};
int overlay_port_send(struct overlay_port *port, const struct overlay_port_message *message);
// Return the number of sent messages whose delivery is not known yet.
uint32_t overlay_port_pending(const struct overlay_port *port);

// Notices: messages to all members, best effort (ras_notice()). `fn` is called from inside the core
// and must not call back into the overlay. A kind has one consumer; `fn` NULL removes it.
typedef void overlay_notice_fn(void *ctx, uint64_t origin, const void *bytes, size_t size);
void overlay_set_notice_consumer(
	struct overlay *overlay, uint32_t kind, overlay_notice_fn *fn, void *ctx
);
// Send a notice. Returns 0, -EMSGSIZE or -EAGAIN (not started, or leaving).
int overlay_notice_send(struct overlay *overlay, uint32_t kind, const void *bytes, size_t size);

// Result of the last TCP connections to a peer's host: whether its kernel is alive when its agent
// is silent. An open connection counts too, because the kernel acknowledges the data sent on it.
struct overlay_tcp_reach {
	enum verdict_reach reach;
	uint64_t at_ns;	   // time of the answer or of the attempt
	uint64_t since_ns; // start of this state; at_ns if unknown
	uint64_t quiet_ns; // silence of its link, see <ras/ras.h>; RAS_NEVER: no link
};
// Return the reach of a peer's host. REACH_UNKNOWN with at_ns 0 means that there was no recent
// attempt.
void overlay_tcp_reach(
	const struct overlay *overlay, uint64_t peer, struct overlay_tcp_reach *ret_reach
);

// Same as transport_tcp_segments().
int overlay_tcp_segments(
	const struct overlay *overlay,
	const struct sock_addr *host,
	struct transport_segments *ret_sent
);

// Same as ras_link_ping().
int overlay_link_ask(struct overlay *overlay, uint64_t peer);

// Record an event about a verdict, with a sentence; the event's value is the verdict. Ignored if
// the peer has been forgotten meanwhile.
void overlay_note_verdict(
	struct overlay *overlay, uint64_t peer, uint64_t verdict, const char *sentence
);

// Record an event about the RDMA devices of a node, this one or another, with a sentence.
void overlay_note_rails(
	struct overlay *overlay, uint64_t node, uint64_t count, const char *sentence
);

// Whether other members can connect to the address that this node advertises. Soon after joining,
// it asks one or two of them, on other hosts if possible, until one succeeds.
enum overlay_reach_state {
	OVERLAY_REACH_UNKNOWN, // not asked yet, or no member could tell
	OVERLAY_REACH_PROVEN,
	// the members that tried failed, or the machine has lost the address
	OVERLAY_REACH_UNPROVEN,
};

struct overlay_reach_counters {
	uint64_t asked;		   // members asked to connect to this node
	uint64_t reached;	   // their answers: connected
	uint64_t not_reached;	   // their answers: failed to connect
	uint64_t unanswered;	   // no usable answer
	uint64_t tries;		   // connections attempted for other members
	uint64_t tries_failed;	   // the part of tries that did not reach the asking member
	uint64_t tries_turned_off; // requests of other members rejected because of their number
};

struct overlay_reach {
	enum overlay_reach_state state;
	// UNPROVEN: which member tried, from which address, and with which result
	char words[STATE_TEXT_BYTES];
	struct overlay_reach_counters counters;
};

const struct overlay_reach *overlay_reach(const struct overlay *overlay);

// Return the next configuration mistake on this or another node, as one sentence that names all
// nodes involved. Examples: another agent answers at a member's address; several machines share one
// host identity or one address; a member is not in the roster. The cursor starts at 0. Returns
// false past the last.
bool overlay_mistake_next(
	const struct overlay *overlay, uint32_t *cursor, char ret_words[static STATE_TEXT_BYTES]
);

// Return whether machines with different boots share this host identity. If so, each boot counts as
// a separate host.
bool overlay_host_has_several_boots(const struct overlay *overlay, uint64_t host_name_id);

// Set the machine's current addresses, without ports and scopes. Each is compared with the
// addresses that agents on other hosts advertise. Returns 0 or -ENOMEM.
int overlay_set_own_addresses(
	struct overlay *overlay, const struct sock_addr *addresses, size_t count
);

// Describe the n-th address that both this machine and another member's machine have; false past
// the last.
bool overlay_shared_address_at(
	const struct overlay *overlay, uint32_t n, char ret_words[static STATE_TEXT_BYTES]
);

// A problem that another part of this agent found on this node. One sentence for each kind; "": no
// problem.
enum overlay_own_problem {
	OVERLAY_OWN_DEVICE, // location of its software device
	OVERLAY_OWN_RELOAD, // result of the last configuration reload
	OVERLAY_OWN_COUNT,
};

void overlay_set_own_problem(
	struct overlay *overlay, enum overlay_own_problem own, const char *words
);

// Set why the configured names to join through cannot be used; "": they can.
void overlay_set_join_names_error(struct overlay *overlay, const char *words);
// Return why this node has not joined, or is alone in its ring. Returns false if there is no
// problem.
bool overlay_join_problem(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]);

// Strangers that connected without proving the key. Reset when TRANSPORT_STRANGERS_NS pass without
// one.
struct overlay_strangers {
	uint32_t count;
	struct sock_addr last;
	uint64_t last_ns;
};
bool overlay_strangers(const struct overlay *overlay, struct overlay_strangers *ret_strangers);

// Same as ras_evidence() and ras_forget(). An accepted report becomes an
// event with the reporter's uid as its value. `reason` is UTF-8 text of less than STATE_TEXT_BYTES.
int overlay_report_peer(
	struct overlay *overlay, uint64_t subject, uint32_t uid, const char *reason
);
// Pass on what this node's data plane saw of a peer, age_ns ago; same as ras_evidence().
int overlay_add_evidence(struct overlay *overlay, uint64_t subject, bool alive, uint64_t age_ns);
int overlay_forget_peer(struct overlay *overlay, uint64_t peer);
uint32_t overlay_forget_unreachable(struct overlay *overlay);

// Maintenance of a node, as a person ordered it.
#define OVERLAY_MAINTENANCE_FOR_MAX_NS (366 * UINT64_C(86400) * RAS_NS_PER_SEC)
struct overlay_maintenance_order {
	uint64_t for_ns;  // time until maintenance ends by itself; RAS_NEVER: it does not
	uint32_t uid;	  // of the author
	char user[33];	  // name of the author as the author's program gave it; may be ""
	char reason[129]; // UTF-8; may be ""
};

// Begin maintenance of a node, or end it if `order` is NULL. An order replaces an earlier one. All
// agents are notified and store the order. Returns 0, -ENOENT, -ENOMEM, -ENOSPC (too many orders)
// or -EOVERFLOW (a member raised the version of the switch to its limit).
int overlay_set_maintenance(
	struct overlay *overlay, uint64_t peer, const struct overlay_maintenance_order *order
);

// Read the order under which a peer is in maintenance; for_ns is what remains of it. Returns false
// if the peer is in service, or if this agent does not know the order.
bool overlay_maintenance_find(
	const struct overlay *overlay,
	const struct ras_peer *peer,
	struct overlay_maintenance_order *ret_order,
	uint64_t *ret_age_ns
);
struct overlay_maintenance_counters {
	uint64_t orders_malformed; // malformed orders of other members, which were refused
};
const struct overlay_maintenance_counters *
overlay_maintenance_counters(const struct overlay *overlay);
// Return the age of the oldest order that holds, or 0.
uint64_t overlay_maintenance_age_max_ns(const struct overlay *overlay);
