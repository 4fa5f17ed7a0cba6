// SPDX-License-Identifier: BSD-3-Clause
// The inside of the UDP wire: a socket, and slots for one batch in each direction.
#pragma once

#include "nic/nic.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

// A frame begins after the headroom of its slot. One extra byte detects frames that are too long.
#define UDP_FRAME_ROOM (FRAME_BYTES_MAX + 1)
#define UDP_SLOT_BYTES ((size_t)(FRAME_HEADROOM + UDP_FRAME_ROOM + 63) / 64 * 64)

union udp_name {
	struct sockaddr generic;
	struct sockaddr_in ip4;
	struct sockaddr_in6 ip6;
};

// Room for one traffic class, aligned for the kernel.
union udp_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

struct udp_wire {
	struct soft_wire wire;
	struct soft_counters *counters;
	int fd;
	bool ip4;
	uint32_t header_bytes; // IP and UDP headers, which the kernel adds and removes

	// Free-running; frames [out_head, out_tail) were given to the wire but not yet to the
	// kernel.
	uint32_t out_head, out_tail;
	struct mmsghdr out[WIRE_BATCH];
	struct iovec out_pieces[WIRE_BATCH];
	union udp_name out_names[WIRE_BATCH];
	union udp_control out_controls[WIRE_BATCH];
	uint8_t *out_slots;
	// The socket is full. Read and written with the lock, read by wait(). Relaxed: at worst
	// wait() wakes late, and each turn tries again anyway.
	_Atomic bool is_full;

	uint32_t in_count; // frames of the last batch
	uint32_t in_row;   // consecutive non-empty batches
	struct mmsghdr in[WIRE_BATCH];
	struct iovec in_pieces[WIRE_BATCH];
	union udp_name in_names[WIRE_BATCH];
	uint8_t *in_slots;
};

extern const struct wire_calls udp_wire_calls; // wire_udp.c
