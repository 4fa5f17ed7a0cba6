// SPDX-License-Identifier: BSD-3-Clause
#include "wire_dpdk_port.h"

#include "link.h"

#include <dataplane/eal.h>
#include <dataplane/foreign_error.h>
#include <dataplane/memif_guard.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Without huge pages: fixed in size, touched where it is used.
#define EAL_MIB 64
#define FRAME_WANTED (LINK_HEADER_BYTES + FRAME_BYTES_MAX)
// Received and not given back yet, as many again that a burst takes ahead, to be sent, and those
// that wait for a neighbour. A physical port has as many more in its rings.
#define POOL_MBUFS 255
#define POOL_MBUFS_PHYSICAL (POOL_MBUFS + 2 * DESCRIPTORS)
#define DESCRIPTORS 1024
#define ANY_SOCKET ((unsigned)SOCKET_ID_ANY)
// How often to look whether the other end of a memif is there: one that waits for it, and one that
// has it. Between two tries to reach it lies what the driver may need for its greetings.
#define LOOK_DOWN_NS UINT64_C(50000000)
#define LOOK_UP_NS UINT64_C(500000000)
#define KNOCK_NS UINT64_C(200000000)

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
// The first error in DPDK's own words since we began, for the others follow from it; under its
// lock, written on whichever thread has something to say.
static struct {
	pthread_mutex_t lock;
	char line[SOFT_HOLDER_MAX + 1];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void listen_to_eal(uint32_t level, const char *line, size_t length) {
	if (level > EAL_LOG_ERROR)
		return;
	pthread_mutex_lock(&said.lock);
	if (said.line[0] == '\0')
		snprintf(said.line, sizeof(said.line), "%.*s", (int)length, line);
	pthread_mutex_unlock(&said.lock);
}

__attribute__((format(printf, 2, 3))) static void
tell(char ret_reason[static SOFT_HOLDER_MAX + 1], const char *format, ...) {
	size_t length;
	va_list list;

	va_start(list, format);
	vsnprintf(ret_reason, SOFT_HOLDER_MAX + 1, format, list);
	va_end(list);
	pthread_mutex_lock(&said.lock);
	length = strlen(ret_reason);
	if (said.line[0] != '\0')
		snprintf(ret_reason + length, SOFT_HOLDER_MAX + 1 - length, ": %s", said.line);
	said.line[0] = '\0';
	pthread_mutex_unlock(&said.lock);
}

static int start_eal_once(bool pci) {
	struct eal_config config = {
		.memory = EAL_MEMORY_PLAIN,
		.memory_mib = EAL_MIB,
		.log = listen_to_eal,
		.bare = true,
		.pci = pci,
	};
	struct eal_facts facts;
	char name[32];

	if (eal_runs())
		return 0;
	snprintf(name, sizeof(name), "soft-%d", getpid());
	config.name = name;
	return eal_start(&config, &facts);
}

static int start_eal(bool pci, char ret_reason[static SOFT_HOLDER_MAX + 1]) {
	int err;

	pthread_mutex_lock(&start_lock);
	err = start_eal_once(pci);
	pthread_mutex_unlock(&start_lock);
	if (err != 0)
		tell(ret_reason, "DPDK does not start");
	return err;
}

// A device that was probed, but is no port under its own name, is given back.
static void remove_probed(const char *text) {
	struct rte_devargs devargs = {0};

	if (rte_devargs_parse(&devargs, text) == 0)
		(void)rte_eal_hotplug_remove(rte_bus_name(devargs.bus), devargs.name);
	free(devargs.data);
}

static int attach(struct dpdk_port *port, char ret_reason[static SOFT_HOLDER_MAX + 1]) {
	const char *name = port->args.name;
	int err = dpdk_port_check(&port->args, ret_reason);

	if (err != 0)
		return err;
	if (rte_eth_dev_get_port_by_name(name, &port->id) == 0) {
		tell(ret_reason, "the DPDK port %s is in use", name);
		return -EEXIST;
	}
	err = dpdk_error_from_code(rte_dev_probe(port->args.devargs));
	if (err != 0) {
		tell(ret_reason, "the DPDK port %s cannot be attached", name);
		return err;
	}
	err = dpdk_error_from_code(rte_eth_dev_get_port_by_name(name, &port->id));
	if (err != 0) {
		remove_probed(port->args.devargs);
		dpdk_port_say_unknown(name, ret_reason);
	}
	port->attached = err == 0;
	return err;
}

// The pool is only used with the device's lock: one producer and one consumer at a time.
static int make_pool(struct dpdk_port *port) {
	uint32_t count = port->args.kind == DPDK_PCI ? POOL_MBUFS_PHYSICAL : POOL_MBUFS;
	uint32_t room =
		port->args.buffer_bytes > FRAME_WANTED ? port->args.buffer_bytes : FRAME_WANTED;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "tocsin-wire-%u", port->id);
	port->pool = rte_pktmbuf_pool_create_by_ops(
		name, count, 0, 0, (uint16_t)(room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY,
		"ring_sp_sc"
	);
	return dpdk_error_from_object(port->pool);
}

static int set_up(struct dpdk_port *port) {
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
	int err = dpdk_error_from_code(rte_eth_dev_info_get(port->id, &info));

	if (err != 0)
		return err;
	if (port->args.frame_bytes == 0) {
		conf.rxmode.mtu = info.max_mtu < FRAME_BYTES_MAX ? info.max_mtu : FRAME_BYTES_MAX;
		port->frame_bytes = LINK_HEADER_BYTES + conf.rxmode.mtu;
	}
	err = dpdk_error_from_code(rte_eth_dev_configure(port->id, 1, 1, &conf));
	if (err == 0)
		err = dpdk_error_from_code(
			rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &receive, &send)
		);
	if (err == 0)
		err = make_pool(port);
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

static int come_up(struct dpdk_port *port) {
	struct rte_ether_addr mac;
	int err = dpdk_error_from_code(rte_eth_macaddr_get(port->id, &mac));

	if (err != 0)
		return err;
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	if (port->args.kind == DPDK_MEMIF)
		return 0; // dpdk_port_tend() starts it
	err = dpdk_error_from_code(rte_eth_dev_start(port->id));
	port->started = err == 0;
	port->link = port->started;
	// Questions of Neighbour Discovery come to groups.
	if (port->started && port->args.kind != DPDK_AF_PACKET)
		(void)rte_eth_allmulticast_enable(port->id);
	return err;
}

int dpdk_port_open(
	const struct dpdk_args *args,
	char ret_reason[static SOFT_HOLDER_MAX + 1],
	struct dpdk_port *ret_port
) {
	struct dpdk_port port = {
		.args = *args,
		.frame_bytes = args->frame_bytes,
		.ring_frames = args->ring_frames,
		.look_ns = args->kind == DPDK_MEMIF ? 0 : UINT64_MAX,
	};
	int err;

	pthread_mutex_lock(&said.lock);
	said.line[0] = '\0';
	pthread_mutex_unlock(&said.lock);
	err = start_eal(args->kind == DPDK_PCI, ret_reason);
	if (err == 0)
		err = attach(&port, ret_reason);
	if (err != 0)
		return err;
	err = set_up(&port);
	if (err == 0)
		err = come_up(&port);
	if (err != 0) {
		tell(ret_reason, "the DPDK port %s cannot be set up", args->name);
		dpdk_port_close(&port);
		return err;
	}
	*ret_port = port;
	return 0;
}

void dpdk_port_close(struct dpdk_port *port) {
	struct rte_eth_dev_info info;

	if (!port->attached)
		return;
	if (port->started)
		(void)rte_eth_dev_stop(port->id);
	// Its device goes with it, so that the name is free again.
	if (rte_eth_dev_info_get(port->id, &info) == 0)
		(void)rte_dev_remove(info.device);
	rte_mempool_free(port->pool);
	port->attached = false;
	port->started = false;
	port->pool = NULL;
}

// A client whose connection ended, or never came about, has to be stopped before it can start
// again; a server waits.
static void knock(struct dpdk_port *port, uint64_t now_ns) {
	if (port->started && (port->args.memif_server || now_ns < port->knock_ns))
		return;
	if (port->started)
		(void)rte_eth_dev_stop(port->id);
	port->started = rte_eth_dev_start(port->id) == 0;
	port->knock_ns = now_ns + KNOCK_NS;
}

bool dpdk_port_tend(struct dpdk_port *port, uint64_t now_ns) {
	struct rte_eth_link link;
	bool before = port->link;

	if (port->args.kind != DPDK_MEMIF || now_ns < port->look_ns)
		return false;
	port->link = port->started && rte_eth_link_get_nowait(port->id, &link) == 0 &&
		     link.link_status == RTE_ETH_LINK_UP;
	port->look_ns = now_ns + (port->link ? LOOK_UP_NS : LOOK_DOWN_NS);
	// Not in the turn that saw it end: the driver may still be clearing up.
	if (!port->link && !before)
		knock(port, now_ns);
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
