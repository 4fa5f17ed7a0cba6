// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: the structures of this node's overlay.
#pragma once

#include <control/agent_key.h>
#include <control/loop.h>
#include <control/member_list.h>
#include <control/overlay.h>
#include <control/state.h>
#include <control/transport.h>
#include <ras/transfer.h>

#include <jansson.h>

// Relay ports that the agent itself uses.
#define OVERLAY_PORT_PING RAS_RELAY_PORT_MIN
#define OVERLAY_PORT_QUESTION (RAS_RELAY_PORT_MIN + 1)	  // question: a line of the client protocol
#define OVERLAY_PORT_ANSWER (RAS_RELAY_PORT_MIN + 2)	  // transfers with the answer
#define OVERLAY_PORT_MAINTENANCE (RAS_RELAY_PORT_MIN + 3) // orders, for a new neighbour
#define OVERLAY_NOTICE_MAINTENANCE (RAS_NOTICE_OWN_MIN + 3) // an order, for all members
#define OVERLAY_LINE_BYTES 2048

// Collective of one kind: the one under way, its waiters, and the last answer while it is fresh.
struct overlay_ask {
	bool running;
	uint64_t id;
	struct overlay_question *waiting;
	struct overlay_answer *recent;
};

struct overlay_contributor {
	overlay_contribute_fn *fn;
	void *ctx;
};

// A question of another node, and this node's answer as far as it is complete.
struct overlay_served {
	struct overlay *overlay;
	struct overlay_served *next;
	uint64_t source;
	uint64_t tag;
	uint64_t life_ns;
	uint64_t transfer; // 0 until the answer is being sent
	bool begun;	   // the question was passed to the server
	bool complete;
	bool due; // to be sent in this turn
	uint8_t *bytes;
	size_t used, capacity;
	size_t line_size;
	char line[OVERLAY_LINE_BYTES + 1];
};

#define OVERLAY_REACH_TRY_NS (3 * RAS_NS_PER_SEC) // longest duration of one try to connect
#define OVERLAY_REACH_ASKED 2			  // members asked in one round
#define OVERLAY_REACH_TRIES 8			  // connection tries for other nodes at once
#define OVERLAY_REACH_ASKERS 64 // askers that are remembered; the oldest makes room
#define OVERLAY_REACH_ANSWER_BYTES 256
#define OVERLAY_REACH_WORDS_BYTES 160 // words that fit, with an address, into an event

// This node's question to other members: can they connect to it? Only one is under way.
struct overlay_reach_ask {
	struct loop_timer due;
	struct overlay_call call;
	bool asking;
	bool alone; // there was no member to ask
	bool lost;  // the machine lost the address, so no member is asked
	uint64_t pause_ns;
	uint64_t asked[OVERLAY_REACH_ASKED];
	uint64_t failed[OVERLAY_REACH_ASKED]; // members of `asked` that did not reach this node
	enum ras_cause cause;		      // cause of the first failure
	uint32_t asked_count, failed_count;
	char answer[OVERLAY_REACH_ANSWER_BYTES];
	size_t answer_size;
	char words[OVERLAY_REACH_WORDS_BYTES];
};

// A connection try that another node asked for.
struct overlay_reach_try {
	struct overlay *overlay;
	struct overlay_served *served; // question to answer; NULL: not in use
	struct sock_addr from, to;
	uint32_t conn;
	struct loop_timer deadline;
	struct loop_job done;
	enum ras_cause cause;	      // result of the try; RAS_CAUSE_NONE: connected
	char found[RAS_NAME_MAX + 1]; // name of the agent that answered instead; "": unknown
};

struct overlay_reach_asker {
	uint64_t id;
	uint64_t again_ns; // earliest time of its next question that is answered
};

struct overlay_text {
	uint64_t sequence;
	char text[STATE_TEXT_BYTES];
};

// Last result of connections to one address.
struct overlay_tcp_result {
	struct sock_addr to; // NONE: not in use
	uint32_t conn;	     // valid if under_way
	bool under_way;
	struct overlay_tcp_reach last;
};
#define OVERLAY_TCP_FOUND_MAX 256 // a newer address may replace an older one

// Live agents with one host identity, but of different boots: their number, and two of them.
struct overlay_clones {
	uint64_t host_name_id;
	uint64_t ids[2];
	uint32_t count;
};
#define OVERLAY_CLONES 4

