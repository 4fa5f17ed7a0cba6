// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: what this node's overlay is made of.
#pragma once

#include <control/loop.h>
#include <control/overlay.h>
#include <control/state.h>
#include <control/transport.h>

// Relay ports of the agent's own.
#define OVERLAY_PORT_PING RAS_RELAY_PORT_MIN
#define OVERLAY_PORT_QUESTION (RAS_RELAY_PORT_MIN + 1) // a line for the client protocol

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

struct overlay {
	struct loop *loop;
	struct ras_memory memory;
	struct ras_interner *interner;
	struct ras *ras;
	struct transport *transport;
	struct state *state; // NULL: none
	bool started;
	struct loop_timer wake;
	struct loop_job keep_start; // what the join taught us
	struct overlay_listener *listeners;

	struct overlay_ask asks[RAS_COLLECT_KIND_END];
	struct overlay_contributor contributors[RAS_COLLECT_KIND_END];
	struct loop_job share; // hands recent answers to those who asked just now
	struct overlay_ping *pings;

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
