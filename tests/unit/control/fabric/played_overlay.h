// SPDX-License-Identifier: BSD-3-Clause
// The overlay as the fabric sees it, played: agents that know each other as the test says, and
// messages that are delivered when the test asks for it. One thread.
#pragma once

#include <control/overlay.h>
#include <ras/ras.h>

#define PLAYED_MAX 7
#define PLAYED_DEVICES_MAX 16
#define PLAYED_PORTS_MAX 2

// What <control/overlay.h> calls an overlay is this.
struct overlay {
	uint64_t incarnation;
	struct ras_record *record;
	enum ras_state states[PLAYED_MAX]; // of the others, as this one sees them
	bool links[PLAYED_MAX];
	struct overlay_listener *listener;
	struct overlay_port *ports[PLAYED_PORTS_MAX];
	bool knows_no_rails;		   // an agent of before
	overlay_contribute_fn *contribute; // CONNS
	void *contribute_ctx;
	overlay_contribute_fn *contribute_paths;
	void *contribute_paths_ctx;
	struct overlay_tcp_reach tcp_found[PLAYED_MAX];	 // what it finds at the others' doors
	uint32_t proofs[PLAYED_MAX], doubts[PLAYED_MAX]; // evidence given, by whom it is about
	bool deaf;					 // messages to it are not delivered
	uint32_t notes;					 // events about devices, and the last
	uint64_t note_of;
	char note[128];
};

struct played {
	struct overlay agents[PLAYED_MAX];
	uint32_t count;
	struct ras_interner *interner;
	enum ras_cause cause; // of deaths
	int64_t realtime_ns;  // of the loop's time 0
};

extern struct played played;

// Agents n0, n1, ... that are alive and have no links, with so many devices: rdma0 and rdma1 are
// n0's, rdma2 and rdma3 n1's, more of them rdma0_2, rdma0_3 and rdma1_2, rdma1_3.
void played_begin(uint32_t agents, uint32_t devices);
// Nothing may listen any more.
void played_end(void);

void played_device_name(uint32_t agent, uint32_t device, char name[static 16]);
// Before its start: what its record says of its devices is that it has so many of them.
void played_has_devices(uint32_t agent, uint32_t devices);
uint64_t played_id(uint32_t agent);
void played_link(uint32_t a, uint32_t b, bool linked);
// How `observer` sees `agent` from now on; it is told so by an event.
void played_say(uint32_t observer, uint32_t agent, enum ras_state state);

// All messages sent so far.
void played_deliver(void);
bool played_is_silent(void);
