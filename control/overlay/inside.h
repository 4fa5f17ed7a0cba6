// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: what this node's overlay is made of.
#pragma once

#include <control/loop.h>
#include <control/member_list.h>
#include <control/overlay.h>
#include <control/state.h>
#include <control/transport.h>
#include <ras/transfer.h>

// Relay ports of the agent's own.
#define OVERLAY_PORT_PING RAS_RELAY_PORT_MIN
#define OVERLAY_PORT_QUESTION (RAS_RELAY_PORT_MIN + 1) // a line for the client protocol
#define OVERLAY_PORT_ANSWER (RAS_RELAY_PORT_MIN + 2)   // of transfers
#define OVERLAY_LINE_BYTES 2048

// The collective of one kind that is on its way, who waits for it, and the answer while it is
// fresh.
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

// A question of another node, and as much of our answer as there is.
struct overlay_served {
	struct overlay *overlay;
	struct overlay_served *next;
	uint64_t source;
	uint64_t tag;
	uint64_t life_ns;
	uint64_t transfer; // 0 until the answer is on its way
	bool begun;	   // the server was given it
	bool complete;
	bool due; // to be sent now
	uint8_t *bytes;
	size_t used, capacity;
	size_t line_size;
	char line[OVERLAY_LINE_BYTES + 1];
};

#define OVERLAY_REACH_ASKED 2	// in one round
#define OVERLAY_REACH_TRIES 8	// for others, at once
#define OVERLAY_REACH_ASKERS 64 // remembered; who asked longest ago makes room
#define OVERLAY_REACH_ANSWER_BYTES 256
#define OVERLAY_REACH_WORDS_BYTES 160 // they and an address are the words of an event

// Our question to others, one at a time.
struct overlay_reach_ask {
	struct loop_timer due;
	struct overlay_call call;
	bool asking;
	bool alone; // nobody was there to be asked
	bool lost;  // the machine has the address no more: that is known without asking
	uint64_t pause_ns;
	uint64_t asked[OVERLAY_REACH_ASKED];
	uint64_t failed[OVERLAY_REACH_ASKED]; // of these, those who did not reach us
	enum ras_cause cause;		      // of the first of them
	uint32_t asked_count, failed_count;
	char answer[OVERLAY_REACH_ANSWER_BYTES];
	size_t answer_size;
	char words[OVERLAY_REACH_WORDS_BYTES];
};

// What we try for another node.
struct overlay_reach_try {
	struct overlay *overlay;
	struct overlay_served *served; // NULL: not in use
	struct sock_addr from, to;
	uint32_t conn;
	struct loop_timer deadline;
	struct loop_job done;
	enum ras_cause cause;	      // how it ended
	char found[RAS_NAME_MAX + 1]; // who answered instead, "" if that is not known
};

struct overlay_reach_asker {
	uint64_t id;
	uint64_t again_ns; // not before
};

struct overlay_text {
	uint64_t sequence;
	char text[STATE_TEXT_BYTES];
};

// Of an address that was connected to from here.
struct overlay_tcp_found {
	struct sock_addr to; // NONE: not in use
	uint32_t conn;	     // under way, if it is
	bool under_way;
	struct overlay_tcp_reach last;
};
#define OVERLAY_TCP_FOUND_MAX 256 // a later one may take the place of an earlier one

// So many live agents of one host identity, each of another boot; two of them.
struct overlay_clones {
	uint64_t host_name_id;
	uint64_t ids[2];
	uint32_t count;
};
#define OVERLAY_CLONES 4

// An IP address that this machine has and a peer on another one tells.
struct overlay_shared_address {
	uint64_t peer;
	struct sock_addr address; // without a port
};
#define OVERLAY_SHARED_ADDRESSES 16   // told at once
#define OVERLAY_MISTAKES_STRANGERS 64 // more than the core keeps

struct overlay_notice_consumer {
	uint32_t kind;
	overlay_notice_fn *fn; // NULL: nobody
	void *ctx;
};
#define OVERLAY_NOTICE_CONSUMERS 4

