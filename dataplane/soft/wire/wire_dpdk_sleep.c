// SPDX-License-Identifier: BSD-3-Clause
// Lets an engine thread sleep until a DPDK port has packets.
#include "wire/wire_dpdk_sleep.h"

#include "packet/frame.h"

#include <lib/scoped.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define STEP_MIN_NS UINT32_C(50000)
#define STEP_MAX_NS UINT32_C(1000000)
#define LINK_DOWN_NS UINT64_C(50000000)
#define DRAIN_MAX 64

// Message behind the Ethernet header: magic, kind, number of frames received.
static const uint8_t magic[8] = {'t', 'o', 'c', 's', 'i', 'n', ' ', '1'};
#define MESSAGE_KIND_AT 8
#define MESSAGE_COUNT_AT 12
#define SLEEP_MESSAGE_BYTES 16
enum sleep_message {
	MESSAGE_SLEEPS = 1,	   // sender sleeps: ring with your next frame
	MESSAGE_SLEEPS_UNSURE = 2, // the same, and answer whether you can ring
	MESSAGE_CAN_RING = 3,	   // sender can ring
	MESSAGE_LEAVES = 4,	   // sender leaves: confirm all my frames
	MESSAGE_ALL_RECEIVED = 5,  // all frames received
};

// Relaxed order everywhere: the flags publish no other data, and a late read only costs another
// turn of the engine.
static bool flag_get(_Atomic bool *flag) {
	return atomic_load_explicit(flag, memory_order_relaxed);
}
static void flag_set(_Atomic bool *flag, bool value) {
	atomic_store_explicit(flag, value, memory_order_relaxed);
}

static int packet_doorbell(const char *iface, const union ibv_gid *gid) {
	// Pass ARP, IPv4 to our UDP port, and all IPv6, which is rare where it is not used.
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_ARP, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 4),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, LINK_HEADER_BYTES),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, LINK_HEADER_BYTES + 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOFT_UDP_PORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(iface),
	};
	struct packet_mreq group = {
		.mr_ifindex = address.sll_ifindex,
		.mr_type = PACKET_MR_MULTICAST,
		.mr_alen = LINK_MAC_BYTES,
		.mr_address = {0x33, 0x33, 0xff, gid->raw[13], gid->raw[14], gid->raw[15]},
	};
	scoped_fd int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	static const int on = 1;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	(void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &on, sizeof(on)); // minimum size
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	// Requests about our IPv6 address go to a group; the membership ends with the socket.
	if (!frame_is_ip4(gid))
		(void)setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group));
	return scoped_release_fd(&fd);
}

// Name of one end of a memif; both ends know both names.
static void memif_name(const struct dpdk_args *args, bool server, size_t size, char *ret_name) {
	uint64_t hash = 0;

	for (const char *c = args->socket; *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x9e3779b97f4a7c15);
	snprintf(
		ret_name, size, "tocsin-memif-%016llx-%u-%s", (unsigned long long)hash,
		args->memif_id, server ? "server" : "client"
	);
}

