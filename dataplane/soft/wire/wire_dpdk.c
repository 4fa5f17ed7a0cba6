// SPDX-License-Identifier: BSD-3-Clause
// The DPDK wire: frames in Ethernet over any port that DPDK drives. Its arguments are described in
// wire_dpdk_args.h, the engine's sleep in wire_dpdk_sleep.h.
//
// Frames are built in the buffer that is sent, and passed up in the buffer that was received. For
// each unresolved address one frame is held. Further frames to the address are dropped and counted;
// the requester sends them again. ARP and Neighbour Discovery are answered during turns. Frames to
// the own address are looped back.
//
// The peer of a memif shares memory with this process, and its driver trusts the contents. Such a
// peer must be as trusted as the process itself.
#include "nic/nic.h"
#include "nic/wire.h"
#include "wire/link.h"
#include "wire/neighbour.h"
#include "wire/wire_dpdk_port.h"
#include "wire/wire_dpdk_sleep.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <linux/filter.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define HELD_MAX 32			     // packets waiting for a neighbour, for all addresses
#define RETRY_NS 1000000		     // time before a full port is tried again
#define LATEST_NS 10000000		     // time for which the latest neighbour needs no lookup
#define LEAVE_CONFIRM_NS UINT64_C(200000000) // for a connected peer that is not scheduled
#define IP4_TO 16
#define IP6_NEXT 6
#define IP6_TO 24
#define PROTOCOL_ICMP6 58

struct dpdk_wire {
	struct soft_wire wire;
	struct soft_counters *counters;
	struct dpdk_port port;
	struct dpdk_sleep sleep;
	struct link_host self;
	bool routed;
	union ibv_gid gateway;
	uint32_t prefix_bits; // prefix length in a GID
	uint64_t now_ns;      // time of the latest receive()
	uint64_t retry_ns;
	// Socket that stops the kernel from answering for our port, if the kernel has our address
	// too
	int guard;
	struct rte_mbuf *taken;
	struct rte_mbuf *out[WIRE_BATCH], *in[WIRE_BATCH], *back[WIRE_BATCH];
	uint32_t out_count, in_count, back_count, held_count;
	bool latest_known;
	union ibv_gid latest;
	uint8_t latest_mac[LINK_MAC_BYTES];
	uint64_t latest_ns;
	struct neighbour_table neighbours;
};

static struct dpdk_wire *dpdk_of(struct soft_wire *wire) {
	return (struct dpdk_wire *)wire;
}

static uint8_t *mbuf_bytes(struct rte_mbuf *mbuf) {
	return rte_pktmbuf_mtod(mbuf, uint8_t *);
}

static void move_frames(struct rte_mbuf **to, struct rte_mbuf **from, uint32_t count) {
	// NOLINTNEXTLINE(bugprone-sizeof-expression): these are pointers
	memmove(to, from, count * sizeof(from[0]));
}

static void send_queued_frames(struct dpdk_wire *dpdk) {
	uint16_t count = (uint16_t)dpdk->out_count;
	uint16_t taken;

	if (count == 0)
		return;
	if (!dpdk->port.link) {
		counter_add(&dpdk->counters->send_failed, count);
		rte_pktmbuf_free_bulk(dpdk->out, count);
		dpdk->out_count = 0;
		return;
	}
	taken = dpdk_port_send(&dpdk->port, dpdk->out, count);
	dpdk_sleep_count_sent(&dpdk->sleep, taken);
	dpdk->out_count -= taken;
	move_frames(dpdk->out, dpdk->out + taken, dpdk->out_count);
	dpdk->retry_ns = dpdk->now_ns + RETRY_NS;
}

// Queue a whole Ethernet frame; it is lost if the port is full.
static void queue_frame(struct dpdk_wire *dpdk, struct rte_mbuf *mbuf) {
	if (dpdk->out_count == WIRE_BATCH)
		send_queued_frames(dpdk);
	if (dpdk->out_count < WIRE_BATCH) {
		dpdk->out[dpdk->out_count++] = mbuf;
		return;
	}
	counter_add(&dpdk->counters->send_failed, 1);
	rte_pktmbuf_free(mbuf);
}

