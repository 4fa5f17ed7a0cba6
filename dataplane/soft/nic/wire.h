// SPDX-License-Identifier: BSD-3-Clause
// A wire: what carries frames between software devices and others that speak RoCEv2.
//
// All calls but wait() are made with the device's lock held, by whoever drives it just then; wait()
// is made by the engine's thread alone, without the lock. A frame begins with its IP header,
// whatever the wire really has in front of the packet.
#pragma once

#include "packet/frame.h"

#include <dataplane/soft.h>

#include <string.h>

#define WIRE_BATCH 32 // frames received at once, or sent

struct wire_frame {
	uint8_t *bytes; // the IP header; may be written to until the next receive()
	uint32_t size;
	bool id_known; // its IP id is as it was sent (frame_check)
};

struct soft_wire;

// What a wire says of the port under it, where it can see one.
enum nic_port {
	NIC_PORT_ACTIVE,
	NIC_PORT_DOWN,
	NIC_PORT_GONE, // for good: the device has to be opened anew
};

struct wire_calls {
	const char *name; // "udp", "dpdk", "memory"
	// Room for one frame of FRAME_BYTES_MAX bytes; NULL: the wire takes none for now, and is
	// asked again at the next turn. At most one is out at a time: give() or take() again.
	uint8_t *(*take)(struct soft_wire *wire);
	// The frame that was taken, sealed, goes to the address in its IP header. A wire may keep
	// it until flush().
	void (*give)(struct soft_wire *wire, uint32_t size);
	void (*flush)(struct soft_wire *wire);
	// Up to max frames, valid until the next call. Those cut or not UDP to our port may be
	// among them: frame_parse() judges. now_ns: of the device's clock.
	uint32_t (*receive
	)(struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns);
	// When the wire itself has something to do next (frames that are delayed); UINT64_MAX:
	// never.
	uint64_t (*due)(const struct soft_wire *wire);
	// Sleeps until a frame may have come, the doorbell can be read, or timeout_ns passed
	// (UINT64_MAX: no limit). May return early. A wire without an interrupt sleeps in growing
	// steps, or has its peers ring.
	void (*wait)(struct soft_wire *wire, int doorbell, uint64_t timeout_ns);
	void (*destroy)(struct soft_wire *wire);
};

// First member of each wire's own struct. Constant once it is made, but for the port.
struct soft_wire {
	const struct wire_calls *calls;
	struct sock_addr address;
	union ibv_gid gid;     // of the address
	uint16_t mtu;	       // of RDMA: 256 to 4096, what fits the interface
	uint16_t source_port;  // what its packets come from; 0: as the route says
	uint32_t window_bytes; // payload that may be on its way here before some is lost
	bool peer_sealed;      // frames never leave this process's memory as they are: no ICRC
			       // needed. False but in benches that ask for it.
	char netdev[16];       // "" if there is none
	enum nic_port port;    // as the latest receive() found it; ACTIVE where none can be seen
};

struct wire_config {
	struct sock_addr address;
	bool address_any;
	const char *args;
	struct soft_counters *counters; // of the device: send_full, send_failed, fault_...
};

// *ret_reason, of SOFT_HOLDER_MAX + 1 bytes, says why in words. -EADDRINUSE (and who holds it),
// -EADDRNOTAVAIL, -ENODEV, -EINVAL, -ENOTSUP, what else the system said.
int wire_udp_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_HOLDER_MAX + 1],
	struct soft_wire **ret_wire
);
int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_HOLDER_MAX + 1],
	struct soft_wire **ret_wire
);
// The arguments and the machine, without attaching the port.
int wire_dpdk_check(const struct wire_config *config, char ret_reason[static SOFT_HOLDER_MAX + 1]);
// Devices of this process reach each other by address; frames to nobody are lost.
int wire_memory_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_HOLDER_MAX + 1],
	struct soft_wire **ret_wire
);

// Takes the inner wire over and does to its frames what the faults say; with none, *ret_wire is
// the inner one itself. The clock is the device's. -ENOMEM, and the inner one is still the
// caller's.
int wire_faults_create(
	struct soft_wire *inner,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock,
	struct soft_wire **ret_wire
);

// Other faults than before, if any. What was held back or delayed goes on its way as it was to.
// -ENOMEM, and *wire is as before.
int wire_faults_change(
	struct soft_wire **wire,
	const struct soft_faults *faults,
	struct soft_counters *counters,
	const struct clock *clock
);

// The GID of an address: IPv4 is mapped.
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
