// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices: what there is, and one that is open, with the port, the GID and the limits that
// pairs on it use.
//
// All calls are cold and go into the driver: on the device's keeper. An open device is counted;
// its facts are constant but for the port's, which device_refresh() returns anew: who needs them on
// another thread keeps a copy.
#pragma once

#include <dataplane/verbs_calls.h>

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_NAME_MAX 31 // of what the overlay carries; the kernel allows 63
#define DEVICE_PATH_MAX 255
#define DEVICE_REASON_MAX 159
#define DEVICE_GID_AUTO (-1)
#define DEVICE_PKEY_AUTO (-1)

// Who answers a one-sided operation that comes in: an in-process answer never tells a host from
// its agent.
enum device_responder {
	DEVICE_RESPONDER_HARDWARE,
	DEVICE_RESPONDER_KERNEL,
	DEVICE_RESPONDER_IN_PROCESS,
};

// Of [device NAME]; a value that the device cannot do is -EINVAL with a reason, never bent.
struct device_settings {
	uint8_t port;  // 0: the first that is active, else the first
	int gid_index; // DEVICE_GID_AUTO: by type and scope
	uint16_t mtu;  // in bytes, 256 to 4096; 0: what the port has
	uint8_t traffic_class;
	uint8_t service_level; // 0 to 15
	uint8_t timeout;       // 4.096 us * 2^timeout, 0 to 31; 0 is endless
	uint8_t retry;	       // 0 to 7; 7 is endless with Soft-RoCE
	uint8_t rnr_retry;     // 0 to 7; 7 is endless
	uint8_t min_rnr_timer; // 0 to 31; 0 is the longest, 655 ms
	int pkey_index;	       // DEVICE_PKEY_AUTO: the first full membership, else the first
};

extern const struct device_settings device_settings_default; // retry 6, timeout 14, min_rnr 12

enum device_link {
	DEVICE_LINK_INFINIBAND,
	DEVICE_LINK_ETHERNET,
};

// The network that a port is on: what tells rails apart.
enum device_subnet_kind {
	DEVICE_SUBNET_UNKNOWN,
	DEVICE_SUBNET_INFINIBAND, // its prefix
	DEVICE_SUBNET_IP,	  // the block of the interface's address
};

struct device_subnet {
	enum device_subnet_kind kind;
	uint8_t bits;	   // of an IPv6 address; IPv4 is mapped, 96 bits before it
	uint8_t bytes[16]; // 0 past them
};

#define DEVICE_SUBNET_TEXT_MAX 49

struct device_port {
	uint8_t number;
	enum ibv_port_state state;
	enum device_link link;
	uint16_t lid;	     // 0: by GID only
	uint16_t active_mtu; // bytes; what pairs use, so at most the setting
	bool grh_needed;     // InfiniBand: by LID alone nothing arrives
	uint32_t speed_mbps; // width x speed, 0 if it is not known
	int gid_index;	     // -1: none will do
	uint32_t gid_type;   // enum ibv_gid_type of verbs
	union ibv_gid gid;
	int pkey_index; // -1: none
	uint16_t pkey;	// the highest bit: full member of the partition below it
	struct device_subnet subnet;
	uint64_t message_max; // bytes of one operation
};

// Never 0 where pairs could not work with 0: such a device is not usable, with a reason.
struct device_limits {
	uint32_t pair_max;
	uint32_t queue_depth_max; // work requests of one queue
	uint32_t completions_max; // entries of one completion queue
	uint32_t sge_max;
	uint32_t regions_max;
	uint64_t region_bytes_max;
	uint8_t reads_out_max; // own reads and atomics under way, of one pair
	uint8_t reads_in_max;  // the peer's
	bool atomics;
};

// What a device is, open or not.
struct device_facts {
	char name[DEVICE_NAME_MAX + 1];
	char path[DEVICE_PATH_MAX + 1]; // its directory in /sys, "" if it has none
	char pci[16];			// "0000:17:00.0", "" if it has none
	char netdev[16];		// of the chosen port, "" if not known
	int numa_node;			// -1: not known
	uint32_t vendor_id;
	enum ibv_transport_type transport;
	uint64_t guid; // of the node, as a number; 0: not known, or several in the list have it
	enum device_responder responder;
	uint8_t port_count; // 0: not known
	bool usable;	    // RC, an active port, a GID or LID, limits that will do
	bool awaits_port;   // not usable for want of an active port alone: -ENETDOWN
	char reason[DEVICE_REASON_MAX + 1]; // why not, in words
	struct device_port port;
	struct device_limits limits;
};

// All devices, asked with these settings (NULL: the defaults). A device that cannot even be opened
// is listed with that as its reason. *ret_facts is freed by the caller. -ENOMEM, or what the driver
// said when asked for its devices; no devices, or no RDMA in this kernel, is a count of 0.
int device_list(
	const struct verbs_calls *calls,
	const struct device_settings *settings,
	struct device_facts **ret_facts,
	uint32_t *ret_count
);

// In words: "hardware", "kernel", "in-process"; "InfiniBand", "Ethernet"; "active", "down"; "IB"
// for what InfiniBand and RoCE have in common, "iWARP", "usNIC", "vendor" as EFA's. "unknown" for
// what there is not.
const char *device_responder_name(enum device_responder responder);
const char *device_link_name(enum device_link link);
const char *device_port_state_name(enum ibv_port_state state);
const char *device_transport_name(enum ibv_transport_type transport);