static void queue_frame_bytes(struct dpdk_wire *dpdk, const uint8_t *frame, size_t size) {
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(dpdk->port.pool);

	if (mbuf == NULL)
		return;
	memcpy(mbuf_bytes(mbuf), frame, size);
	mbuf->data_len = (uint16_t)size;
	mbuf->pkt_len = (uint32_t)size;
	queue_frame(dpdk, mbuf);
}

static void address_announce(struct dpdk_wire *dpdk) {
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	size_t size = frame_is_ip4(&dpdk->self.gid)
			      ? arp_build_request(&dpdk->self, &dpdk->self.gid, frame)
			      : nd_build_advertisement(&dpdk->self, NULL, frame);

	queue_frame_bytes(dpdk, frame, size);
}

static uint8_t *dpdk_take(struct soft_wire *wire) {
	struct dpdk_wire *dpdk = dpdk_of(wire);

	if (dpdk->taken == NULL) {
		if (dpdk->out_count == WIRE_BATCH)
			send_queued_frames(dpdk);
		if (dpdk->out_count < WIRE_BATCH)
			dpdk->taken = rte_pktmbuf_alloc(dpdk->port.pool);
		if (dpdk->taken == NULL)
			return NULL;
	}
	return mbuf_bytes(dpdk->taken) + LINK_HEADER_BYTES;
}

static bool same_prefix(const union ibv_gid *a, const union ibv_gid *b, uint32_t bits) {
	uint32_t whole = bits / 8;
	uint8_t rest = (uint8_t)(0xff00 >> bits % 8);

	if (memcmp(a->raw, b->raw, whole) != 0)
		return false;
	return whole == sizeof(a->raw) || ((a->raw[whole] ^ b->raw[whole]) & rest) == 0;
}

static void drop_held_packet(struct dpdk_wire *dpdk, void *held) {
	if (held == NULL)
		return;
	dpdk->held_count--;
	counter_add(&dpdk->counters->send_unresolved, 1);
	rte_pktmbuf_free(held);
}

// Return the hardware address of a destination. Returns NULL if it is unknown; then the packet was
// held or dropped.
static const uint8_t *
resolve_address(struct dpdk_wire *dpdk, const union ibv_gid *to, struct rte_mbuf *mbuf) {
	struct neighbour *neighbour;
	bool usable, ask;
	void *held;

	if (dpdk->latest_known && link_gid_equal(to, &dpdk->latest) &&
	    dpdk->now_ns - dpdk->latest_ns < LATEST_NS)
		return dpdk->latest_mac;
	if (dpdk->routed && !same_prefix(to, &dpdk->self.gid, dpdk->prefix_bits))
		to = &dpdk->gateway;
	neighbour = neighbour_get(&dpdk->neighbours, to, dpdk->now_ns, &held);
	drop_held_packet(dpdk, held);
	usable = neighbour_is_usable(neighbour, dpdk->now_ns, &ask);
	if (ask) {
		uint8_t frame[LINK_MESSAGE_BYTES_MAX];
		size_t size = frame_is_ip4(&dpdk->self.gid)
				      ? arp_build_request(&dpdk->self, to, frame)
				      : nd_build_solicitation(&dpdk->self, to, frame);

		queue_frame_bytes(dpdk, frame, size);
	}
	if (usable)
		return neighbour->mac;
	if (neighbour->held == NULL && dpdk->held_count < HELD_MAX) {
		neighbour->held = mbuf;
		dpdk->held_count++;
	} else {
		counter_add(&dpdk->counters->send_unresolved, 1);
		rte_pktmbuf_free(mbuf);
	}
	return NULL;
}

