// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices: the list of devices, and an open device with the port, the GID and the limits that
// its pairs use.
//
// All calls are cold and enter the driver, so they run on the device's keeper. An open device is
// reference counted. Its facts are constant except those of the port, which device_refresh() reads
// again. A caller that needs port facts on another thread keeps a copy.
#pragma once

#include <dataplane/verbs_calls.h>

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_NAME_MAX 31 // limit of the overlay's messages; the kernel allows 63
#define DEVICE_PATH_MAX 255
#define DEVICE_REASON_MAX 159
#define DEVICE_GID_AUTO (-1)
#define DEVICE_PKEY_AUTO (-1)

// Component that answers incoming one-sided operations. With IN_PROCESS the answers stop when the
// agent ends, so silence does not distinguish a dead host from a dead agent.
enum device_responder {
	DEVICE_RESPONDER_HARDWARE,
	DEVICE_RESPONDER_KERNEL,
	DEVICE_RESPONDER_IN_PROCESS,
};

// Settings of a section [device NAME]. A value that the device does not support is -EINVAL with a
// reason; it is never adjusted.
struct device_settings {
	uint8_t port;  // 0: the first active port, else the first
	int gid_index; // DEVICE_GID_AUTO: chosen by type and scope
	uint16_t mtu;  // bytes, 256 to 4096; 0: that of the port
	uint8_t traffic_class;
	uint8_t service_level; // 0 to 15
	uint8_t timeout;       // 4.096 us * 2^timeout, 0 to 31; 0 is infinite
	uint8_t retry;	       // 0 to 7; 7 is infinite with Soft-RoCE
	uint8_t rnr_retry;     // 0 to 7; 7 is infinite
	uint8_t min_rnr_timer; // 0 to 31; 0 is the longest, 655 ms
	int pkey_index;	       // DEVICE_PKEY_AUTO: the first full membership, else the first entry
};

extern const struct device_settings device_settings_default; // retry 6, timeout 14, min_rnr 12

enum device_link {
	DEVICE_LINK_INFINIBAND,
	DEVICE_LINK_ETHERNET,
};

// Network of a port; it distinguishes rails.
enum device_subnet_kind {
	DEVICE_SUBNET_UNKNOWN,
	DEVICE_SUBNET_INFINIBAND, // subnet prefix
	DEVICE_SUBNET_IP,	  // address block of the interface
};

struct device_subnet {
	enum device_subnet_kind kind;
	// Prefix length of an IPv6 address; IPv4 is mapped, with 96 bits before it
	uint8_t bits;
	uint8_t bytes[16]; // network address, 0 past the prefix
};

#define DEVICE_SUBNET_TEXT_MAX 49

struct device_port {
	uint8_t number;
	enum ibv_port_state state;
	enum device_link link;
	uint16_t lid;	     // 0: the port has only a GID
	uint16_t active_mtu; // bytes; used by pairs, at most the setting
	bool grh_needed;     // InfiniBand: packets need a GRH, a LID alone is not enough
	uint32_t speed_mbps; // width x speed; 0: unknown
	int gid_index;	     // -1: no GID is usable
	uint32_t gid_type;   // enum ibv_gid_type of verbs
	union ibv_gid gid;
	int pkey_index; // -1: none
	uint16_t pkey;	// bit 15: full member of the partition in the lower 15 bits
	struct device_subnet subnet;
	uint64_t message_max; // largest operation, bytes
};

// Limits of a device. A limit that pairs need is never 0: such a device is unusable, with a reason.
struct device_limits {
	uint32_t pair_max;
	uint32_t queue_depth_max; // work requests of one queue
	uint32_t completions_max; // entries of one completion queue
	uint32_t sge_max;
	uint32_t regions_max;
	uint64_t region_bytes_max;
	uint8_t reads_out_max; // own reads and atomics in flight, per pair
	uint8_t reads_in_max;  // reads and atomics of the peer in flight, per pair
	bool atomics;
};

// Facts about a device, open or not.
struct device_facts {
	char name[DEVICE_NAME_MAX + 1];
	char path[DEVICE_PATH_MAX + 1]; // its directory in /sys; "": none
	char pci[16];			// "0000:17:00.0"; "": none
	char netdev[16];		// interface of the chosen port; "": unknown
	int numa_node;			// -1: unknown
	uint32_t vendor_id;
	enum ibv_transport_type transport;
	uint64_t guid; // node GUID, as a number; 0: unknown, or several listed devices share it
	enum device_responder responder;
	uint8_t port_count; // 0: unknown
	bool usable;	    // has RC, an active port, a GID or LID, and sufficient limits
	bool awaits_port;   // unusable only because no port is active: -ENETDOWN
	char reason[DEVICE_REASON_MAX + 1]; // why the device is unusable, as text
	struct device_port port;
	struct device_limits limits;
};

// List all devices, examined with these settings (NULL: the defaults). A device that cannot be
// opened is listed with that error as its reason. The caller frees *ret_facts. A kernel without
// RDMA yields a count of 0. Returns 0, -ENOMEM, or the driver's error.
int device_list(
	const struct verbs_calls *calls,
	const struct device_settings *settings,
	struct device_facts **ret_facts,
	uint32_t *ret_count
);

// Return a value as text: "hardware", "kernel", "in-process"; "InfiniBand", "Ethernet"; "active",
// "down". The transport is "IB" for InfiniBand and RoCE, else "iWARP", "usNIC", or "vendor" for
// EFA. Unknown values are "unknown".
const char *device_responder_name(enum device_responder responder);
const char *device_link_name(enum device_link link);
const char *device_port_state_name(enum ibv_port_state state);
const char *device_transport_name(enum ibv_transport_type transport);

