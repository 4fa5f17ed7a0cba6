// SPDX-License-Identifier: BSD-3-Clause
// The UDP wire: sends and receives batches.
//
// The kernel adds and removes IP and UDP headers. The IP id is 0, because the socket is unconnected
// and sets DF. For a received packet the headers are rebuilt from the sender's address, with id 0.
// They are then as the sender had them when it computed the ICRC.
#include "wire/wire_udp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IP4_TO_OFFSET 16
#define IP6_TO_OFFSET 24
#define SECOND_NS UINT64_C(1000000000)
// Pending ICMP errors make unrelated calls fail, once per error.
#define ERRORS_MAX 8

static struct udp_wire *udp_of(struct soft_wire *wire) {
	return (struct udp_wire *)wire;
}

static uint8_t *udp_out_frame_slot(const struct udp_wire *udp, uint32_t index) {
	return udp->out_slots + (size_t)(index % WIRE_BATCH) * UDP_SLOT_BYTES + FRAME_HEADROOM;
}

static void udp_give(struct soft_wire *wire, uint32_t size) {
	struct udp_wire *udp = udp_of(wire);
	uint32_t place = udp->out_tail % WIRE_BATCH;
	const uint8_t *frame = udp_out_frame_slot(udp, place);
	struct msghdr *message = &udp->out[place].msg_hdr;
	union udp_name *name = &udp->out_names[place];
	uint8_t traffic_class;

	if (frame[0] >> 4 != (udp->ip4 ? 4 : 6)) { // this socket cannot reach the address
		counter_add(&udp->counters->send_failed, 1);
		return;
	}
	if (udp->ip4) {
		memcpy(&name->ip4.sin_addr, frame + IP4_TO_OFFSET, sizeof(name->ip4.sin_addr));
		traffic_class = frame[1];
	} else {
		memcpy(&name->ip6.sin6_addr, frame + IP6_TO_OFFSET, sizeof(name->ip6.sin6_addr));
		traffic_class = (uint8_t)(frame[0] << 4 | frame[1] >> 4);
	}
	message->msg_controllen = 0;
	if (traffic_class != 0) {
		struct cmsghdr *control = message->msg_control;
		const int value = traffic_class;

		control->cmsg_level = udp->ip4 ? IPPROTO_IP : IPPROTO_IPV6;
		control->cmsg_type = udp->ip4 ? IP_TOS : IPV6_TCLASS;
		control->cmsg_len = CMSG_LEN(sizeof(value));
		memcpy(CMSG_DATA(control), &value, sizeof(value));
		message->msg_controllen = CMSG_SPACE(sizeof(value));
	}
	udp->out_pieces[place].iov_len = size - udp->header_bytes;
	udp->out_tail++;
}

// Handle a send error for the oldest packet. Returns true if sending may continue.
static bool handle_send_error(struct udp_wire *udp) {
	switch (errno) {
	case EAGAIN:
		// The socket gets room when packets leave it; this wakes wait().
		counter_add(&udp->counters->send_full, 1);
		atomic_store_explicit(&udp->is_full, true, memory_order_relaxed);
		return false;
	case EINTR:
		return true;
	case ENOBUFS:
	// Nothing wakes wait() for these errors, so drop the packet as a network queue would
	case ENOMEM:
		counter_add(&udp->counters->send_full, 1);
		break;
	default:
		counter_add(&udp->counters->send_failed, 1);
		break;
	}
	udp->out_head++;
	return true;
}

static void udp_flush(struct soft_wire *wire) {
	struct udp_wire *udp = udp_of(wire);
	const struct msghdr *message;
	uint32_t place, count;
	ssize_t sent;

	while (udp->out_head != udp->out_tail) {
		place = udp->out_head % WIRE_BATCH;
		count = udp->out_tail - udp->out_head;
		if (count > WIRE_BATCH - place)
			count = WIRE_BATCH - place;
		message = &udp->out[place].msg_hdr;
		if (count > 1 || message->msg_controllen > 0) {
			sent = sendmmsg(
				udp->fd, &udp->out[place], count, MSG_DONTWAIT | MSG_NOSIGNAL
			);
		} else {
			// A single packet is cheaper with sendto(), which returns its bytes.
			sent =
				sendto(udp->fd, message->msg_iov->iov_base,
				       message->msg_iov->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL,
				       &udp->out_names[place].generic, message->msg_namelen);
			sent = sent < 0 ? -1 : 1;
		}
		if (sent > 0)
			udp->out_head += (uint32_t)sent;
		else if (!handle_send_error(udp))
			return;
	}
	// Restart at the first slots, which are in the cache.
	udp->out_head = udp->out_tail = 0;
	atomic_store_explicit(&udp->is_full, false, memory_order_relaxed);
}