// Whom this node remembers over a restart.
struct overlay_remember {
	struct member_list list;
	char *cluster; // that it is of
	char node[RAS_NAME_MAX + 1];
	struct loop_timer due;
	uint64_t started_ns;
	uint64_t due_ns;	       // 0: not set
	uint64_t looked_ns;	       // 0: not in this run
	uint64_t written_ns;	       // 0: not in this run
	uint64_t written_digest;       // of what is on the disk
	struct sock_addr name_held_at; // who told that another agent has our name; NONE: nobody
};

struct overlay {
	struct loop *loop;
	struct ras_memory memory;
	struct ras_interner *interner;
	struct ras *ras;
	struct transport *transport;
	struct state *state; // NULL: none
	bool started;
	struct loop_timer wake;
	// Tells the core what time of day it is.
	struct loop_timer wall;
	struct loop_job keep_start; // what the join taught us
	struct loop_timer incidents;
	uint64_t incidents_told[RAS_RELAY_REASON_COUNT];
	struct overlay_listener *listeners;
	const char *text;			  // of the note that is being told; NULL: none
	enum ras_event_kind text_kind;		  // that it is of
	struct overlay_text texts[OVERLAY_TEXTS]; // a ring
	uint32_t text_next;
	char own_mistakes[OVERLAY_OWN_COUNT][STATE_TEXT_BYTES];
	char join_names[STATE_TEXT_BYTES]; // what is wrong with those to join through

	struct overlay_reach reach;
	struct overlay_reach_ask reach_ask;
	struct overlay_reach_try reach_tries[OVERLAY_REACH_TRIES];
	struct overlay_reach_asker reach_askers[OVERLAY_REACH_ASKERS];
	struct hostlist *roster; // NULL: nobody in particular is expected
	struct overlay_remember remember;

	struct overlay_clones clones[OVERLAY_CLONES];
	uint32_t clones_count;
	uint64_t beside_first; // a live member that the roster does not have, the first by name
	uint32_t beside_count; // of them
	bool clones_due;
	struct loop_timer clones_look;

	struct sock_addr *own_addresses; // of this machine, without ports, in order
	size_t own_address_count;
	struct overlay_shared_address shared_addresses[OVERLAY_SHARED_ADDRESSES];
	uint32_t shared_address_count;
	bool shared_addresses_due;
	struct loop_timer shared_addresses_timer;

	struct overlay_tcp_found tcp_found[OVERLAY_TCP_FOUND_MAX];
	struct overlay_notice_consumer notices[OVERLAY_NOTICE_CONSUMERS];

	struct overlay_ask asks[RAS_COLLECT_KIND_END];
	struct overlay_contributor contributors[RAS_COLLECT_KIND_END];
	struct loop_job share; // hands recent answers to those who asked just now
	struct overlay_ping *pings;
	struct overlay_port *ports;

	uint64_t tags;
	struct overlay_call *calls;
	struct overlay_served *served;
	uint32_t served_count;
	size_t served_bytes;
	overlay_serve_fn *serve;
	void *serve_ctx;
	struct loop_job finish; // tells who waits, and serves what came

	void (*left)(void *ctx);
	void *left_ctx;
	struct loop_timer leave_end;
	uint64_t close_ns;
	uint64_t leave_by_ns;
};

// The clock of every input to the core: it moves within a turn, and never back.
uint64_t overlay_clock_ns(struct overlay *overlay);

// ask.c
void overlay_collected(struct overlay *overlay, const struct ras_collective_result *result);
bool overlay_contribute(
	struct overlay *overlay, const struct ras_contribution *wanted, struct wire_writer *writer
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

// call.c: what the core's operations on these ports and transfers come to.
bool overlay_call_report(struct overlay *overlay, const struct ras_relay_report *report);
int overlay_call_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery);
int overlay_call_read(struct overlay *overlay, struct ras_transfer_read *read);
int overlay_call_take(struct overlay *overlay, const struct ras_transfer_segment *segment);
void overlay_call_ended(struct overlay *overlay, const struct ras_transfer_end *end);
void overlay_call_init(struct overlay *overlay);
void overlay_call_fini(struct overlay *overlay);

