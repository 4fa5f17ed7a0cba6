// SPDX-License-Identifier: BSD-3-Clause
// Opens the UDP wire: address, socket, MTU of the interface, and the reasons for failures.
#include "wire/wire_udp.h"

#include <lib/error.h>
#include <lib/port_holder.h>

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Range for address_any: 127.64.0.1 to 127.64.255.254.
#define ANY_FIRST UINT32_C(0x7f400001)
#define ANY_LAST UINT32_C(0x7f40fffe)
#define MTU_MIN 256
#define MTU_MAX 4096
#define MTU_HEADERS 80 // usual allowance: IPv6, UDP, BTH, RETH, ICRC
#define BUFFER_BYTES (8 << 20)
// The kernel charges a packet's rounded memory and its own structures against the buffer: on
// loopback 8,452 bytes for 4 KiB of payload, 2,304 for 1 KiB, 1,280 for 256. This is the charge
// beyond twice the payload.
#define CHARGE_BYTES 1024

static void format_bind_error(const struct sock_addr *address, int err, char *reason) {
	char text[SOCK_ADDR_TEXT_BYTES], words[PORT_HOLDER_TEXT_BYTES];
	const char *name = strerrorname_np(-err);
	struct port_holder holder;

	sock_addr_format_host(address, text);
	if (err == -EADDRNOTAVAIL) {
		snprintf(
			reason, SOFT_REASON_MAX + 1,
			"%s is not the address of an interface that is up", text
		);
		return;
	}
	if (err != -EADDRINUSE) {
		snprintf(
			reason, SOFT_REASON_MAX + 1, "cannot open a UDP socket on %s: %s", text,
			name != NULL ? name : "?"
		);
		return;
	}
	port_holder_find(PORT_UDP, address, &holder);
	if (holder.kind == PORT_HOLDER_KERNEL) {
		snprintf(
			reason, SOFT_REASON_MAX + 1,
			"%.60s port %u is held by no process: the kernel's Soft-RoCE (rdma_rxe) "
			"probably has it",
			text, SOFT_UDP_PORT
		);
		return;
	}
	port_holder_format(&holder, words);
	snprintf(
		reason, SOFT_REASON_MAX + 1, "%.60s port %u is held by %s", text, SOFT_UDP_PORT,
		words
	);
}

static int bind_socket(int fd, const struct sock_addr *address) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);

	return bind(fd, (struct sockaddr *)&storage, length) == 0 ? 0 : neg_errno();
}

static bool option_set(int fd, int level, int name, int value) {
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

// Set DF, so that the IP id is 0, and disable the UDP checksum, which RoCEv2 does not use.
static int set_options(int fd, bool ip4) {
	bool done;

	// Without privilege the sizes are limited by net.core.rmem_max and wmem_max.
	if (!option_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES))
		option_set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	if (!option_set(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES))
		option_set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	option_set(fd, SOL_SOCKET, SO_NO_CHECK, 1);
	if (ip4) {
		done = option_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	} else {
		option_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
		option_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
		done = option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
		       option_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
		       option_set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
	}
	return done ? 0 : neg_errno();
}

static int open_socket(struct udp_wire *udp, bool any) {
	struct sock_addr *address = &udp->wire.address;
	int err;

	udp->fd = socket(udp->ip4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (udp->fd < 0)
		return neg_errno();
	err = set_options(udp->fd, udp->ip4);
	if (err != 0)
		return err;
	if (!any)
		return bind_socket(udp->fd, address);
	// Bind to the first free address; one try costs about a microsecond.
	address->family = SOCK_ADDR_V4;
	err = -EADDRINUSE;
	for (uint32_t host = ANY_FIRST; host <= ANY_LAST && err == -EADDRINUSE; host++) {
		uint32_t number = htonl(host);

		memcpy(address->address, &number, sizeof(number));
		err = bind_socket(udp->fd, address);
	}
	return err;
}

// Find the interface with this address. All of 127.0.0.0/8 belongs to the loopback interface,
// listed or not.
static void find_netdev(const struct sock_addr *address, char ret_name[static IFNAMSIZ]) {
	struct ifaddrs *list;
	struct sock_addr found;

	ret_name[0] = '\0';
	if (getifaddrs(&list) != 0)
		return;
	for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
		if (entry->ifa_addr == NULL ||
		    sock_addr_from_sockaddr(entry->ifa_addr, sizeof(struct sockaddr_in6), &found) !=
			    0)
			continue;
		found.port = address->port;
		if (sock_addr_equal(&found, address) ||
		    (sock_addr_is_loopback(address) && (entry->ifa_flags & IFF_LOOPBACK) != 0)) {
			snprintf(ret_name, IFNAMSIZ, "%s", entry->ifa_name);
			break;
		}
	}
	freeifaddrs(list);
}