static void dpdk_give(struct soft_wire *wire, uint32_t size) {
	struct dpdk_wire *dpdk = dpdk_of(wire);
	struct rte_mbuf *mbuf = dpdk->taken;
	const uint8_t *mac;
	union ibv_gid to;

	must(mbuf != NULL && size <= FRAME_BYTES_MAX);
	dpdk->taken = NULL;
	mbuf->data_len = (uint16_t)(LINK_HEADER_BYTES + size);
	mbuf->pkt_len = mbuf->data_len;
	if (mbuf->pkt_len > dpdk->port.frame_bytes) {
		counter_add(&dpdk->counters->send_failed, 1);
		rte_pktmbuf_free(mbuf);
		return;
	}
	must(frame_read_destination(mbuf_bytes(mbuf) + LINK_HEADER_BYTES, size, &to));
	if (link_gid_equal(&to, &dpdk->self.gid)) {
		if (dpdk->back_count < WIRE_BATCH) {
			dpdk->back[dpdk->back_count++] = mbuf;
			return;
		}
		counter_add(&dpdk->counters->send_failed, 1);
		rte_pktmbuf_free(mbuf);
		return;
	}
	link_header(
		dpdk->self.mac, dpdk->self.mac,
		frame_is_ip4(&dpdk->self.gid) ? LINK_TYPE_IP4 : LINK_TYPE_IP6, mbuf_bytes(mbuf)
	);
	mac = resolve_address(dpdk, &to, mbuf);
	if (mac == NULL)
		return;
	memcpy(mbuf_bytes(mbuf), mac, LINK_MAC_BYTES);
	if (mac != dpdk->latest_mac) {
		dpdk->latest_known = true;
		dpdk->latest = to;
		dpdk->latest_ns = dpdk->now_ns;
		memcpy(dpdk->latest_mac, mac, sizeof(dpdk->latest_mac));
	}
	queue_frame(dpdk, mbuf);
}

static void dpdk_flush(struct soft_wire *wire) {
	send_queued_frames(dpdk_of(wire));
}

// Answer a request for this host; the requester is learnt, because it will be a peer.
static void handle_link_message(struct dpdk_wire *dpdk, const struct link_message *talk) {
	bool for_us = talk->asks && link_gid_equal(&talk->target, &dpdk->self.gid);
	bool wanted = for_us && talk->about.global.interface_id != 0;
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	struct neighbour *neighbour;
	size_t size;
	void *held;

	// Either our own message came back, or another host took our address: learn nothing.
	if (link_gid_equal(&talk->about, &dpdk->self.gid))
		return;
	neighbour = neighbour_learn(&dpdk->neighbours, talk, wanted, dpdk->now_ns, &held);
	drop_held_packet(dpdk, held);
	dpdk->latest_known = false;
	if (neighbour != NULL && neighbour->held != NULL) {
		struct rte_mbuf *mbuf = neighbour->held;

		neighbour->held = NULL;
		dpdk->held_count--;
		memcpy(mbuf_bytes(mbuf), neighbour->mac, LINK_MAC_BYTES);
		queue_frame(dpdk, mbuf);
	}
	if (!for_us)
		return;
	size = frame_is_ip4(&dpdk->self.gid) ? arp_build_reply(&dpdk->self, talk, frame)
					     : nd_build_advertisement(&dpdk->self, talk, frame);
	queue_frame_bytes(dpdk, frame, size);
}

