// SPDX-License-Identifier: BSD-3-Clause
// An ethdev of DPDK: EAL started if nobody did, the device attached, one queue each way, up.
//
// Drivers are linked in, or are plugins that EAL loads (dataplane/dpdk/meson.build). The first port
// starts EAL on a helper thread. EAL runs until the process ends, because it cannot be started
// again. The caller of every function holds the lock of the device that owns the port.
#pragma once

#include "nic/wire.h"
#include "wire/wire_dpdk_args.h"

#include <dataplane/dpdk.h>

#include <stdatomic.h>

// Supported drivers, as text for error messages. Every build accepts only these.
#define DPDK_DRIVERS                                               \
	"net_memif, net_af_packet, and for PCI addresses virtio, " \
	"vmxnet3, e1000, igb, ixgbe, i40e, ice, iavf"

// Whether there is such a port to be taken over, without EAL: -ENODEV (no such PCI device, no
// driver for this name), -EBUSY (it is not vfio-pci's), -ENOTSUP (no IOMMU); *ret_reason says it.
int dpdk_port_check(const struct dpdk_args *args, char ret_reason[static SOFT_HOLDER_MAX + 1]);
// The same by another directory than /sys/bus/pci/devices.
int dpdk_port_check_at(
	const struct dpdk_args *args,
	const char *pci_root,
	char ret_reason[static SOFT_HOLDER_MAX + 1]
);
// What stands behind a line of EAL's about a PCI device, where it is not plain; else NULL.
const char *dpdk_port_hint(const char *said);
void dpdk_port_say_unknown(const char *name, char ret_reason[static SOFT_HOLDER_MAX + 1]);

struct dpdk_port {
	struct dpdk_args args;
	uint16_t id;
	bool attached, started;
	bool link; // the cable's; of memif: somebody is at the other end
	bool gone; // the kernel wants the PCI device: it was given back, or is about to be
	_Atomic bool asked_back; // EAL's interrupt thread: set; with the device's lock: r
	uint64_t look_ns;	 // when to look at the link again; UINT64_MAX: never
	uint64_t knock_ns;	 // a client: not to be stopped before
	struct rte_mempool *pool;
	uint8_t mac[6];
	uint32_t frame_bytes; // the largest Ethernet frame
	uint32_t ring_frames;
};

// args is taken over as it is. -EEXIST, -ENODEV, -ENOMEM, -EIO, what DPDK says; *ret_reason says
// it in words. A memif client whose server is not there yet is opened, and started later. The link
// of a PCI port is waited for as long as most take to be negotiated. The port stays where it is.
int dpdk_port_open(
	const struct dpdk_args *args,
	char ret_reason[static SOFT_HOLDER_MAX + 1],
	struct dpdk_port *ret_port
);
// A port that is only zeroed is fine.
void dpdk_port_close(struct dpdk_port *port);

// Sees to the link: of a PCI port it is read now and then, and the port is given back if the kernel
// asks for its device, which waits for that; of memif a client tries to reach its server again.
// True if the link has just come up. Cheap; to be called each turn.
bool dpdk_port_tend(struct dpdk_port *port, uint64_t now_ns);

// Bursts: how many frames came, and how many were taken over.
uint16_t dpdk_port_receive(struct dpdk_port *port, struct rte_mbuf **ret_frames, uint16_t max);
uint16_t dpdk_port_send(struct dpdk_port *port, struct rte_mbuf **frames, uint16_t count);