// An IP address of this machine that a peer on another machine announces.
struct overlay_shared_address {
	uint64_t peer;
	struct sock_addr address; // without a port
};
#define OVERLAY_SHARED_ADDRESSES 16   // limit of addresses
#define OVERLAY_MISTAKES_STRANGERS 64 // limit of strangers; the core keeps fewer

struct overlay_notice_consumer {
	uint32_t kind;
	overlay_notice_fn *fn; // NULL: free entry
	void *ctx;
};
#define OVERLAY_NOTICE_CONSUMERS 5

// Members that this node remembers over a restart.
struct overlay_remember {
	struct member_list list;
	char *cluster; // cluster that the list belongs to
	char node[RAS_NAME_MAX + 1];
	struct loop_timer due;
	uint64_t started_ns;
	uint64_t due_ns;	 // 0: no timer is set
	uint64_t looked_ns;	 // time of the last pass; 0: none in this run
	uint64_t written_ns;	 // time of the last write; 0: none in this run
	uint64_t written_digest; // digest of the list on the disk
	// member that reported another agent with this node's name; NONE: none
	struct sock_addr name_conflict_at;
};

// The order behind a switch that is on. Two orders are compared by (version, origin).
struct maintenance_detail {
	char node[RAS_NAME_MAX + 1];
	struct overlay_maintenance_order order; // for_ns as ordered
	uint32_t version;			// of the switch; odd
	uint64_t origin;			// id of the agent that received the order
	int64_t begun_ns;			// loop's clock; may be before its start
	uint64_t ends_ns;			// loop's clock; RAS_NEVER: no end
	bool is_from_file; // the remaining time is a guess until another agent reports it
	bool is_unsent;	   // all members must be notified
};

#define MAINTENANCE_NEIGHBOURS_MAX 16

// Maintenance switches that this node stores for a restart of all agents, and their orders.
struct overlay_maintenance {
	json_t *versions; // version of the switch by node name, as in the file
	struct loop_timer timer;
	bool is_due;	   // the timer is set
	bool is_changed;   // the file is older than `versions` or `details`
	uint64_t write_ns; // earliest time of the next write

	struct maintenance_detail *details;
	uint32_t detail_count, detail_capacity;
	struct overlay_maintenance_counters counters;
	struct loop_timer tick;
	bool ticks;	    // the timer `tick` is set
	uint64_t repeat_ns; // time at which this agent repeats its own orders
	// Ring neighbours that have received the orders.
	struct {
		uint64_t id, incarnation;
	} neighbours[MAINTENANCE_NEIGHBOURS_MAX];
	uint32_t neighbour_count;
};

struct overlay {
	struct loop *loop;
	struct ras_memory memory;
	struct ras_interner *interner;
	struct ras *ras;
	struct transport *transport;
	struct agent_key *key;
	struct state *state; // NULL: none
	bool started;
	struct loop_timer wake;
	// Gives the core the time of day.
	struct loop_timer wall;
	struct loop_job store_start; // stores the start counter that the join assigned
	struct loop_timer incidents;
	uint64_t incidents_told[RAS_RELAY_REASON_COUNT];
	struct overlay_listener *listeners;
	const char *text;	       // text of the note that is being reported; NULL: none
	enum ras_event_kind text_kind; // event kind of that note
	struct overlay_text texts[OVERLAY_TEXTS]; // ring buffer
	uint32_t text_next;
	char own_mistake_words[OVERLAY_OWN_COUNT][STATE_TEXT_BYTES];
	char join_names[STATE_TEXT_BYTES]; // why the configured join addresses cannot be used

	struct overlay_reach reach;
	struct overlay_reach_ask reach_ask;
	struct overlay_reach_try reach_tries[OVERLAY_REACH_TRIES];
	struct overlay_reach_asker reach_askers[OVERLAY_REACH_ASKERS];
	struct hostlist *roster; // NULL: no nodes are expected
	struct overlay_remember remember;
	struct overlay_maintenance maintenance;

	struct overlay_clones clones[OVERLAY_CLONES];
	uint32_t clones_count;
	uint64_t key_twins[2];	  // two live members with one agent key; 0: none
	uint32_t key_twins_count; // live members that have their key with others
	uint64_t unlisted_first;  // live member beside the roster, the first by name; 0: none
	uint32_t unlisted_count;  // number of live members beside the roster
	bool clones_due;
	struct loop_timer clones_timer;

	struct sock_addr *own_addresses; // sorted addresses of this machine, without ports
	size_t own_address_count;
	struct overlay_shared_address shared_addresses[OVERLAY_SHARED_ADDRESSES];
	uint32_t shared_address_count;
	bool shared_addresses_due;
	struct loop_timer shared_addresses_timer;