// Send a frame of the sleep protocol, which the frame counters exclude. Returns false if it was not
// sent.
static bool
send_sleep_frame(struct dpdk_wire *dpdk, const uint8_t frame[static SLEEP_FRAME_BYTES]) {
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(dpdk->port.pool);

	if (mbuf == NULL)
		return false;
	memcpy(mbuf_bytes(mbuf), frame, SLEEP_FRAME_BYTES);
	mbuf->data_len = SLEEP_FRAME_BYTES;
	mbuf->pkt_len = SLEEP_FRAME_BYTES;
	if (dpdk_port_send(&dpdk->port, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

// Return true for a packet to this device, with the IP header behind the Ethernet header. Link
// protocols are handled here.
static bool frame_is_for_device(struct dpdk_wire *dpdk, struct rte_mbuf *mbuf, bool *ret_counts) {
	const uint8_t *frame = mbuf_bytes(mbuf);
	const uint8_t *ip = frame + LINK_HEADER_BYTES;
	bool ip4 = frame_is_ip4(&dpdk->self.gid);
	uint32_t size = mbuf->data_len;
	struct link_message what;
	uint16_t type;

	*ret_counts = true;
	if (mbuf->nb_segs != 1 || size < LINK_HEADER_BYTES + FRAME_IP4_BYTES)
		return false;
	type = link_get16(frame + 12);
	size -= LINK_HEADER_BYTES;
	if (type == LINK_TYPE_IP4 && ip4)
		return memcmp(frame, dpdk->self.mac, LINK_MAC_BYTES) == 0 &&
		       memcmp(ip + IP4_TO, dpdk->self.gid.raw + 12, 4) == 0;
	if (type == LINK_TYPE_IP6 && !ip4 && size >= FRAME_IP6_BYTES) {
		if (ip[IP6_NEXT] != PROTOCOL_ICMP6)
			return memcmp(frame, dpdk->self.mac, LINK_MAC_BYTES) == 0 &&
			       memcmp(ip + IP6_TO, dpdk->self.gid.raw, 16) == 0;
		if (nd_parse(ip, size, &what) == 0)
			handle_link_message(dpdk, &what);
	} else if (type == LINK_TYPE_ARP && ip4) {
		if (arp_parse(ip, size, &what) == 0)
			handle_link_message(dpdk, &what);
	} else if (type == SLEEP_TYPE) {
		uint8_t answer[SLEEP_FRAME_BYTES];

		*ret_counts = false;
		// If the answer is lost, the peer asks again.
		if (dpdk_sleep_handle_frame(&dpdk->sleep, ip, size, dpdk->self.mac, answer))
			(void)send_sleep_frame(dpdk, answer);
	}
	return false;
}

// A memif without a peer counts as active: it waits for one, but has no cable to lose.
static enum nic_port dpdk_port_state(const struct dpdk_wire *dpdk) {
	if (dpdk->port.gone)
		return NIC_PORT_GONE;
	return dpdk->port.args.kind != DPDK_PCI || dpdk->port.link ? NIC_PORT_ACTIVE
								   : NIC_PORT_DOWN;
}

static void maintain_port(struct dpdk_wire *dpdk) {
	bool before = dpdk->port.link;
	bool came = dpdk_port_maintain(&dpdk->port, dpdk->now_ns);

	dpdk->wire.port = dpdk_port_state(dpdk);
	if (dpdk->port.link == before && !came)
		return;
	dpdk_sleep_set_link(&dpdk->sleep, dpdk->port.link);
	if (!came)
		return;
	// The new peer need not be the previous one.
	neighbour_invalidate_all(&dpdk->neighbours);
	dpdk->latest_known = false;
	address_announce(dpdk);
	send_queued_frames(dpdk);
}

static uint32_t
dpdk_receive(struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns) {
	struct dpdk_wire *dpdk = dpdk_of(wire);
	uint32_t known = RTE_MIN(dpdk->back_count, max);
	uint8_t notice[SLEEP_FRAME_BYTES];
	uint32_t count = 0, counted = 0;

	if (dpdk->in_count > 0)
		rte_pktmbuf_free_bulk(dpdk->in, dpdk->in_count);
	dpdk->now_ns = now_ns;
	maintain_port(dpdk);
	if (dpdk_sleep_compose_notice(&dpdk->sleep, dpdk->self.mac, notice) &&
	    send_sleep_frame(dpdk, notice))
		dpdk_sleep_record_notice_sent(&dpdk->sleep);
	move_frames(dpdk->in, dpdk->back, known);
	dpdk->back_count -= known;
	move_frames(dpdk->back, dpdk->back + known, dpdk->back_count);
	max = (max < WIRE_BATCH ? max : WIRE_BATCH) - known;
	dpdk->in_count = known + dpdk_port_receive(&dpdk->port, dpdk->in + known, (uint16_t)max);

	// The first `known` frames are looped back and need no check.
	for (uint32_t i = 0; i < dpdk->in_count; i++) {
		struct rte_mbuf *mbuf = dpdk->in[i];
		bool ours = i < known, counts = false;

		if (!ours)
			ours = frame_is_for_device(dpdk, mbuf, &counts);
		counted += counts;
		if (!ours)
			continue;
		ret_frames[count].bytes = mbuf_bytes(mbuf) + LINK_HEADER_BYTES;
		ret_frames[count].size = mbuf->data_len - LINK_HEADER_BYTES;
		ret_frames[count].id_known = true;
		count++;
	}
	if (counted > 0)
		dpdk_sleep_count_received(&dpdk->sleep, counted);
	return count;
}

static uint64_t dpdk_due(const struct soft_wire *wire) {
	const struct dpdk_wire *dpdk = (const struct dpdk_wire *)wire;

	if (dpdk->back_count > 0)
		return 0;
	return dpdk->out_count > 0 ? RTE_MIN(dpdk->retry_ns, dpdk->port.look_ns)
				   : dpdk->port.look_ns;
}

static void dpdk_wait(struct soft_wire *wire, int doorbell, uint64_t timeout_ns) {
	dpdk_sleep_wait(&dpdk_of(wire)->sleep, doorbell, timeout_ns);
}

// Ask the peer, for a limited time, to confirm all frames before the memif is closed. Frames in its
// memory would be lost with it, including the last acknowledgement, for which the peer would wait.
static void wire_wait_peer_confirms(struct dpdk_wire *dpdk) {
	uint64_t end_ns = clock_monotonic_ns() + LEAVE_CONFIRM_NS;
	uint8_t frame[SLEEP_FRAME_BYTES];
	struct wire_frame frames[WIRE_BATCH];

	if (!dpdk->port.link)
		return;
	send_queued_frames(dpdk);
	if (!dpdk_sleep_compose_leave(&dpdk->sleep, dpdk->self.mac, frame) ||
	    !send_sleep_frame(dpdk, frame))
		return;
	dpdk_sleep_ring_peer(&dpdk->sleep);
	dpdk->port.look_ns = 0;
	while (!dpdk->sleep.peer_confirmed_all && dpdk->port.link && clock_monotonic_ns() < end_ns
	) {
		(void)dpdk_receive(&dpdk->wire, frames, WIRE_BATCH, clock_monotonic_ns());
		sched_yield();
	}
}

// Closing the port frees its pool and all buffers.
static void dpdk_destroy(struct soft_wire *wire) {
	struct dpdk_wire *dpdk = dpdk_of(wire);

	wire_wait_peer_confirms(dpdk);
	dpdk_port_close(&dpdk->port);
	dpdk_sleep_fini(&dpdk->sleep);
	if (dpdk->guard >= 0)
		close(dpdk->guard);
	free(dpdk);
}

static const struct wire_calls dpdk_calls = {
	.name = "dpdk",
	.take = dpdk_take,
	.give = dpdk_give,
	.flush = dpdk_flush,
	.receive = dpdk_receive,
	.due = dpdk_due,
	.wait = dpdk_wait,
	.destroy = dpdk_destroy,
};

static int iface_mtu(const char *iface) {
	scoped_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {0};

	if (fd < 0)
		return neg_errno();
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", iface);
	if (ioctl(fd, SIOCGIFMTU, &request) != 0)
		return neg_errno();
	return request.ifr_mtu;
}

// If the kernel has our address too, it would answer each packet with "port unreachable". A socket
// receives these packets and its filter drops them. Otherwise no socket is needed.
static int block_kernel_answers(const struct sock_addr *address, int *ret_fd) {
	static struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog program = {.len = 1, .filter = nothing};
	struct sock_addr port = *address;
	struct sockaddr_storage storage;
	scoped_fd int fd = -1;
	socklen_t length;

	port.port = SOFT_UDP_PORT;
	length = sock_addr_to_sockaddr(&port, &storage);
	fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return neg_errno();
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0)
		return neg_errno();
	if (bind(fd, (struct sockaddr *)&storage, length) == 0)
		*ret_fd = scoped_release_fd(&fd);
	else if (errno != EADDRNOTAVAIL)
		return neg_errno();
	return 0;
}

static int wire_open_port(
	struct dpdk_wire *dpdk, struct dpdk_args *args, char ret_reason[static SOFT_REASON_MAX + 1]
) {
	struct soft_wire *wire = &dpdk->wire;
	uint32_t around = LINK_HEADER_BYTES + frame_headers_bytes(frame_is_ip4(&wire->gid)) +
			  PACKET_HEADERS_MAX + PACKET_ICRC_BYTES;
	char text[SOCK_ADDR_TEXT_BYTES];
	int err = dpdk_args_set_mac(args, &wire->gid);

	if (err == 0 && args->kind == DPDK_AF_PACKET)
		err = block_kernel_answers(&wire->address, &dpdk->guard);
	if (err != 0) {
		sock_addr_format_host(&wire->address, text);
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1, "%s port %u: %s", text, SOFT_UDP_PORT,
			err == -EADDRINUSE ? "another program uses it" : strerrorname_np(-err)
		);
		return err;
	}
	err = dpdk_port_open(args, ret_reason, &dpdk->port);
	if (err != 0)
		return err;
	memcpy(dpdk->self.mac, dpdk->port.mac, sizeof(dpdk->self.mac));
	wire->mtu = PACKET_PAYLOAD_MAX;
	while (wire->mtu >= 256 && wire->mtu + around > dpdk->port.frame_bytes)
		wire->mtu /= 2;
	if (wire->mtu < 256) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"frames of %u bytes on %s are too small for RoCE", dpdk->port.frame_bytes,
			dpdk->port.args.name
		);
		return -EMSGSIZE;
	}
	wire->port = dpdk_port_state(dpdk);
	wire->window_bytes = dpdk->port.ring_frames * wire->mtu;
	snprintf(wire->netdev, sizeof(wire->netdev), "%s", dpdk->port.args.iface);
	return 0;
}

