// SPDX-License-Identifier: BSD-3-Clause
// What the files of a device share: looking at one, and refusing it with a reason.
#pragma once

#include <dataplane/device.h>

#include <stdatomic.h>

struct device {
	_Atomic uint32_t references; // any thread: rw
	atomic_bool lost;	     // control: wo, keeper and worker: ro
	const struct verbs_calls *calls;
	struct device_settings settings;
	struct device_facts facts; // as when it was opened
	struct ibv_context *context;
	struct ibv_pd *pd;
};

// One look at a device. The first refusal stays, so the order of looking is that of importance.
struct device_look {
	const struct verbs_calls *calls;
	struct ibv_device *device;
	struct ibv_context *context; // of an open one
	const struct device_settings *settings;
	struct device_facts *facts;
	uint8_t port_count;
	int refusal; // 0, or why it is not usable; facts->reason has it in words
};

void device_look_refuse(struct device_look *look, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// A call failed: also the last word about the device. Returns err.
int device_look_failed(struct device_look *look, int err, const char *call);

// A reason in words; returns err.
int device_reason(char reason[static DEVICE_REASON_MAX + 1], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// "EIO"; never NULL.
const char *device_error_name(int err);

// Values that no device could do.
void device_settings_look(struct device_look *look);
// 256 to 4096 as verbs has it, 0 for any other.
enum ibv_mtu device_mtu_code(uint32_t bytes);
// 0 for what is no code of verbs.
uint16_t device_mtu_bytes(enum ibv_mtu code);

// Limits, vendor and GUID. 0 or what the driver said.
int device_limits_look(struct device_look *look);

// The port `number` (0: the first that is active, else the first), whose address is to stay
// `before` if that can be. 0, -ENOMEM or what the driver said.
int device_port_look(struct device_look *look, uint8_t number, const union ibv_gid *before);
// 0 if it is not known.
uint32_t device_speed_mbps(uint32_t width, uint32_t speed);

// What sysfs has: path, PCI address, NUMA node, and who answers. What is not there is not known.
void device_sysfs_look(struct device_look *look);
// The interface of a port, "" if not known. gid_index: -1 for none.
void device_sysfs_netdev(
	const char *path,
	uint8_t port,
	int gid_index,
	char netdev[static sizeof(((struct device_facts *)0)->netdev)]
);
// What the kernel takes for the speed of a port, 0 if it does not say.
uint32_t device_sysfs_speed_mbps(const char *path, uint8_t port);