static socklen_t address_abstract(const char *name, struct sockaddr_un *ret_address) {
	size_t length = strlen(name);

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

void dpdk_sleep_init(
	struct dpdk_sleep *sleep, const struct dpdk_args *args, const union ibv_gid *gid
) {
	*sleep = (struct dpdk_sleep){
		.kind = args->kind,
		.doorbell = -1,
		.ringer = -1,
		.step_ns = STEP_MIN_NS,
		.came = true,
	};
	if (args->kind == DPDK_AF_PACKET)
		sleep->doorbell = packet_doorbell(args->iface, gid);
	if (args->kind == DPDK_MEMIF) {
		scoped_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		struct sockaddr_un address;
		socklen_t length;
		char name[64];

		memif_name(args, !args->memif_server, sizeof(sleep->peer_name), sleep->peer_name);
		memif_name(args, args->memif_server, sizeof(name), name);
		length = address_abstract(name, &address);
		if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0)
			sleep->doorbell = scoped_release_fd(&fd);
		sleep->ringer = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
}

void dpdk_sleep_fini(struct dpdk_sleep *sleep) {
	if (sleep->doorbell >= 0)
		close(sleep->doorbell);
	if (sleep->ringer >= 0)
		close(sleep->ringer);
	sleep->doorbell = -1;
	sleep->ringer = -1;
}

static uint64_t time_earlier_ns(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

// Wait until one descriptor is readable or the time is over. Returns true if `ours` is readable.
static bool poll_doorbells(int ours, int doorbell, uint64_t timeout_ns) {
	struct pollfd fds[2] = {
		{.fd = doorbell, .events = POLLIN},
		{.fd = ours, .events = POLLIN},
	};
	struct timespec time = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	return ppoll(fds, 2, timeout_ns == UINT64_MAX ? NULL : &time, NULL) > 0 &&
	       fds[1].revents != 0;
}

static void socket_drain(int fd) {
	uint8_t byte;

	for (uint32_t i = 0; i < DRAIN_MAX; i++) {
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0)
			return;
	}
}

static void wait_steps(struct dpdk_sleep *sleep, int doorbell, uint64_t timeout_ns) {
	if (atomic_exchange_explicit(&sleep->came, false, memory_order_relaxed))
		sleep->step_ns = STEP_MIN_NS;
	poll_doorbells(-1, doorbell, time_earlier_ns(timeout_ns, sleep->step_ns));
	sleep->step_ns = (uint32_t)time_earlier_ns((uint64_t)2 * sleep->step_ns, STEP_MAX_NS);
}

// Only the holder of the device's lock can notify the peer. So this sets a flag, and the next turn
// sends the message before it receives frames.
static void wait_memif(struct dpdk_sleep *sleep, int doorbell, uint64_t timeout_ns) {
	if (!flag_get(&sleep->link)) {
		poll_doorbells(-1, doorbell, time_earlier_ns(timeout_ns, LINK_DOWN_NS));
	} else if (!flag_get(&sleep->armed) && !flag_get(&sleep->wanted)) {
		flag_set(&sleep->wanted, true);
	} else if (!flag_get(&sleep->armed) || !flag_get(&sleep->peer_can_ring)) {
		wait_steps(sleep, doorbell, timeout_ns);
	} else if (poll_doorbells(sleep->doorbell, doorbell, timeout_ns)) {
		socket_drain(sleep->doorbell);
		flag_set(&sleep->armed, false);
	}
}

void dpdk_sleep_wait(struct dpdk_sleep *sleep, int doorbell, uint64_t timeout_ns) {
	if (sleep->doorbell >= 0 && sleep->kind == DPDK_AF_PACKET) {
		// Packets that came before draining do not ring, so one turn must lie between
		// draining and sleeping.
		if (atomic_exchange_explicit(&sleep->came, false, memory_order_relaxed))
			socket_drain(sleep->doorbell);
		else if (poll_doorbells(sleep->doorbell, doorbell, timeout_ns))
			flag_set(&sleep->came, true);
	} else if (sleep->doorbell >= 0 && sleep->kind == DPDK_MEMIF) {
		wait_memif(sleep, doorbell, timeout_ns);
	} else {
		wait_steps(sleep, doorbell, timeout_ns);
	}
}

static void message_compose(
	enum sleep_message kind,
	uint32_t count,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
) {
	static const uint8_t everybody[LINK_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t *bytes = ret_frame + LINK_HEADER_BYTES;

	memset(ret_frame, 0, SLEEP_FRAME_BYTES);
	link_header(everybody, mac, SLEEP_TYPE, ret_frame);
	memcpy(bytes, magic, sizeof(magic));
	bytes[MESSAGE_KIND_AT] = (uint8_t)kind;
	link_put16(bytes + MESSAGE_COUNT_AT, count >> 16);
	link_put16(bytes + MESSAGE_COUNT_AT + 2, count & UINT16_MAX);
}

bool dpdk_sleep_compose_notice(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
) {
	if (!flag_get(&sleep->wanted))
		return false;
	message_compose(
		flag_get(&sleep->peer_can_ring) ? MESSAGE_SLEEPS : MESSAGE_SLEEPS_UNSURE,
		sleep->got, mac, ret_frame
	);
	return true;
}

void dpdk_sleep_record_notice_sent(struct dpdk_sleep *sleep) {
	flag_set(&sleep->armed, true);
	flag_set(&sleep->wanted, false);
}

static bool connect_to_peer(struct dpdk_sleep *sleep) {
	struct sockaddr_un address;
	socklen_t length = address_abstract(sleep->peer_name, &address);

	if (!sleep->peer_connected && sleep->ringer >= 0)
		sleep->peer_connected =
			connect(sleep->ringer, (struct sockaddr *)&address, length) == 0;
	return sleep->peer_connected;
}

// Ring the peer. A peer that restarted has a new socket, so reconnect once.
void dpdk_sleep_ring_peer(struct dpdk_sleep *sleep) {
	static const uint8_t byte = 1;

	for (uint32_t i = 0; i < 2 && connect_to_peer(sleep); i++) {
		if (send(sleep->ringer, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return;
		if (errno != ECONNREFUSED)
			return;
		sleep->peer_connected = false;
	}
}

// Handle the peer's sleep message. If it has not received all our frames, ring at once: it may no
// longer poll. If it was already rung for these frames, they were lost with an earlier link.
static void peer_sleeps(struct dpdk_sleep *sleep, uint32_t had) {
	if (had != sleep->sent && sleep->sent != sleep->rung_at) {
		sleep->rung_at = sleep->sent;
		dpdk_sleep_ring_peer(sleep);
		return;
	}
	sleep->sent = had;
	sleep->rung_at = had;
	sleep->peer_sleeps = true;
}

bool dpdk_sleep_handle_frame(
	struct dpdk_sleep *sleep,
	const uint8_t *bytes,
	size_t size,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
) {
	uint32_t kind;

	if (sleep->kind != DPDK_MEMIF || size < SLEEP_MESSAGE_BYTES)
		return false;
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	kind = bytes[MESSAGE_KIND_AT];
	if (kind == MESSAGE_CAN_RING)
		flag_set(&sleep->peer_can_ring, true);
	sleep->peer_confirmed_all |= kind == MESSAGE_ALL_RECEIVED;
	// All earlier frames in the ring are in this burst or an earlier one.
	if (kind == MESSAGE_LEAVES) {
		message_compose(MESSAGE_ALL_RECEIVED, 0, mac, ret_frame);
		return true;
	}
	if (kind != MESSAGE_SLEEPS && kind != MESSAGE_SLEEPS_UNSURE)
		return false;
	peer_sleeps(
		sleep, (uint32_t)link_get16(bytes + MESSAGE_COUNT_AT) << 16 |
			       link_get16(bytes + MESSAGE_COUNT_AT + 2)
	);
	if (kind == MESSAGE_SLEEPS || !connect_to_peer(sleep))
		return false;
	message_compose(MESSAGE_CAN_RING, 0, mac, ret_frame);
	return true;
}

void dpdk_sleep_count_received(struct dpdk_sleep *sleep, uint32_t count) {
	sleep->got += count;
	if (!flag_get(&sleep->came))
		flag_set(&sleep->came, true);
}

bool dpdk_sleep_compose_leave(
	struct dpdk_sleep *sleep,
	const uint8_t mac[static LINK_MAC_BYTES],
	uint8_t ret_frame[static SLEEP_FRAME_BYTES]
) {
	if (sleep->kind != DPDK_MEMIF)
		return false;
	sleep->peer_confirmed_all = false;
	message_compose(MESSAGE_LEAVES, 0, mac, ret_frame);
	return true;
}

void dpdk_sleep_count_sent(struct dpdk_sleep *sleep, uint32_t count) {
	sleep->sent += count;
	if (!sleep->peer_sleeps || count == 0)
		return;
	sleep->peer_sleeps = false;
	sleep->rung_at = sleep->sent;
	dpdk_sleep_ring_peer(sleep);
}

// Reset the state and ring, because the peer may still sleep from its time with our predecessor.
void dpdk_sleep_set_link(struct dpdk_sleep *sleep, bool up) {
	flag_set(&sleep->link, up);
	flag_set(&sleep->armed, false);
	flag_set(&sleep->wanted, false);
	flag_set(&sleep->peer_can_ring, false);
	sleep->peer_connected = false;
	sleep->peer_sleeps = false;
	if (up)
		dpdk_sleep_ring_peer(sleep);
}
