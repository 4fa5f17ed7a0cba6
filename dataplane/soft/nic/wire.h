// SPDX-License-Identifier: BSD-3-Clause
// A wire carries frames between software devices and other RoCEv2 devices.
//
// All calls except wait() are made with the device's lock, by the thread that drives the device.
// Only the engine's thread calls wait(), without the lock. A frame begins with its IP header, even
// if the wire has other bytes in front of it.
#pragma once

#include "packet/frame.h"

#include <dataplane/soft.h>

#include <string.h>

#define WIRE_BATCH 32 // frames received or sent at once

struct wire_frame {
	uint8_t *bytes; // IP header; writable until the next receive()
	uint32_t size;
	bool id_known; // the IP id is as sent (see frame_check_icrc())
};

struct soft_wire;

// State of the port under a wire, if the wire can see one.
enum nic_port {
	NIC_PORT_ACTIVE,
	NIC_PORT_DOWN,
	NIC_PORT_GONE, // final: the device must be opened again
};

struct wire_calls {
	const char *name; // "udp", "dpdk", "memory"
	// Return room for one frame of FRAME_BYTES_MAX bytes. NULL: the wire is full and is asked
	// again in the next turn. At most one frame is taken at a time; give() it or take() it
	// again.
	uint8_t *(*take)(struct soft_wire *wire);
	// Send the taken and sealed frame to the address in its IP header. A wire may keep it until
	// flush().
	void (*give)(struct soft_wire *wire, uint32_t size);
	void (*flush)(struct soft_wire *wire);
	// Receive up to max frames, valid until the next call. Truncated frames and foreign packets
	// may be among them; frame_parse() rejects these. now_ns: on the device's clock.
	uint32_t (*receive
	)(struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns);
	// Return the time of the wire's next own action (delayed frames); UINT64_MAX: never.
	uint64_t (*due)(const struct soft_wire *wire);
	// Sleep until a frame may have come, the doorbell is readable, or timeout_ns has passed
	// (UINT64_MAX: no limit). May return early. A wire without interrupts sleeps in growing
	// steps, unless its peers can wake it through a socket.
	void (*wait)(struct soft_wire *wire, int doorbell, uint64_t timeout_ns);
	void (*destroy)(struct soft_wire *wire);
};

// First member of each wire's own struct. Constant after creation, except the port.
struct soft_wire {
	const struct wire_calls *calls;
	struct sock_addr address;
	union ibv_gid gid;    // GID of the address
	uint16_t mtu;	      // RDMA MTU, 256 to 4096 bytes, limited by the interface
	uint16_t source_port; // UDP source port of its packets; 0: taken from the route
	// Payload that may be in flight to this device before packets are lost
	uint32_t window_bytes;
	// Frames never leave this process's memory, so they need no ICRC; true only in benchmarks
	// that ask for it
	bool peer_sealed;
	char netdev[16]; // "": none
	// State found by the latest receive(); ACTIVE if the wire cannot see one
	enum nic_port port;
};

struct wire_config {
	struct sock_addr address;
	bool address_any;
	const char *args;
	struct soft_counters *counters; // counters of the device: send_full, send_failed, fault_...
};

// Create a wire. *ret_reason explains each error as text. Returns -EADDRINUSE (the reason names the
// holder), -EADDRNOTAVAIL, -ENODEV, -EINVAL, -ENOTSUP, or another system error.
int wire_udp_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
);
int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
);
// Check the arguments and the machine without attaching the port.
int wire_dpdk_check(const struct wire_config *config, char ret_reason[static SOFT_REASON_MAX + 1]);
// Devices of this process reach each other by address; frames to unknown addresses are lost.
int wire_memory_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
);

// Wrap the inner wire and apply faults to its frames; without faults *ret_wire is the inner wire
// itself. The clock is the device's. Returns -ENOMEM; then the caller still owns the inner wire.
int wire_faults_create(
	struct soft_wire *inner,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock,
	struct soft_wire **ret_wire
);

// Replace the faults. Frames already held back or delayed are sent as planned. Returns -ENOMEM;
// then *wire is unchanged.
int wire_faults_change(
	struct soft_wire **wire,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock
);

// Return the GID of an address; IPv4 is mapped.
static inline union ibv_gid wire_gid(const struct sock_addr *address) {
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (address->family == SOCK_ADDR_V4)
		memcpy(gid.raw + 12, address->address, 4);
	else
		memcpy(gid.raw, address->address, sizeof(gid.raw));
	return gid;
}

static inline struct soft_wire *wire_destroy(struct soft_wire *wire) {
	if (wire != NULL)
		wire->calls->destroy(wire);
	return NULL;
}