// Return the subnet of a port whose GID is known. Asks the kernel for the addresses of this
// machine.
struct device_subnet device_subnet_of(const struct device_port *port);
// Return true if both subnets are equal; two unknown subnets are not.
bool device_subnet_equal(const struct device_subnet *a, const struct device_subnet *b);
// Write "10.1.0.0/24", "fec0::/64" or "unknown" to text and return it.
const char *device_subnet_format(
	const struct device_subnet *subnet, char text[static DEVICE_SUBNET_TEXT_MAX + 1]
);

// Compute a digest over names and GUIDs of all devices, independent of their order. It changes when
// the devices change. Opens no device. Returns 0, -ENOMEM, or the driver's error.
int device_list_digest(const struct verbs_calls *calls, uint64_t *ret_digest);

// Return the present name of a device that was called `name` and had this node GUID (0: unknown).
// The device may have been renamed, and another device may now have its name. A GUID that several
// devices share identifies none: it is set to 0, and only the name counts. Returns -ENODEV if the
// device is absent, -ENOMEM, or the driver's error.
int device_find(
	const struct verbs_calls *calls,
	const char *name,
	uint64_t *guid,
	char ret_name[static DEVICE_NAME_MAX + 1]
);

// Return the node GUID of the device with this name; 0 as in its facts. Errors as above.
int device_guid(const struct verbs_calls *calls, const char *name, uint64_t *ret_guid);

struct device;

// Open a device; the caller owns one reference. Returns -ENODEV (no such name), -EINVAL (settings),
// -ENOTSUP (permanently unusable), -ENETDOWN (no active port or no address at present; a later try
// may succeed), or the driver's error. ret_reason explains each error and is empty on success.
int device_open(
	const struct verbs_calls *calls,
	const char *name,
	const struct device_settings *settings,
	char ret_reason[static DEVICE_REASON_MAX + 1],
	struct device **ret_device
);
struct device *device_get(struct device *device);
// Drop one reference; the last one closes the device. NULL is fine.
struct device *device_put(struct device *device);

// Mark the device as lost: it was removed or reset, its events cannot be read, or it is no longer
// listed. From now on, EIO or ENODEV from a destroy call counts as success, because the kernel no
// longer has the object. This function and the next two may run on any thread.
void device_mark_lost(struct device *device);
bool device_is_lost(const struct device *device);
// Return the result of destroying an object when the driver returned err: 0 if the object is gone.
int device_release_result(const struct device *device, int err);

const struct verbs_calls *device_calls(const struct device *device);
struct ibv_context *device_context(const struct device *device);
struct ibv_pd *device_pd(const struct device *device);
const struct device_settings *device_settings(const struct device *device);
// Return the facts from the time of opening.
const struct device_facts *device_facts(const struct device *device);

// Return the port as it is now, usable or not. Its GID is chosen again, because GID indexes change
// when a port flaps; the same address is kept if it still exists. Returns 0 or the driver's error.
int device_refresh(struct device *device, struct device_facts *ret_facts);

// Clock of the device that time-stamps completions: ticks, of which only the bits in mask are
// valid.
struct device_stamp_clock {
	uint64_t mask;
	uint64_t khz;
};

// Return the stamp clock. Returns -EOPNOTSUPP if the device has no time stamps, or the driver's
// error.
int device_stamp_clock(const struct device *device, struct device_stamp_clock *ret_stamps);

// Events of a device. device_event_fd() is readable while one is pending.
enum device_event_kind {
	DEVICE_EVENT_PORT_ACTIVE,
	DEVICE_EVENT_PORT_DOWN,
	// GID, LID, P_Key or subnet manager changed: call device_refresh()
	DEVICE_EVENT_PORT_CHANGED,
	DEVICE_EVENT_PAIR_FATAL,
	DEVICE_EVENT_COMPLETIONS_FATAL,
	DEVICE_EVENT_FATAL,
	DEVICE_EVENT_OTHER, // only logged
};

struct device_event {
	enum device_event_kind kind;
	uint8_t port;	       // for port events
	uint32_t queue_number; // for PAIR_FATAL
	const char *name;      // event name of libibverbs
};

int device_event_fd(const struct device *device);
// Return the next event. Returns -EAGAIN if there is none, and -EIO after FATAL, when no more will
// come. Events of other ports than the one in use are included, with their port number.
int device_event(struct device *device, struct device_event *ret_event);

// Data that the peer of a pair needs. The pairing protocol defines the format on the wire.
struct device_endpoint {
	enum device_link link;
	uint16_t lid;
	union ibv_gid gid; // zero: none
	uint16_t mtu;	   // bytes
	uint8_t reads_in_max;
	uint8_t reads_out_max;
	uint32_t queue_number; // 24 bits
	uint32_t psn;	       // 24 bits
	uint16_t pkey;	       // 0: the peer sent none
};

#define DEVICE_PKEY_FULL 0x8000
#define DEVICE_PKEY_PARTITION 0x7fff

// Check whether two ends can form a pair. `theirs` is untrusted. Both need the same link layer, the
// same kind of address and the same partition. A GID or LID must not be zero. Returns -EBADMSG if
// `theirs` is impossible, -EPROTONOSUPPORT if the two have no fabric in common, or -EKEYREJECTED if
// both are limited members of their partition. Limited members can only reach full members.
// ret_reason explains each error.
int device_endpoint_check(
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
);

// Fill the address vector for the move to RTR. `theirs` was accepted by device_endpoint_check().
// own: latest result of device_refresh(). flow_label: 20 bits; on Ethernet it selects one of
// several paths.
void device_route(
	const struct device *device,
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	struct ibv_ah_attr *ret_route
);