	struct overlay_tcp_result tcp_found[OVERLAY_TCP_FOUND_MAX];
	struct overlay_notice_consumer notices[OVERLAY_NOTICE_CONSUMERS];

	struct overlay_ask asks[RAS_COLLECT_KIND_END];
	struct overlay_contributor contributors[RAS_COLLECT_KIND_END];
	struct loop_job share; // passes recent answers to new questions
	struct overlay_ping *pings;
	struct overlay_port *ports;

	uint64_t tags;
	struct overlay_call *calls;
	struct overlay_served *served;
	uint32_t served_count;
	size_t served_bytes;
	overlay_serve_fn *serve;
	void *serve_ctx;
	struct loop_job finish; // reports ended calls, and serves new questions

	void (*left)(void *ctx);
	void *left_ctx;
	struct loop_timer leave_end;
	uint64_t close_ns;
	uint64_t leave_by_ns;
};

// ask.c: operations of the core; ctx is the overlay.
void overlay_collected(void *ctx, const struct ras_collective_result *result);
bool overlay_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
);
void overlay_ask_init(struct overlay *overlay);
void overlay_ask_fini(struct overlay *overlay);

// ping.c
bool overlay_ping_report(struct overlay *overlay, const struct ras_relay_report *report);
void overlay_ping_fini(struct overlay *overlay);

// port.c
int overlay_port_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery);
bool overlay_port_report(struct overlay *overlay, const struct ras_relay_report *report);
void overlay_port_fini(struct overlay *overlay);

// call.c: handlers of the core's operations on these ports and transfers.
bool overlay_call_report(struct overlay *overlay, const struct ras_relay_report *report);
int overlay_call_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery);
int overlay_call_read(void *ctx, struct ras_transfer_read *read); // ctx: overlay
int overlay_call_receive(struct overlay *overlay, const struct ras_transfer_segment *segment);
void overlay_call_ended(void *ctx, const struct ras_transfer_end *end); // ctx: overlay
void overlay_call_init(struct overlay *overlay);
void overlay_call_fini(struct overlay *overlay);

// note.c: add an event of the agent itself, with a text. Returns 0 or -ENOENT, as ras_add_event().
int overlay_note(struct overlay *overlay, const struct ras_event *note, const char *text);
// Return the text of the event that is being reported; NULL if it has none.
const char *overlay_note_text(const struct overlay *overlay, const struct ras_event *event);
// Store the text of the event that is being reported, if it has one.
void overlay_note_store(struct overlay *overlay, const struct ras_event *event);

// reach.c: asks members whether they reach us. Events start the questions.
void overlay_reach_event(struct overlay *overlay, const struct ras_event *event);
void overlay_reach_stop(struct overlay *overlay);
// Ask soon: the address may be reachable again, or is a new one.
void overlay_reach_ask_again(struct overlay *overlay);
const char *overlay_reach_outcome_word(enum ras_cause cause); // RAS_CAUSE_NONE: reached
// reach_try.c: tries for other nodes. Returns true if the question asked for a try; it gets its
// answer.
#define OVERLAY_REACH_LINE "REACH"
bool overlay_reach_serve(struct overlay *overlay, struct overlay_served *served);
void overlay_reach_stop_serving(struct overlay *overlay);
// Handle ras_ops.who for one of the tries; ctx is the overlay.
void overlay_reach_identified(void *ctx, uint32_t conn, enum ras_cause cause, uint64_t found);

// tcp_reach.c: results of the connections that this node opens.
void overlay_tcp_reach_begin(struct overlay *overlay, uint32_t conn, const struct sock_addr *to);
void overlay_tcp_reach_opened(struct overlay *overlay, uint32_t conn);
void overlay_tcp_reach_ended(struct overlay *overlay, uint32_t conn, enum ras_cause cause);
// Handle transport_ops.kernel_asked; ctx is the overlay.
void overlay_tcp_reach_kernel(void *ctx, const struct sock_addr *to, bool answered);

