// SPDX-License-Identifier: BSD-3-Clause
// Watches the interface under a wire: a thread sleeps until the kernel reports a change of
// interfaces or addresses, then checks and informs the device.
//
// Each open device has one if its wire uses an interface that can disappear: not loopback
// addresses, memif, or ports without an interface. A UDP wire works again when its interface
// returns. A DPDK port on a removed interface never does.
#include "engine/port_watch.h"

#include "transport/cq.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/netif/watch.h>
#include <lib/thread.h>

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// When an interface comes up, the kernel sends several reports in a row.
#define QUIET_NS UINT64_C(50000000)
#define LIMIT_NS UINT64_C(500000000)

struct port_watch {
	struct soft_nic *nic;
	bool by_address;	  // udp: the interface that has the address
	struct sock_addr address; // without a port
	char netdev[IF_NAMESIZE]; // dpdk
	unsigned int index;
	struct netif_watch *changes;
	int stop; // an eventfd
	bool running;
	pthread_t thread;
};

void nic_port_report_locked(struct soft_nic *nic, enum nic_port port) {
	struct ibv_async_event event = {
		.element.port_num = 1,
		.event_type = port == NIC_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE
			      : port == NIC_PORT_DOWN ? IBV_EVENT_PORT_ERR
						      : IBV_EVENT_DEVICE_FATAL,
	};

	if (nic->port == port || nic->port == NIC_PORT_GONE)
		return;
	nic->port = port;
	for (struct soft_context *context = nic->opened; context != NULL; context = context->next)
		async_raise_event(context, &event);
}

void nic_port_report(struct soft_nic *nic, enum nic_port port) {
	nic_lock(nic);
	nic_port_report_locked(nic, port);
	nic_unlock(nic);
}

static bool entry_is_watched(const struct port_watch *watch, const struct ifaddrs *entry) {
	struct sock_addr found;

	if (!watch->by_address)
		return strcmp(entry->ifa_name, watch->netdev) == 0;
	if (entry->ifa_addr == NULL ||
	    sock_addr_from_sockaddr(entry->ifa_addr, sizeof(struct sockaddr_in6), &found) != 0)
		return false;
	found.port = watch->address.port;
	return sock_addr_equal(&found, &watch->address);
}

static enum nic_port interface_state(const struct port_watch *watch) {
	enum nic_port port = NIC_PORT_DOWN;
	struct ifaddrs *list;

	if (!watch->by_address && if_nametoindex(watch->netdev) != watch->index)
		return NIC_PORT_GONE;
	if (getifaddrs(&list) != 0)
		return NIC_PORT_ACTIVE; // unknown, so assume active
	for (const struct ifaddrs *entry = list; entry != NULL; entry = entry->ifa_next) {
		if (entry_is_watched(watch, entry) && (entry->ifa_flags & IFF_UP) != 0 &&
		    (entry->ifa_flags & IFF_RUNNING) != 0)
			port = NIC_PORT_ACTIVE;
	}
	freeifaddrs(list);
	return port;
}

// Report each change until the watch is stopped, or no more changes can be received.
static void *watch_run(void *arg) {
	struct port_watch *watch = arg;
	struct netif_watch_event event;

	for (;;) {
		struct pollfd fds[] = {
			{.fd = netif_watch_fd(watch->changes), .events = POLLIN},
			{.fd = watch->stop, .events = POLLIN},
		};
		struct deadline deadline = netif_watch_deadline(watch->changes);
		uint64_t now_ns = clock_monotonic_ns();

		(void)!poll(fds, 2, deadline_poll_timeout_ms(deadline, now_ns));
		if (fds[1].revents != 0)
			return NULL;
		now_ns = clock_monotonic_ns();
		if (fds[0].revents != 0 && netif_watch_read(watch->changes, now_ns) != 0)
			return NULL;
		if (netif_watch_consume(watch->changes, now_ns, &event))
			nic_port_report(watch->nic, interface_state(watch));
	}
}

static bool port_can_disappear(const struct soft_nic *nic) {
	const struct soft_wire *wire = nic->wire;

	if (wire->netdev[0] == '\0' || nic->config.clock != NULL)
		return false;
	return nic->config.wire == SOFT_WIRE_DPDK || !sock_addr_is_loopback(&wire->address);
}

struct port_watch *port_watch_start(struct soft_nic *nic) {
	struct port_watch *watch;

	if (!port_can_disappear(nic))
		return NULL;
	watch = calloc(1, sizeof(*watch));
	if (watch == NULL)
		return NULL;
	watch->nic = nic;
	watch->by_address = nic->config.wire == SOFT_WIRE_UDP;
	watch->address = nic->wire->address;
	memcpy(watch->netdev, nic->wire->netdev, sizeof(watch->netdev));
	watch->index = if_nametoindex(watch->netdev);
	watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	// Subscribe before the first check, so that no change is missed.
	if (watch->stop < 0 || netif_watch_create(QUIET_NS, LIMIT_NS, &watch->changes) != 0)
		return port_watch_stop(watch);
	nic_port_report(nic, interface_state(watch));

	watch->running = thread_start_masked("tocsin-port", watch_run, watch, &watch->thread) == 0;
	return watch->running ? watch : port_watch_stop(watch);
}

struct port_watch *port_watch_stop(struct port_watch *watch) {
	const uint64_t one = 1;

	if (watch == NULL)
		return NULL;
	if (watch->running) {
		(void)!write(watch->stop, &one, sizeof(one));
		pthread_join(watch->thread, NULL);
	}
	netif_watch_destroy(watch->changes);
	if (watch->stop >= 0)
		close(watch->stop);
	free(watch);
	return NULL;
}