static uint8_t *udp_take(struct soft_wire *wire) {
	struct udp_wire *udp = udp_of(wire);

	if (udp->out_tail - udp->out_head == WIRE_BATCH)
		udp_flush(wire);
	if (udp->out_tail - udp->out_head == WIRE_BATCH)
		return NULL;
	return udp_out_frame_slot(udp, udp->out_tail);
}

// Receive packets. Returns their number, or -1. A batch is tried only after two successful calls in
// a row: receiving a single packet costs a third less, found or not.
static int receive_packets(struct udp_wire *udp, uint32_t max) {
	socklen_t length = sizeof(union udp_name);
	ssize_t size;

	if (udp->in_row > 1) {
		for (uint32_t n = 0; n < udp->in_count; n++)
			udp->in[n].msg_hdr.msg_namelen = sizeof(union udp_name);
		return recvmmsg(udp->fd, udp->in, max, MSG_DONTWAIT, NULL);
	}
	size = recvfrom(
		udp->fd, udp->in_pieces[0].iov_base, udp->in_pieces[0].iov_len, MSG_DONTWAIT,
		&udp->in_names[0].generic, &length
	);
	udp->in[0].msg_len = (unsigned int)size;
	return size < 0 ? -1 : 1;
}

static uint32_t
udp_receive(struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns) {
	struct udp_wire *udp = udp_of(wire);
	uint8_t *frame;
	int count = -1;

	(void)now_ns;
	for (uint32_t n = 0; n < ERRORS_MAX && count < 0; n++) {
		count = receive_packets(udp, max < WIRE_BATCH ? max : WIRE_BATCH);
		if (count < 0 && errno == EAGAIN)
			break;
	}
	udp->in_count = count > 0 ? (uint32_t)count : 0;
	udp->in_row = udp->in_count > 0 ? udp->in_row + 1 : 0;
	for (uint32_t n = 0; n < udp->in_count; n++) {
		const union udp_name *name = &udp->in_names[n];
		struct frame_route route = {.to = udp->wire.gid, .hop_limit = 64};

		if (udp->ip4) {
			route.from.raw[10] = route.from.raw[11] = 0xff;
			memcpy(route.from.raw + 12, &name->ip4.sin_addr, 4);
			route.source_port = ntohs(name->ip4.sin_port);
		} else {
			memcpy(route.from.raw, &name->ip6.sin6_addr, sizeof(route.from.raw));
			route.source_port = ntohs(name->ip6.sin6_port);
		}
		frame = udp->in_slots + (size_t)n * UDP_SLOT_BYTES + FRAME_HEADROOM;
		frame_write_headers(&route, udp->in[n].msg_len, frame);
		ret_frames[n] = (struct wire_frame
		){.bytes = frame, .size = udp->header_bytes + udp->in[n].msg_len};
	}
	return udp->in_count;
}

static uint64_t udp_due(const struct soft_wire *wire) {
	(void)wire;
	return UINT64_MAX;
}

static void udp_wait(struct soft_wire *wire, int doorbell, uint64_t timeout_ns) {
	struct udp_wire *udp = udp_of(wire);
	bool is_full = atomic_load_explicit(&udp->is_full, memory_order_relaxed);
	struct pollfd fds[] = {
		{.fd = udp->fd, .events = (short)(is_full ? POLLIN | POLLOUT : POLLIN)},
		{.fd = doorbell, .events = POLLIN},
	};
	const struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / SECOND_NS),
		.tv_nsec = (long)(timeout_ns % SECOND_NS),
	};

	// The result does not matter: the next turn checks everything.
	(void)!ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
}

static void udp_destroy(struct soft_wire *wire) {
	struct udp_wire *udp = udp_of(wire);

	if (udp->fd >= 0)
		close(udp->fd);
	free(udp->out_slots);
	free(udp->in_slots);
	free(udp);
}

const struct wire_calls udp_wire_calls = {
	.name = "udp",
	.take = udp_take,
	.give = udp_give,
	.flush = udp_flush,
	.receive = udp_receive,
	.due = udp_due,
	.wait = udp_wait,
	.destroy = udp_destroy,
};
