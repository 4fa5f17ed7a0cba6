// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: what this node's overlay is made of.
#pragma once

#include <control/loop.h>
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
	struct hostlist *roster; // NULL: nobody in particular is expected

	struct overlay_ask asks[RAS_COLLECT_KIND_END];
	struct overlay_contributor contributors[RAS_COLLECT_KIND_END];
	struct loop_job share; // hands recent answers to those who asked just now
	struct overlay_ping *pings;

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

// call.c: what the core's operations on these ports and transfers come to.
bool overlay_call_report(struct overlay *overlay, const struct ras_relay_report *report);
int overlay_call_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery);
int overlay_call_read(struct overlay *overlay, struct ras_transfer_read *read);
int overlay_call_take(struct overlay *overlay, const struct ras_transfer_segment *segment);
void overlay_call_ended(struct overlay *overlay, const struct ras_transfer_end *end);
void overlay_call_init(struct overlay *overlay);
void overlay_call_fini(struct overlay *overlay);

// roster.c
void overlay_roster_fini(struct overlay *overlay);

// tell.c: one line of the log about an event.
void overlay_tell(const struct overlay *overlay, const struct ras_event *event);

// incidents.c: what the relay refused, in the log.
void overlay_incidents_start(struct overlay *overlay);
void overlay_incidents_stop(struct overlay *overlay);
