// SPDX-License-Identifier: BSD-3-Clause
// Cost of plain frames over a DPDK port: a spinning ping-pong with bursts of one frame. Port type,
// arguments, frames and kernel are those of the software device, but nothing else is around the
// port. (With af_packet the kernel examines each frame, too. An IP packet for another host costs it
// more than a frame of unknown type.)
//
// Contenders have wire_args for both ends:
//
//	memif       "net_memif0,role=server,socket=NAME" and the same with role=client
//	af_packet   "net_af_packet0,iface=A" and "net_af_packet0,iface=B", the ends of one veth
//	            pair, on which the kernel has no address
//
// The device under test takes the same wire arguments, and an address for each end.
#include "soft.h"
#include "wire/link.h"
#include "wire/wire_dpdk_port.h"

#include <lib/clock.h>
#include <lib/error.h>

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADERS_BYTES (LINK_HEADER_BYTES + FRAME_IP4_BYTES + FRAME_UDP_BYTES)
#define PEER_NS UINT64_C(10000000000)

struct raw {
	struct dpdk_port port;
	struct clock clock;
	uint8_t frame[HEADERS_BYTES];
	uint32_t size;
};

static int iface_mtu(const char *iface) {
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {0};
	int err = 0;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	if (ioctl(fd, SIOCGIFMTU, &request) != 0)
		err = neg_errno();
	close(fd);
	return err != 0 ? err : request.ifr_mtu;
}

static int open_port(struct raw *raw, const char *text, struct soft_why *why) {
	char reason[SOFT_REASON_MAX + 1] = "";
	struct parse_error error;
	struct dpdk_args args;
	int err = dpdk_args_parse(text, iface_mtu, &error, &args);

	if (err != 0)
		return soft_fail(why, err, "%s", error.text);
	return soft_fail(why, dpdk_port_open(&args, reason, &raw->port), "%s", reason);
}

static union ibv_gid side_gid(uint32_t number) {
	return (union ibv_gid
	){.raw = {[10] = 0xff, [11] = 0xff, 198, 51, 100, (uint8_t)(1 + number)}};
}

static void frame_compose(struct raw *raw, const struct soft_side *side, const uint8_t *peer_mac) {
	const struct frame_route route = {
		.from = side_gid(side->number),
		.to = side_gid(1 - side->number),
		.source_port = 49152,
		.hop_limit = 64,
	};

	link_header(peer_mac, raw->port.mac, LINK_TYPE_IP4, raw->frame);
	frame_write_headers(&route, side->setup->packet_bytes, raw->frame + LINK_HEADER_BYTES);
}

static int raw_open(struct soft_side *side) {
	struct raw *raw = calloc(1, sizeof(*raw));
	uint64_t end_ns, now_ns;
	uint8_t mac[LINK_MAC_BYTES];
	int err;

	if (raw == NULL)
		return -ENOMEM;
	side->own = raw;
	raw->size = HEADERS_BYTES + side->setup->packet_bytes;
	clock_init_tsc(&raw->clock);
	err = open_port(raw, side->setup->wire_args[side->number], &side->why);
	if (err != 0)
		return err;
	end_ns = clock_now_ns(&raw->clock) + PEER_NS;
	while (!raw->port.link) {
		now_ns = clock_now_ns(&raw->clock);
		if (now_ns > end_ns)
			return soft_fail(&side->why, -ETIMEDOUT, "the DPDK port has no peer");
		dpdk_port_maintain(&raw->port, now_ns);
	}
	err = soft_exchange(side, raw->port.mac, mac, sizeof(mac));
	frame_compose(raw, side, mac);
	soft_pin(side->number);
	return err;
}

static void send_one(struct raw *raw) {
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(raw->port.pool);

	if (mbuf == NULL)
		return;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), raw->frame, sizeof(raw->frame));
	mbuf->data_len = (uint16_t)raw->size;
	mbuf->pkt_len = raw->size;
	// A memif client has room for the first frame only after it has polled.
	while (rte_eth_tx_burst(raw->port.id, 0, &mbuf, 1) != 1)
		continue;
}

// Receive one frame; skip frames that the kernel itself sends on its interface.
static void receive_one(struct raw *raw) {
	struct rte_mbuf *mbuf;
	uint16_t type;

	do {
		while (rte_eth_rx_burst(raw->port.id, 0, &mbuf, 1) == 0)
			continue;
		type = link_get16(rte_pktmbuf_mtod(mbuf, uint8_t *) + LINK_HEADER_BYTES - 2);
		rte_pktmbuf_free(mbuf);
	} while (type != LINK_TYPE_IP4);
}

static int raw_play(struct soft_side *side, const struct soft_order *order, double *ret_value) {
	struct raw *raw = side->own;
	double *samples;
	uint64_t begin_ns;

	if (order->play != SOFT_PING)
		return -EINVAL;
	samples = malloc(order->count * sizeof(double));
	if (samples == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < order->count; n++) {
		begin_ns = clock_now_ns(&raw->clock);
		if (side->number == 0)
			send_one(raw);
		receive_one(raw);
		if (side->number == 1)
			send_one(raw);
		samples[n] = (double)(clock_now_ns(&raw->clock) - begin_ns) / 2;
	}
	*ret_value = soft_median(samples, order->count);
	free(samples);
	return 0;
}

const struct soft_kind soft_raw_dpdk = {raw_open, raw_play};
