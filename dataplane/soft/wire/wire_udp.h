// SPDX-License-Identifier: BSD-3-Clause
// The inside of the udp wire: a socket, and slots for one batch in each direction.
#pragma once

#include "nic/nic.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

// A frame in its slot begins after the headroom. One byte more than the longest frame tells those
// that are too long.
#define UDP_FRAME_ROOM (FRAME_BYTES_MAX + 1)
#define UDP_SLOT_BYTES ((size_t)(FRAME_HEADROOM + UDP_FRAME_ROOM + 63) / 64 * 64)

union udp_name {
	struct sockaddr generic;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
};

// Room for one traffic class, aligned as the kernel asks for.
union udp_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

struct udp_wire {
	struct soft_wire wire;
	struct soft_counters *counters;
	int fd;
	bool ip4;
	uint32_t header_bytes; // IP and UDP, which the kernel adds and takes away

	// Run on; [out_head, out_tail) were given, and the kernel has not taken them.
	uint32_t out_head, out_tail;
	struct mmsghdr out[WIRE_BATCH];
	struct iovec out_pieces[WIRE_BATCH];
	union udp_name out_names[WIRE_BATCH];
	union udp_control out_controls[WIRE_BATCH];
	uint8_t *out_slots;
	// The socket is full. Who has the lock: rw; wait(): r. Relaxed: it wakes late at worst, and
	// the next turn tries again whatever woke it.
	_Atomic bool is_full;

	uint32_t in_count; // of the last batch
	uint32_t in_row;   // batches that were not empty
	struct mmsghdr in[WIRE_BATCH];
	struct iovec in_pieces[WIRE_BATCH];
	union udp_name in_names[WIRE_BATCH];
	uint8_t *in_slots;
};

extern const struct wire_calls udp_wire_calls; // wire_udp.c