// note.c: events of the agent's own, told in words as well. 0 or -ENOENT, as ras_note().
int overlay_note(struct overlay *overlay, const struct ras_event *note, const char *text);
// What is said of the event that is being told; NULL: nothing.
const char *overlay_note_text(const struct overlay *overlay, const struct ras_event *event);
// The event that is being told is remembered with its text, if it has one.
void overlay_note_keep(struct overlay *overlay, const struct ras_event *event);

// reach.c: asks. The events tell when.
void overlay_reach_event(struct overlay *overlay, const struct ras_event *event);
void overlay_reach_stop(struct overlay *overlay);
// The address may be reached again, or is another one: asks soon.
void overlay_reach_again(struct overlay *overlay);
const char *overlay_reach_word(enum ras_cause cause); // NONE: reached
// reach_try.c: tries for others. True: the question was this one, and will be answered.
#define OVERLAY_REACH_LINE "REACH"
bool overlay_reach_serve(struct overlay *overlay, struct overlay_served *served);
void overlay_reach_serve_stop(struct overlay *overlay);
// As ras_ops.who, for one of its tries.
void overlay_reach_who(
	struct overlay *overlay, uint32_t conn, enum ras_cause cause, uint64_t found
);

// tcp_reach.c: what connections that we begin come to.
void overlay_tcp_reach_begin(struct overlay *overlay, uint32_t conn, const struct sock_addr *to);
void overlay_tcp_reach_opened(struct overlay *overlay, uint32_t conn);
void overlay_tcp_reach_ended(struct overlay *overlay, uint32_t conn, enum ras_cause cause);
void overlay_tcp_reach_kernel(struct overlay *overlay, const struct sock_addr *to, bool answered);

// mistakes.c: the events tell when to look.
void overlay_mistakes_event(struct overlay *overlay, const struct ras_event *event);
// They are looked for in a moment.
void overlay_mistakes_again(struct overlay *overlay);
void overlay_mistakes_stop(struct overlay *overlay);
// "another agent" where it is not known.
void overlay_name_of(
	const struct overlay *overlay, uint64_t id, char name[static RAS_NAME_MAX + 1]
);
// Where another one is, of an event; without a port where nobody is known to listen on one.
static inline void
overlay_other_words(const struct ras_event *event, char ret_words[static SOCK_ADDR_TEXT_BYTES]) {
	if (event->other.port != 0)
		sock_addr_format(&event->other, ret_words);
	else
		sock_addr_format_host(&event->other, ret_words);
}

// Of a CONFLICT: where the two are; "" where only one is known.
void overlay_conflict_words(
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
void overlay_shared_addresses_look(struct overlay *overlay);
void overlay_shared_addresses_stop(struct overlay *overlay);

// roster.c
void overlay_roster_fini(struct overlay *overlay);

// remember.c
int overlay_remember_start(struct overlay *overlay, const char *cluster, const char *node);
void overlay_remember_event(struct overlay *overlay, const struct ras_event *event);
// Before this node leaves: the others are members until then.
void overlay_remember_end(struct overlay *overlay);
void overlay_remember_fini(struct overlay *overlay);
// Of one that is alone.
void overlay_alone_words(const struct overlay *overlay, char ret_words[static STATE_TEXT_BYTES]);
// Of a JOIN_DROPPED, before it is taken notice of.
void overlay_dropped_words(
	const struct overlay *overlay,
	const struct ras_event *event,
	char ret_words[static STATE_TEXT_BYTES]
);

// event_log.c: one line of the log about an event.
void overlay_log_event(const struct overlay *overlay, const struct ras_event *event);

// incidents.c: what the relay refused, in the log.
void overlay_incidents_start(struct overlay *overlay);
void overlay_incidents_stop(struct overlay *overlay);
