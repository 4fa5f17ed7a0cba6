// SPDX-License-Identifier: BSD-3-Clause
// Yardsticks: the same number of bytes through plain sockets, which are not connected either.
#include "soft.h"

#include <dataplane/block_cost.h>
#include <lib/clock.h>
#include <lib/error.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PACKET_MAX 8192
#define BATCH 32
#define BUFFER_BYTES (8 << 20)
#define SILENCE_US 20000 // silence after which a blast has ended

struct udp {
	struct clock clock;
	int fd;
	struct sockaddr_in peer;
	size_t size; // of a packet
	uint8_t packets[BATCH][PACKET_MAX];
	struct iovec pieces[BATCH];
	struct mmsghdr messages[BATCH];
	double *samples;
};

// Bind a free port, and send it to the other side.
static int bind_free_port(struct soft_side *side, struct udp *udp) {
	struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(UINT32_C(0x7f4e0001) + side->number), // 127.78.0.1 and 2
	};
	socklen_t length = sizeof(name);
	const int size = BUFFER_BYTES;

	udp->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(udp->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(udp->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (bind(udp->fd, (struct sockaddr *)&name, length) != 0 ||
	    getsockname(udp->fd, (struct sockaddr *)&name, &length) != 0)
		return soft_fail(
			&side->why, neg_errno(), "no UDP socket: %s", strerrordesc_np(errno)
		);
	return soft_exchange(side, &name, &udp->peer, sizeof(name));
}

static int udp_open(struct soft_side *side) {
	struct udp *udp = calloc(1, sizeof(*udp));

	if (udp == NULL)
		return -ENOMEM;
	side->own = udp;
	clock_init_tsc(&udp->clock);
	soft_pin(side->number);
	udp->size = side->setup->packet_bytes;
	for (uint32_t n = 0; n < BATCH; n++) {
		udp->pieces[n] = (struct iovec){udp->packets[n], udp->size};
		udp->messages[n].msg_hdr = (struct msghdr){
			.msg_iov = &udp->pieces[n],
			.msg_iovlen = 1,
			.msg_name = side->number == 0 ? &udp->peer : NULL,
			.msg_namelen = side->number == 0 ? sizeof(udp->peer) : 0,
		};
	}
	return bind_free_port(side, udp);
}

static void send_one(struct udp *udp) {
	(void)!sendto(
		udp->fd, udp->packets[0], udp->size, 0, (struct sockaddr *)&udp->peer,
		sizeof(udp->peer)
	);
}

static void receive_one(struct udp *udp, int flags) {
	struct sockaddr_in from;
	socklen_t length;

	do {
		length = sizeof(from);
	} while (recvfrom(
			 udp->fd, udp->packets[0], PACKET_MAX, flags, (struct sockaddr *)&from,
			 &length
		 ) < 0);
}

static int ping_measure(struct soft_side *side, uint32_t count, int flags, double *ret_value) {
	double *samples = malloc(count * sizeof(double));
	struct udp *udp = side->own;
	uint64_t begin_ns;

	if (samples == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < count; n++) {
		begin_ns = clock_now_ns(&udp->clock);
		if (side->number == 0)
			send_one(udp);
		receive_one(udp, flags);
		if (side->number == 1)
			send_one(udp);
		samples[n] = (double)(clock_now_ns(&udp->clock) - begin_ns) / 2;
	}
	*ret_value = soft_median(samples, count);
	free(samples);
	return 0;
}

static int datagrams_send(struct soft_side *side, uint64_t duration_ns) {
	struct udp *udp = side->own;
	uint64_t end_ns = clock_now_ns(&udp->clock) + duration_ns;
	uint64_t sent = 0;

	while (clock_now_ns(&udp->clock) < end_ns) {
		int count = sendmmsg(udp->fd, udp->messages, BATCH, 0);

		sent += count > 0 ? (uint64_t)count : 0;
	}
	return sent > 0 ? 0 : -EIO;
}

// Return the bytes per second that arrive, from the first to the last packet.
static double datagrams_rate(struct udp *udp) {
	const struct timeval first = {.tv_sec = 2}, silence = {.tv_usec = SILENCE_US};
	uint64_t begin_ns = 0, end_ns = 0, bytes = 0;
	int count;

	setsockopt(udp->fd, SOL_SOCKET, SO_RCVTIMEO, &first, sizeof(first));
	for (;;) {
		count = recvmmsg(udp->fd, udp->messages, BATCH, MSG_WAITFORONE, NULL);
		if (count <= 0)
			break;
		end_ns = clock_now_ns(&udp->clock);
		if (begin_ns == 0) {
			begin_ns = end_ns;
			setsockopt(udp->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
			continue;
		}
		bytes += (uint64_t)count * udp->size;
	}
	return end_ns > begin_ns ? 1e9 * (double)bytes / (double)(end_ns - begin_ns) : 0;
}

static int bulk_measure(struct soft_side *side, uint64_t duration_ns, double *ret_value) {
	double mine = 0, theirs = 0;
	int err = 0;

	if (side->number == 0)
		err = datagrams_send(side, duration_ns);
	else
		mine = datagrams_rate(side->own);
	if (err == 0)
		err = soft_exchange(side, &mine, &theirs, sizeof(mine));
	*ret_value = theirs;
	return err;
}

static int block_cost(const struct soft_side *side, double *ret_value) {
	uint64_t block_ns = 0;
	int err = 0;

	// A woken thread normally runs on another core.
	soft_unpin();
	if (side->number == 0)
		err = block_cost_measure(&block_ns);
	soft_pin(side->number);

	*ret_value = (double)block_ns;
	return err;
}

static int udp_play(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	switch (order->play) {
	case SOFT_PING:
		return ping_measure(side, order->count, MSG_DONTWAIT, ret_value);
	case SOFT_PING_BLOCK:
		return ping_measure(side, order->count, 0, ret_value);
	case SOFT_BULK:
		return bulk_measure(side, order->duration_ns, ret_value);
	case SOFT_BLOCK_COST:
		return block_cost(side, ret_value);
	default:
		return -EINVAL;
	}
}

const struct soft_kind soft_udp = {udp_open, udp_play};