static struct dpdk_wire *
wire_allocate(const struct wire_config *config, const struct dpdk_args *args) {
	struct dpdk_wire *dpdk = calloc(1, sizeof(*dpdk));

	if (dpdk == NULL)
		return NULL;
	dpdk->wire.calls = &dpdk_calls;
	dpdk->wire.address = config->address;
	dpdk->wire.address.port = SOFT_UDP_PORT;
	dpdk->wire.gid = wire_gid(&config->address);
	dpdk->counters = config->counters;
	dpdk->self.gid = dpdk->wire.gid;
	dpdk->routed = args->gateway.family != SOCK_ADDR_NONE;
	if (dpdk->routed) {
		dpdk->gateway = wire_gid(&args->gateway);
		dpdk->prefix_bits =
			args->prefix_bits + (args->gateway.family == SOCK_ADDR_V4 ? 96 : 0);
	}
	dpdk->guard = -1;
	dpdk_sleep_init(&dpdk->sleep, args, &dpdk->wire.gid);
	return dpdk;
}

static int read_config(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct dpdk_args *ret_args
) {
	struct parse_error error;
	int err = dpdk_args_parse(config->args, iface_mtu, &error, ret_args);

	if (err != 0) {
		snprintf(ret_reason, SOFT_REASON_MAX + 1, "%.*s", SOFT_REASON_MAX, error.text);
		return err;
	}
	if (config->address_any || config->address.family == SOCK_ADDR_NONE) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"the dpdk wire needs an IP address of its own, for example 192.0.2.7"
		);
		return -EINVAL;
	}
	if (ret_args->gateway.family != SOCK_ADDR_NONE &&
	    ret_args->gateway.family != config->address.family) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"the gateway and the address of the device must both be IPv4 or both IPv6"
		);
		return -EINVAL;
	}
	return 0;
}

int wire_dpdk_check(const struct wire_config *config, char ret_reason[static SOFT_REASON_MAX + 1]) {
	struct dpdk_args args;
	int err = read_config(config, ret_reason, &args);

	return err != 0 ? err : dpdk_port_check(&args, ret_reason);
}

int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	struct dpdk_wire *dpdk;
	struct dpdk_args args;
	int err = read_config(config, ret_reason, &args);

	if (err != 0)
		return err;
	dpdk = wire_allocate(config, &args);
	if (dpdk == NULL)
		return -ENOMEM;
	err = wire_open_port(dpdk, &args, ret_reason);
	if (err != 0) {
		dpdk_destroy(&dpdk->wire);
		return err;
	}
	if (args.kind != DPDK_MEMIF) {
		address_announce(dpdk);
		send_queued_frames(dpdk);
	}
	*ret_wire = &dpdk->wire;
	return 0;
}
