// SPDX-License-Identifier: BSD-3-Clause
// A DPDK ethdev: starts EAL if needed, attaches the device, and sets up one queue per direction.
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

// Check without EAL whether the port exists and can be taken over. Returns -ENODEV (no such PCI
// device, or no driver for this name), -EBUSY (not bound to vfio-pci) or -ENOTSUP (no IOMMU);
// *ret_reason explains the error.
int dpdk_port_check(const struct dpdk_args *args, char ret_reason[static SOFT_REASON_MAX + 1]);
// The same with another directory than /sys/bus/pci/devices.
int dpdk_port_check_at(
	const struct dpdk_args *args,
	const char *pci_root,
	char ret_reason[static SOFT_REASON_MAX + 1]
);
// Return the explanation of an obscure EAL log line about a PCI device, or NULL.
const char *dpdk_port_error_hint(const char *said);
void dpdk_port_format_unknown(const char *name, char ret_reason[static SOFT_REASON_MAX + 1]);

struct dpdk_port {
	struct dpdk_args args;
	uint16_t id;
	bool attached, started;
	bool link; // link state; for memif: a peer is connected
	bool gone; // the kernel requested the PCI device: it was returned or soon will be
	_Atomic bool
		removal_requested; // set by EAL's interrupt thread, read with the device's lock
	uint64_t look_ns;	   // time of the next link check; UINT64_MAX: never
	uint64_t reconnect_not_before_ns; // for a memif client: do not stop it before this time
	struct rte_mempool *pool;
	uint8_t mac[6];
	uint32_t frame_bytes; // largest Ethernet frame
	uint32_t ring_frames;
};

// Open a port; args is copied. Returns -EEXIST, -ENODEV, -ENOMEM, -EIO, or DPDK's error;
// *ret_reason explains it. A memif client without a server is opened and started later. For a PCI
// port this waits for link negotiation, as long as most links need. The port must not be moved
// afterwards.
int dpdk_port_open(
	const struct dpdk_args *args,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct dpdk_port *ret_port
);
// Close a port; one that is only zeroed is fine.
void dpdk_port_close(struct dpdk_port *port);

// Maintain the link; call in each turn, cheap. A PCI link is read now and then; if the kernel
// requests the device, the port is returned, for which the kernel waits. A memif client reconnects
// to its server. Returns true if the link has just come up.
bool dpdk_port_maintain(struct dpdk_port *port, uint64_t now_ns);

// Receive or send a burst. Returns the number of frames received or accepted.
uint16_t dpdk_port_receive(struct dpdk_port *port, struct rte_mbuf **ret_frames, uint16_t max);
uint16_t dpdk_port_send(struct dpdk_port *port, struct rte_mbuf **frames, uint16_t count);
