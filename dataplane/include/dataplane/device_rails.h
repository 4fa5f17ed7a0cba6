// SPDX-License-Identifier: BSD-3-Clause
// Lists the rails of this machine: every device port that can have pairs, now or once it is up.
#pragma once

#include <dataplane/device.h>

#define DEVICE_RAILS_MAX 16

struct device_rail {
	char name[DEVICE_NAME_MAX + 1]; // "mlx5_0"; "mlx5_0:2" for further ports
	uint32_t device;		// index in the given facts
	uint8_t port;			// 0: the device uses only one port
	enum device_link link;
	bool waits; // the port is down or has no address yet
};

// List the rails of devices that device_list() returned with its default settings. Software devices
// are left out, except those of the kernel. Rails are in natural order of device names, then ports.
// Asks the driver if a device has several ports. *ret_left_out counts the rails beyond
// DEVICE_RAILS_MAX; waiting rails are left out first. Returns 0, -ENOMEM, or the driver's error.
int device_rails(
	const struct verbs_calls *calls,
	const struct device_facts *facts,
	uint32_t count,
	struct device_rail ret_rails[static DEVICE_RAILS_MAX],
	uint32_t *ret_count,
	uint32_t *ret_left_out
);
