// SPDX-License-Identifier: BSD-3-Clause
// Sleeping of the DPDK wire's engine, whose ports have no interrupts.
//
// af_packet: a separate packet socket on the same interface is the doorbell. Its filter passes only
// packets for this wire. Its buffer has the minimum size and is full after two or three packets. It
// stays full while the wire is polled, which costs the kernel almost nothing per packet. Only an
// engine that goes to sleep drains it. (Changing the filter instead may take the kernel 20 ms.)
//
// memif: the two processes ring each other by a datagram socket with an abstract name. An end that
// goes to sleep sends a small frame with the number of frames it has received. The other end rings
// once with its next frame, or at once if frames are still in flight. A peer that never answers
// such frames (another program's memif) is polled in growing steps up to 1 ms.
//
// Other ports: growing steps.
//
// The engine thread calls dpdk_sleep_wait() without the device's lock. All other calls hold the
// lock.
#pragma once

#include "wire/link.h"
#include "wire/wire_dpdk_args.h"

#include <stdatomic.h>

#define SLEEP_TYPE 0x88b5 // Ethernet type for local experiments
#define SLEEP_FRAME_BYTES 60

struct dpdk_sleep {
	enum dpdk_kind kind;
	// Packet socket, or own end of the memif pair; -1: none, use growing steps
	int doorbell;
	// memif: connected to the peer's socket; the doorbell is not, because the peer may change
	int ringer;
	uint32_t step_ns; // used by the engine
	// Frames came since the engine's latest check: written with the lock, read and written by
	// the engine
	_Atomic bool came;

	// For memif.
	_Atomic bool link; // written with the lock, read by the engine
	// The engine wants to sleep: written by the engine, read and written with the lock
	_Atomic bool wanted;
	// The peer was notified and has not rung since: written with the lock, read and written by
	// the engine
	_Atomic bool armed;
	_Atomic bool peer_can_ring; // the peer can ring: written with the lock, read by the engine
	char peer_name[64];
	bool peer_connected;
	bool peer_sleeps;
	bool peer_confirmed_all; // the peer confirmed all frames, after dpdk_sleep_compose_leave()
	uint32_t sent, got, rung_at; // frames, except those of this protocol
};

// Initialise; never fails: without a doorbell it sleeps in steps.
void dpdk_sleep_init(
	struct dpdk_sleep *sleep, const struct dpdk_args *args, const union ibv_gid *gid
);
void dpdk_sleep_fini(struct dpdk_sleep *sleep);
// Implement wire_calls.wait().
void dpdk_sleep_wait(struct dpdk_sleep *sleep, int doorbell, uint64_t timeout_ns);

// Call before a burst is received. Returns true if ret_frame must be sent first.
bool dpdk_sleep_compose_notice(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
// Record that the frame of dpdk_sleep_compose_notice() was sent.
void dpdk_sleep_record_notice_sent(struct dpdk_sleep *sleep);
// Handle a frame of type SLEEP_TYPE, behind its Ethernet header. Returns true if ret_frame must be
// sent as an answer.
bool dpdk_sleep_handle_frame(
	struct dpdk_sleep *sleep,
	const uint8_t *bytes,
	size_t size,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
// Prepare to close a memif, whose memory disappears with it. Returns true if ret_frame must be
// sent. It asks the peer to confirm all frames (->peer_confirmed_all); the peer may have to be
// rung.
bool dpdk_sleep_compose_leave(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
);
void dpdk_sleep_ring_peer(struct dpdk_sleep *sleep);
// Count other frames received and sent.
void dpdk_sleep_count_received(struct dpdk_sleep *sleep, uint32_t count);
void dpdk_sleep_count_sent(struct dpdk_sleep *sleep, uint32_t count);
// Report a change of the memif's link: all knowledge about the peer is void.
void dpdk_sleep_set_link(struct dpdk_sleep *sleep, bool up);
