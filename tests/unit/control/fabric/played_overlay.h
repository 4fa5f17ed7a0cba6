// SPDX-License-Identifier: BSD-3-Clause
// Fake overlay for the fabric: the test sets which agents know each other and when messages are
// delivered. One thread.
#pragma once

#include <control/overlay.h>
#include <ras/ras.h>

#define PLAYED_MAX 7
#define PLAYED_DEVICES_MAX 16
#define PLAYED_PORTS_MAX 2

// Fake of the overlay of <control/overlay.h>.
struct overlay {
	uint64_t incarnation;
	struct ras_record *record;
	enum ras_state states[PLAYED_MAX]; // of the other agents, as this one sees them
	bool links[PLAYED_MAX];
	struct overlay_listener *listener;
	struct overlay_port *ports[PLAYED_PORTS_MAX];
	bool knows_no_rails;		   // an agent of an older version
	overlay_contribute_fn *contribute; // callback for CONNS
	void *contribute_ctx;
	overlay_contribute_fn *contribute_paths;
	void *contribute_paths_ctx;
	// Result of its TCP connections to the others.
	struct overlay_tcp_reach tcp_found[PLAYED_MAX];
	uint32_t proofs[PLAYED_MAX], doubts[PLAYED_MAX]; // evidence given, by subject
	bool deaf;					 // messages to it are not delivered
	uint32_t notes; // number of events about devices; the last one
	uint64_t note_of;
	char note[128];
};

struct played {
	struct overlay agents[PLAYED_MAX];
	uint32_t count;
	struct ras_interner *interner;
	enum ras_cause cause; // of deaths
	int64_t realtime_ns;  // wall-clock time at loop time 0
};

extern struct played played;

// Create agents n0, n1, ... that are alive and have no links. With `devices` devices each: rdma0
// and rdma1 belong to n0, rdma2 and rdma3 to n1, further ones are rdma0_2, rdma0_3 and rdma1_2,
// rdma1_3.
void played_begin(uint32_t agents, uint32_t devices);
// All subscribers must be gone.
void played_end(void);

void played_device_name(uint32_t agent, uint32_t device, char name[static 16]);
// Set the number of devices in the agent's record; must precede its start.
void played_has_devices(uint32_t agent, uint32_t devices);
uint64_t played_id(uint32_t agent);
void played_link(uint32_t a, uint32_t b, bool linked);
// Set how `observer` sees `agent` from now on, and notify it by an event.
void played_say(uint32_t observer, uint32_t agent, enum ras_state state);

// Deliver all messages sent so far.
void played_deliver(void);
bool played_is_silent(void);
