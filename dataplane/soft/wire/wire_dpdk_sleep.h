// SPDX-License-Identifier: BSD-3-Clause
// How the dpdk wire's engine sleeps, since the ports it drives have no interrupt.
//
// af_packet: a packet socket of our own on the same interface is the doorbell, with a filter that
// lets through what is for us. Its buffer is the smallest there is: two or three packets fill it,
// and while somebody polls it stays full, which costs the kernel next to nothing for each packet.
// Only who goes to sleep empties it. (To change the filter instead may take the kernel 20 ms.)
//
// memif: the two processes ring each other by a datagram socket with an abstract name. Who goes to
// sleep says so by a small frame with the number of frames it has had so far; the other one rings
// once with the next frame it sends, or at once if some are still on their way. A peer that never
// answered such a frame (another program's memif) is looked after in growing steps up to 1 ms.
//
// Others: growing steps.
//
// dpdk_sleep_wait() is the engine thread's, without the device's lock. All else is called with it.
#pragma once

#include "wire/link.h"
#include "wire/wire_dpdk_args.h"

#include <stdatomic.h>

#define SLEEP_TYPE 0x88b5 // Ethernet, for local experiments
#define SLEEP_FRAME_BYTES 60

struct dpdk_sleep {
	enum dpdk_kind kind;
	int doorbell;	   // the packet socket or ours of the pair; -1: none, growing steps
	int ringer;	   // memif: connected to the peer's; ours is not, for the peer may change
	uint32_t step_ns;  // engine's
	_Atomic bool came; // frames came since the engine looked: locked w, engine rw

	// memif.
	_Atomic bool link;    // locked: w, engine: r
	_Atomic bool wanted;  // the engine wants to sleep: engine w, locked rw
	_Atomic bool armed;   // the peer has heard it and has not rung since: locked w, engine rw
	_Atomic bool rung_by; // the peer can ring: locked w, engine r
	char peer_name[64];
	bool peer_connected;
	bool peer_sleeps;
	bool peer_had;		     // its answer to dpdk_sleep_leave()
	uint32_t sent, got, rung_at; // frames, but those of this protocol
};

// Never fails: without a doorbell it sleeps in steps.
void dpdk_sleep_init(
	struct dpdk_sleep *sleep, const struct dpdk_args *args, const union ibv_gid *gid
);
void dpdk_sleep_fini(struct dpdk_sleep *sleep);
// As wire_calls.wait().
void dpdk_sleep_wait(struct dpdk_sleep *sleep, int doorbell, uint64_t timeout_ns);

// Before a burst is received; true: a frame is to be sent first, which is in ret_frame.
bool dpdk_sleep_say(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
// That frame could be sent.
void dpdk_sleep_said(struct dpdk_sleep *sleep);
// A frame of type SLEEP_TYPE, behind its Ethernet header. True: one is to be answered, ret_frame.
bool dpdk_sleep_hear(
	struct dpdk_sleep *sleep,
	const uint8_t *bytes,
	size_t size,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
// The memif is about to be closed, and its memory with it: true if a peer may say, asked
// by ret_frame, that it has had what was sent before (->peer_had). It may have to be rung.
bool dpdk_sleep_leave(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
void dpdk_sleep_ring(struct dpdk_sleep *sleep);
// What else came and went.
void dpdk_sleep_received(struct dpdk_sleep *sleep, uint32_t count);
void dpdk_sleep_sent(struct dpdk_sleep *sleep, uint32_t count);
// The memif's link came up, or went: what was known of the peer is void.
void dpdk_sleep_link(struct dpdk_sleep *sleep, bool up);
