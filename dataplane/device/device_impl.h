// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the files of a device: inspection, and refusal with a reason.
#pragma once

#include <dataplane/device.h>

#include <stdatomic.h>

struct device {
	_Atomic uint32_t references; // read and written by any thread
	atomic_bool lost;	     // written by control; read by keeper and worker
	const struct verbs_calls *calls;
	struct device_settings settings;
	struct device_facts facts; // from the time of opening
	struct ibv_context *context;
	struct ibv_pd *pd;
};

// Inspection of one device. The first refusal is kept, so checks are ordered by importance.
struct device_inspection {
	const struct verbs_calls *calls;
	struct ibv_device *device;
	struct ibv_context *context; // set when the device is open
	const struct device_settings *settings;
	struct device_facts *facts;
	uint8_t port_count;
	int refusal; // 0, or the reason why it is unusable; facts->reason has the text
};

void device_inspection_refuse(struct device_inspection *look, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// Record a failed call as the final reason. Returns err.
int device_inspection_fail(struct device_inspection *look, int err, const char *call);

// Format a reason. Returns err.
int device_format_reason(
	char reason[static DEVICE_REASON_MAX + 1], int err, const char *format, ...
) __attribute__((format(printf, 3, 4)));
// Return "EIO" and so on; never NULL.
const char *device_error_name(int err);

// Check values that no device supports.
void device_settings_inspect(struct device_inspection *look);
// Return verbs' code of 256 to 4096 bytes, 0 for any other value.
enum ibv_mtu device_mtu_code(uint32_t bytes);
// Return the bytes of an MTU code; 0 for an unknown code.
uint16_t device_mtu_bytes(enum ibv_mtu code);

// Read limits, vendor and GUID. Returns 0 or the driver's error.
int device_limits_inspect(struct device_inspection *look);

// Inspect port `number` (0: the first active one, else the first). Keep the address `before` if it
// still exists. Returns 0, -ENOMEM or the driver's error.
int device_port_inspect(
	struct device_inspection *look, uint8_t number, const union ibv_gid *before
);
// Return 0 if the speed is unknown.
uint32_t device_speed_mbps(uint32_t width, uint32_t speed);

// Read sysfs: path, PCI address, NUMA node and responder. Missing entries are unknown.
void device_sysfs_inspect(struct device_inspection *look);
// Return the interface of a port; "": unknown. gid_index: -1 for none.
void device_sysfs_netdev(
	const char *path,
	uint8_t port,
	int gid_index,
	char netdev[static sizeof(((struct device_facts *)0)->netdev)]
);
// Return the port speed that the kernel reports; 0: unknown.
uint32_t device_sysfs_speed_mbps(const char *path, uint8_t port);