// mistakes.c: schedule a pass if the event may change its result.
void overlay_mistakes_event(struct overlay *overlay, const struct ras_event *event);
// Schedule a pass over all kinds of mistakes.
void overlay_mistakes_schedule(struct overlay *overlay);
void overlay_mistakes_stop(struct overlay *overlay);
// Write the name of a node, or "another agent" if the node is unknown.
void overlay_node_name(
	const struct overlay *overlay, uint64_t id, char name[static RAS_NAME_MAX + 1]
);
// Write the other address of an event. The port is left out if no agent is known to listen there.
static inline void overlay_other_address_words(
	const struct ras_event *event, char ret_words[static SOCK_ADDR_TEXT_BYTES]
) {
	if (event->other.port != 0)
		sock_addr_format(&event->other, ret_words);
	else
		sock_addr_format_host(&event->other, ret_words);
}

// Describe the two addresses of a CONFLICT event; "" if only one is known.
void overlay_conflict_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
);
// Describe a FORGED event: who sent the notice, and in whose name.
void overlay_forged_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
);
// Describe a KEY_CHANGED or KEY_REFUSED event: both fingerprints.
void overlay_key_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
);
void overlay_stranger_words(
	const struct overlay *overlay,
	uint64_t peer,
	uint64_t found,
	const struct sock_addr *address,
	char ret_words[static STATE_TEXT_BYTES]
);

// shared_addresses.c
void overlay_shared_addresses_find(struct overlay *overlay);
void overlay_shared_addresses_stop(struct overlay *overlay);

// roster.c
void overlay_roster_fini(struct overlay *overlay);

// maintenance.c
// Read the file. Must be called after overlay_remember_start().
int overlay_maintenance_start(struct overlay *overlay);
void overlay_maintenance_event(struct overlay *overlay, const struct ras_event *event);
// Raise the switches of all peers to the stored versions, and store those that are newer.
void overlay_maintenance_exchange(struct overlay *overlay);
// Exchange, and write the file if it has changed.
void overlay_maintenance_end(struct overlay *overlay);
void overlay_maintenance_fini(struct overlay *overlay);
// Store the version of one switch and drop an order of a lower version. Exchange and write soon.
void maintenance_store(struct overlay *overlay, const char *name, uint32_t version);
uint32_t maintenance_version(const struct overlay *overlay, const char *name);
// Schedule an exchange and a write in 0.1 s.
void maintenance_set_timer(struct overlay *overlay);

// maintenance_detail.c: the table of orders, and their JSON in files and messages.
// Return the order for a node, or NULL.
struct maintenance_detail *maintenance_detail_find(struct overlay *overlay, const char *node);
void maintenance_detail_drop(struct overlay *overlay, struct maintenance_detail *detail);
// Make room for an order for a node, so that the insertion finds memory. Returns 0, -ENOSPC or
// -ENOMEM.
int maintenance_detail_reserve(struct overlay *overlay, const char *node);
// Insert the order, unless the table holds it or a newer one. Returns 0, -EALREADY, -ESTALE,
// -ENOSPC or -ENOMEM.
int maintenance_detail_put(struct overlay *overlay, const struct maintenance_detail *detail);
// Return the JSON of an order, or NULL if memory is short.
json_t *maintenance_detail_json(const struct maintenance_detail *detail, uint64_t now_ns);
// Parse the JSON of an order. Returns 0 or -EBADMSG.
int maintenance_detail_parse(
	json_t *object, uint64_t now_ns, struct maintenance_detail *ret_detail
);

// maintenance_send.c: orders from and to other members, and their end.
void overlay_maintenance_notice(void *ctx, uint64_t origin, const void *bytes, size_t size);
int overlay_maintenance_deliver(struct overlay *overlay, const void *bytes, size_t size);
// Notify all members of the orders that are marked as unsent.
void maintenance_send_unsent(struct overlay *overlay);
// Start the timer that ends orders and sends them to new neighbours. `greet`: the present
// neighbours lack the orders as well.
void maintenance_tick_start(struct overlay *overlay, bool greet);

// remember.c
int overlay_remember_start(struct overlay *overlay, const char *cluster, const char *node);
void overlay_remember_event(struct overlay *overlay, const struct ras_event *event);
// Must be called before this node leaves, while the others are still members.
void overlay_remember_end(struct overlay *overlay);
void overlay_remember_fini(struct overlay *overlay);
// Describe a node that is alone.
void overlay_alone_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]);
// Describe a JOIN_DROPPED event. Must be called before overlay_remember_event() handles it.
void overlay_dropped_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
);

// event_log.c: write one log line about an event.
void overlay_log_event(const struct overlay *overlay, const struct ras_event *event);

// incidents.c: log the messages that the relay rejected.
void overlay_incidents_start(struct overlay *overlay);
void overlay_incidents_stop(struct overlay *overlay);