// Of a port whose GID is known. Asks the kernel for the machine's addresses.
struct device_subnet device_subnet_of(const struct device_port *port);
// What is not known is the same as nothing.
bool device_subnet_same(const struct device_subnet *a, const struct device_subnet *b);
// "10.1.0.0/24", "fec0::/64" or "unknown". Returns text.
const char *device_subnet_format(
	const struct device_subnet *subnet, char text[static DEVICE_SUBNET_TEXT_MAX + 1]
);

// A number for the names and GUIDs of the devices that there are, in whatever order: another one
// when they change. Opens none. -ENOMEM, or what the driver said.
int device_list_digest(const struct verbs_calls *calls, uint64_t *ret_digest);

// What a device is called now that was called `name` and had this GUID of its node (0: not known):
// it may have been renamed, and its name be another's. A GUID that several have tells none of them:
// it becomes 0, and the name alone counts. -ENODEV: it is not there. -ENOMEM, or what the driver
// said when asked for its devices.
int device_find(
	const struct verbs_calls *calls,
	const char *name,
	uint64_t *guid,
	char ret_name[static DEVICE_NAME_MAX + 1]
);

// The GUID of the node of the device that has this name now, 0 as in its facts. Errors as above.
int device_guid(const struct verbs_calls *calls, const char *name, uint64_t *ret_guid);

struct device;

// One reference for the caller. -ENODEV (no such name), -EINVAL (settings), -ENOTSUP (not usable,
// for good), -ENETDOWN (no active port or no address at present; a later try may do), or what the
// driver said. All come with a reason; success with an empty one.
int device_open(
	const struct verbs_calls *calls,
	const char *name,
	const struct device_settings *settings,
	char ret_reason[static DEVICE_REASON_MAX + 1],
	struct device **ret_device
);
struct device *device_get(struct device *device);
// The last one closes it. NULL is fine.
struct device *device_put(struct device *device);

// It was removed or reset: DEVICE_EVENT_FATAL came, its events cannot be read, or it is in the list
// no more. From now on what its driver does not take back for EIO or ENODEV counts as gone: the
// kernel has it no more, and will say so for good. Any thread, all three.
void device_lose(struct device *device);
bool device_is_lost(const struct device *device);
// What became of giving something back that was answered with err: 0 if that is gone.
int device_released(const struct device *device, int err);

const struct verbs_calls *device_calls(const struct device *device);
struct ibv_context *device_context(const struct device *device);
struct ibv_pd *device_pd(const struct device *device);
const struct device_settings *device_settings(const struct device *device);
// As when it was opened.
const struct device_facts *device_facts(const struct device *device);

// The port as it is now, usable or not; its GID is chosen anew, for its index changes when ports
// flap, but the address stays if it is still there. Or what the driver said.
int device_refresh(struct device *device, struct device_facts *ret_facts);

// The clock that a device stamps completions with: ticks, of which those bits count.
struct device_stamps {
	uint64_t mask;
	uint64_t khz;
};

// -EOPNOTSUPP: it has no time stamps. Or what the driver said.
int device_stamps(const struct device *device, struct device_stamps *ret_stamps);

// What happened to the device. The descriptor is readable when there is one.
enum device_event_kind {
	DEVICE_EVENT_PORT_ACTIVE,
	DEVICE_EVENT_PORT_DOWN,
	DEVICE_EVENT_PORT_CHANGED, // GID, LID, P_Key, subnet manager: refresh
	DEVICE_EVENT_PAIR_FATAL,
	DEVICE_EVENT_COMPLETIONS_FATAL,
	DEVICE_EVENT_FATAL,
	DEVICE_EVENT_OTHER, // shown, no more
};

struct device_event {
	enum device_event_kind kind;
	uint8_t port;	       // of port events
	uint32_t queue_number; // of PAIR_FATAL
	const char *name;      // what verbs calls it
};

int device_event_fd(const struct device *device);
// -EAGAIN: none; -EIO, after FATAL: there will be none any more. Events of ports other than the one
// in use are passed on with their number.
int device_event(struct device *device, struct device_event *ret_event);

// What the other end of a pair must know, and its form on the wire is the pairing's business.
struct device_endpoint {
	enum device_link link;
	uint16_t lid;
	union ibv_gid gid; // zero: none
	uint16_t mtu;	   // bytes
	uint8_t reads_in_max;
	uint8_t reads_out_max;
	uint32_t queue_number; // 24 bits
	uint32_t psn;	       // 24 bits
	uint16_t pkey;	       // 0: not told
};

#define DEVICE_PKEY_FULL 0x8000
#define DEVICE_PKEY_PARTITION 0x7fff

// Whether two ends may have a pair: same link layer, addresses of one kind, a GID or LID that is
// not zero, numbers within their bits, the same partition. Comes from outside: -EBADMSG with a
// reason if it is impossible, -EPROTONOSUPPORT if the two have no fabric in common, -EKEYREJECTED
// if both are limited members of their partition, who may talk to full ones only.
int device_endpoint_check(
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
);

// How packets get from here to that other end, which was checked; for the queue pair's way to RTR.
// own: as device_refresh() said last. flow_label: 20 bits, on Ethernet which of several ways.
void device_route(
	const struct device *device,
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	struct ibv_ah_attr *ret_route
);