static int find_mtu(struct udp_wire *udp, char *reason) {
	struct ifreq request = {0};
	int netdev = 1500;

	find_netdev(&udp->wire.address, udp->wire.netdev);
	memcpy(request.ifr_name, udp->wire.netdev, strnlen(udp->wire.netdev, IFNAMSIZ - 1));
	if (request.ifr_name[0] != '\0' && ioctl(udp->fd, SIOCGIFMTU, &request) == 0)
		netdev = request.ifr_mtu;
	if (netdev < MTU_MIN + MTU_HEADERS) {
		snprintf(
			reason, SOFT_REASON_MAX + 1, "the MTU of %s is %d; RoCE needs at least %d",
			udp->wire.netdev, netdev, MTU_MIN + MTU_HEADERS
		);
		return -EINVAL;
	}
	for (uint16_t mtu = MTU_MIN; mtu <= MTU_MAX && mtu + MTU_HEADERS <= netdev; mtu *= 2)
		udp->wire.mtu = mtu;
	return 0;
}

static void slots_init(struct udp_wire *udp) {
	struct sockaddr_storage own;
	socklen_t length = sock_addr_to_sockaddr(&udp->wire.address, &own);
	size_t ahead;

	for (uint32_t n = 0; n < WIRE_BATCH; n++) {
		ahead = (size_t)n * UDP_SLOT_BYTES + FRAME_HEADROOM + udp->header_bytes;
		// Family, port and scope are constant; the address is set for each packet.
		memcpy(&udp->out_names[n], &own, length);
		udp->out_pieces[n].iov_base = udp->out_slots + ahead;
		udp->out[n].msg_hdr = (struct msghdr){
			.msg_name = &udp->out_names[n],
			.msg_namelen = length,
			.msg_iov = &udp->out_pieces[n],
			.msg_iovlen = 1,
			.msg_control = &udp->out_controls[n],
		};
		udp->in_pieces[n] = (struct iovec){
			.iov_base = udp->in_slots + ahead,
			.iov_len = UDP_FRAME_ROOM - udp->header_bytes,
		};
		udp->in[n].msg_hdr = (struct msghdr){
			.msg_name = &udp->in_names[n],
			.msg_namelen = sizeof(union udp_name),
			.msg_iov = &udp->in_pieces[n],
			.msg_iovlen = 1,
		};
	}
}

static int udp_wire_open(struct udp_wire *udp, bool any, char *reason) {
	const size_t slots_bytes = (size_t)WIRE_BATCH * UDP_SLOT_BYTES;
	socklen_t length = sizeof(int);
	uint64_t mtu;
	int granted = 0;
	int err = open_socket(udp, any);

	if (err != 0) {
		format_bind_error(&udp->wire.address, err, reason);
		return err;
	}
	udp->wire.gid = wire_gid(&udp->wire.address);
	err = find_mtu(udp, reason);
	if (err != 0)
		return err;
	udp->wire.source_port = SOFT_UDP_PORT;
	mtu = udp->wire.mtu;
	getsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &granted, &length);
	udp->wire.window_bytes =
		(uint32_t)((uint64_t)(uint32_t)granted * mtu / (2 * mtu + CHARGE_BYTES));
	udp->out_slots = aligned_alloc(64, slots_bytes);
	udp->in_slots = aligned_alloc(64, slots_bytes);
	if (udp->out_slots == NULL || udp->in_slots == NULL) {
		snprintf(reason, SOFT_REASON_MAX + 1, "out of memory");
		return -ENOMEM;
	}
	slots_init(udp);
	return 0;
}

int wire_udp_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	struct udp_wire *udp;
	int err;

	if (!config->address_any &&
	    (config->address.family == SOCK_ADDR_NONE || sock_addr_is_any(&config->address))) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"the udp wire needs the address of one interface"
		);
		return -EINVAL;
	}
	udp = calloc(1, sizeof(*udp));
	if (udp == NULL) {
		snprintf(ret_reason, SOFT_REASON_MAX + 1, "out of memory");
		return -ENOMEM;
	}
	udp->wire.calls = &udp_wire_calls;
	if (!config->address_any)
		udp->wire.address = config->address;
	udp->wire.address.port = SOFT_UDP_PORT;
	udp->counters = config->counters;
	udp->fd = -1;
	udp->ip4 = udp->wire.address.family != SOCK_ADDR_V6;
	udp->header_bytes = frame_headers_bytes(udp->ip4);
	err = udp_wire_open(udp, config->address_any, ret_reason);
	if (err != 0) {
		wire_destroy(&udp->wire);
		return err;
	}
	*ret_wire = &udp->wire;
	return 0;
}
