// SPDX-License-Identifier: BSD-3-Clause
// Opens, sets up and closes a DPDK port.
#include "wire/wire_dpdk_port.h"

#include "wire/link.h"

#include <dataplane/eal.h>
#include <dataplane/foreign_error.h>
#include <dataplane/memif_guard.h>
#include <lib/clock.h>

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Memory without huge pages: fixed in size, but only touched where used.
#define EAL_MIB 64
#define FRAME_WANTED (LINK_HEADER_BYTES + FRAME_BYTES_MAX)
// Buffers: one batch received, one received ahead by a burst, one to be sent, and held packets. A
// physical port also fills its descriptor rings.
#define POOL_MBUFS 255
#define POOL_MBUFS_PHYSICAL (POOL_MBUFS + 2 * DESCRIPTORS)
#define DESCRIPTORS 1024
#define ANY_SOCKET ((unsigned)SOCKET_ID_ANY)
// Interval of link checks of a memif without and with a peer. Two connection attempts are far
// enough apart for the driver's handshake.
#define LINK_CHECK_DOWN_NS UINT64_C(50000000)
#define LINK_CHECK_UP_NS UINT64_C(500000000)
#define MEMIF_RECONNECT_NS UINT64_C(200000000)
// PCI ports: reading the PHY takes some drivers 100 us. Most links come up within NEGOTIATE_NS
// after the start.
#define LINK_CHECK_PCI_NS UINT64_C(250000000)
#define NEGOTIATE_NS UINT64_C(3000000000)
#define NEGOTIATE_LOOK_US 10000
// Extra room around a packet: VLAN tags, a checksum, a virtio header.
#define BUFFER_AROUND 64

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
// First error line that DPDK logged since the port was opened; later errors follow from it. Guarded
// by its lock, because any thread may log.
static struct {
	pthread_mutex_t lock;
	char line[SOFT_REASON_MAX + 1];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void eal_keep_first_error(uint32_t level, const char *line, size_t length) {
	if (level > EAL_LOG_ERROR)
		return;
	pthread_mutex_lock(&said.lock);
	if (said.line[0] == '\0')
		snprintf(said.line, sizeof(said.line), "%.*s", (int)length, line);
	pthread_mutex_unlock(&said.lock);
}

__attribute__((format(printf, 2, 3))) static void
port_format_reason(char ret_reason[static SOFT_REASON_MAX + 1], const char *format, ...) {
	size_t length;
	va_list list;

	va_start(list, format);
	vsnprintf(ret_reason, SOFT_REASON_MAX + 1, format, list);
	va_end(list);
	pthread_mutex_lock(&said.lock);
	length = strlen(ret_reason);
	if (said.line[0] != '\0')
		snprintf(ret_reason + length, SOFT_REASON_MAX + 1 - length, ": %s", said.line);
	said.line[0] = '\0';
	pthread_mutex_unlock(&said.lock);
}

static int start_eal(bool pci, char ret_reason[static SOFT_REASON_MAX + 1]) {
	char name[32];
	struct eal_config config = {
		.name = name,
		.memory = EAL_MEMORY_PLAIN,
		.memory_mib = EAL_MIB,
		.log = eal_keep_first_error,
		.bare = true,
		.loads_drivers = true,
		.pci = pci,
	};
	struct eal_facts facts;
	int err = 0;

	snprintf(name, sizeof(name), "soft-%d", getpid());
	pthread_mutex_lock(&start_lock);
	if (!eal_is_running())
		err = eal_start(&config, &facts);
	pthread_mutex_unlock(&start_lock);
	if (err != 0)
		port_format_reason(ret_reason, "DPDK does not start");
	return err;
}

static int device_attach(struct dpdk_port *port, char ret_reason[static SOFT_REASON_MAX + 1]) {
	const char *name = port->args.name;
	int err = dpdk_port_check(&port->args, ret_reason);

	if (err != 0)
		return err;
	if (rte_eth_dev_get_port_by_name(name, &port->id) == 0) {
		port_format_reason(ret_reason, "the DPDK port %s is in use", name);
		return -EEXIST;
	}
	err = dpdk_error_from_code(rte_dev_probe(port->args.devargs));
	if (err != 0) {
		const char *hint;

		pthread_mutex_lock(&said.lock);
		hint = dpdk_port_error_hint(said.line);
		pthread_mutex_unlock(&said.lock);
		port_format_reason(
			ret_reason, "the DPDK port %s cannot be attached%s%s", name,
			hint != NULL ? ", " : "", hint != NULL ? hint : ""
		);
		return err;
	}
	err = dpdk_error_from_code(rte_eth_dev_get_port_by_name(name, &port->id));
	// Remove the device: it was probed, but is no port under its own name.
	if (err != 0) {
		struct rte_devargs devargs = {0};

		if (rte_devargs_parse(&devargs, port->args.devargs) == 0)
			(void)rte_eal_hotplug_remove(rte_bus_name(devargs.bus), devargs.name);
		free(devargs.data);
		dpdk_port_format_unknown(name, ret_reason);
	}
	port->attached = err == 0;
	return err;
}

// The pool is used only with the device's lock: one producer and one consumer at a time.
static int port_create_pool(struct dpdk_port *port) {
	uint32_t count = port->args.kind == DPDK_PCI ? POOL_MBUFS_PHYSICAL : POOL_MBUFS;
	uint32_t room =
		port->args.buffer_bytes > FRAME_WANTED ? port->args.buffer_bytes : FRAME_WANTED;
	char name[RTE_MEMPOOL_NAMESIZE];

	// PCI hardware supports powers of two or whole KiB. For other sizes it uses less and needs
	// two buffers per frame.
	if (port->args.kind == DPDK_PCI) {
		room = 2048;
		while (room < port->frame_bytes + BUFFER_AROUND)
			room *= 2;
	}
	snprintf(name, sizeof(name), "tocsin-wire-%u", port->id);
	port->pool = rte_pktmbuf_pool_create_by_ops(
		name, count, 0, 0, (uint16_t)(room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY,
		"ring_sp_sc"
	);
	return dpdk_error_from_object(port->pool);
}

static int port_configure(struct dpdk_port *port) {
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
	int err = dpdk_error_from_code(rte_eth_dev_info_get(port->id, &info));

	if (err != 0)
		return err;
	if (port->args.frame_bytes == 0) {
		conf.rxmode.mtu = port->args.mtu != 0 ? port->args.mtu : FRAME_BYTES_MAX;
		if (info.max_mtu < conf.rxmode.mtu)
			conf.rxmode.mtu = info.max_mtu;
		port->frame_bytes = LINK_HEADER_BYTES + conf.rxmode.mtu;
	}
	err = dpdk_error_from_code(rte_eth_dev_configure(port->id, 1, 1, &conf));
	if (err == 0)
		err = dpdk_error_from_code(
			rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &receive, &send)
		);
	if (err == 0)
		err = port_create_pool(port);
	if (err == 0)
		err = dpdk_error_from_code(
			rte_eth_rx_queue_setup(port->id, 0, receive, ANY_SOCKET, NULL, port->pool)
		);
	if (err == 0)
		err = dpdk_error_from_code(
			rte_eth_tx_queue_setup(port->id, 0, send, ANY_SOCKET, NULL)
		);
	if (port->ring_frames == 0)
		port->ring_frames = receive;
	return err;
}

static bool link_is_up(const struct dpdk_port *port) {
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

// Wait for the link of a port that was just started, because programs check it only once.
static bool link_wait_up(const struct dpdk_port *port) {
	uint64_t end_ns = clock_monotonic_ns() + NEGOTIATE_NS;

	while (!link_is_up(port)) {
		if (clock_monotonic_ns() >= end_ns)
			return false;
		usleep(NEGOTIATE_LOOK_US);
	}
	return true;
}

static int port_start(struct dpdk_port *port) {
	struct rte_ether_addr mac;
	int err = dpdk_error_from_code(rte_eth_macaddr_get(port->id, &mac));

	if (err != 0)
		return err;
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	if (port->args.kind == DPDK_MEMIF)
		return 0; // dpdk_port_maintain() starts it
	err = dpdk_error_from_code(rte_eth_dev_start(port->id));
	port->started = err == 0;
	port->link = port->started && (port->args.kind != DPDK_PCI || link_wait_up(port));
	// Neighbour Discovery requests arrive at multicast groups.
	if (port->started && port->args.kind != DPDK_AF_PACKET)
		(void)rte_eth_allmulticast_enable(port->id);
	return err;
}

static void on_device_event(const char *name, enum rte_dev_event_type type, void *arg) {
	struct dpdk_port *port = arg;

	(void)name;
	// Relaxed: the flag publishes no other data.
	if (type == RTE_DEV_EVENT_REMOVE)
		atomic_store_explicit(&port->removal_requested, true, memory_order_relaxed);
}

// Experimental in DPDK 22.11; all later versions have both functions.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void removal_subscribe(struct dpdk_port *port) {
	(void)rte_dev_event_callback_register(port->args.name, on_device_event, port);
}

// Unregistering returns -EAGAIN while the callback runs.
static void removal_unsubscribe(struct dpdk_port *port) {
	while (rte_dev_event_callback_unregister(port->args.name, on_device_event, port) == -EAGAIN)
		sched_yield();
}
#pragma GCC diagnostic pop

int dpdk_port_open(
	const struct dpdk_args *args,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct dpdk_port *ret_port
) {
	struct dpdk_port port = {
		.args = *args,
		.frame_bytes = args->frame_bytes,
		.ring_frames = args->ring_frames,
		.look_ns = args->kind == DPDK_MEMIF || args->kind == DPDK_PCI ? 0 : UINT64_MAX,
	};
	int err;

	pthread_mutex_lock(&said.lock);
	said.line[0] = '\0';
	pthread_mutex_unlock(&said.lock);
	err = start_eal(args->kind == DPDK_PCI, ret_reason);
	if (err == 0)
		err = device_attach(&port, ret_reason);
	if (err != 0)
		return err;
	err = port_configure(&port);
	if (err == 0)
		err = port_start(&port);
	if (err != 0) {
		port_format_reason(ret_reason, "the DPDK port %s cannot be set up", args->name);
		dpdk_port_close(&port);
		return err;
	}
	*ret_port = port;
	if (args->kind == DPDK_PCI)
		removal_subscribe(ret_port);
	return 0;
}

// Remove the device too, so that the name is free again.
static int device_detach(struct dpdk_port *port) {
	struct rte_eth_dev_info info;
	int err;

	if (!port->attached)
		return 0;
	if (port->started)
		(void)rte_eth_dev_stop(port->id);
	port->started = false;
	err = rte_eth_dev_info_get(port->id, &info);
	if (err == 0)
		err = rte_dev_remove(info.device);
	port->attached = err != 0;
	return err;
}

void dpdk_port_close(struct dpdk_port *port) {
	if (port->args.kind == DPDK_PCI)
		removal_unsubscribe(port);
	(void)device_detach(port);
	port->attached = false;
	rte_mempool_free(port->pool);
	port->pool = NULL;
}

static bool port_check_link(struct dpdk_port *port, uint64_t now_ns) {
	bool before = port->link;

	if (now_ns < port->look_ns)
		return false;
	// Return the device that the kernel requested; the kernel waits for this. The turn that
	// notices the request only marks it: EAL's thread may still be in the handler and would
	// refuse.
	if (atomic_load_explicit(&port->removal_requested, memory_order_relaxed)) {
		bool given = port->gone && device_detach(port) == 0;

		port->look_ns = given ? UINT64_MAX : now_ns + LINK_CHECK_DOWN_NS;
		port->gone = true;
		port->link = false;
		return false;
	}
	port->link = link_is_up(port);
	port->look_ns = now_ns + (port->link ? LINK_CHECK_PCI_NS : LINK_CHECK_DOWN_NS);
	return port->link && !before;
}

bool dpdk_port_maintain(struct dpdk_port *port, uint64_t now_ns) {
	bool before = port->link;

	if (port->args.kind == DPDK_PCI)
		return port_check_link(port, now_ns);
	if (port->args.kind != DPDK_MEMIF || now_ns < port->look_ns)
		return false;
	port->link = port->started && link_is_up(port);
	port->look_ns = now_ns + (port->link ? LINK_CHECK_UP_NS : LINK_CHECK_DOWN_NS);
	// Connect to the peer, but not in the turn that saw the link go down: the driver may still
	// be cleaning up. A client must be stopped before it can start again; a server waits.
	if (!port->link && !before &&
	    (!port->started || (!port->args.memif_server && now_ns >= port->reconnect_not_before_ns)
	    )) {
		if (port->started)
			(void)rte_eth_dev_stop(port->id);
		port->started = rte_eth_dev_start(port->id) == 0;
		port->reconnect_not_before_ns = now_ns + MEMIF_RECONNECT_NS;
	}
	return port->link && !before;
}

uint16_t dpdk_port_receive(struct dpdk_port *port, struct rte_mbuf **ret_frames, uint16_t max) {
	uint16_t count;

	if (!port->started)
		return 0;
	if (port->args.kind != DPDK_MEMIF)
		return rte_eth_rx_burst(port->id, 0, ret_frames, max);
	memif_guard_enter(port->id);
	count = rte_eth_rx_burst(port->id, 0, ret_frames, max);
	memif_guard_leave(port->id);
	return count;
}

uint16_t dpdk_port_send(struct dpdk_port *port, struct rte_mbuf **frames, uint16_t count) {
	uint16_t taken;

	if (!port->started)
		return 0;
	if (port->args.kind != DPDK_MEMIF)
		return rte_eth_tx_burst(port->id, 0, frames, count);
	memif_guard_enter(port->id);
	taken = rte_eth_tx_burst(port->id, 0, frames, count);
	memif_guard_leave(port->id);
	return taken;
}
