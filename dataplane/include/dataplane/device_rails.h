// SPDX-License-Identifier: BSD-3-Clause
// The rails of this machine: every port of its devices that can have pairs, now or once it is up.
#pragma once

#include <dataplane/device.h>

#define DEVICE_RAILS_MAX 16

struct device_rail {
	char name[DEVICE_NAME_MAX + 1]; // "mlx5_0"; of further ports "mlx5_0:2"
	uint32_t device;		// its place in the facts that were given
	uint8_t port;			// 0: the only one of its device that is used
	enum device_link link;
	bool waits; // for its port to come up, or for an address
};

// Of the devices that device_list() gave with its default settings, software devices but for the
// kernel's left out: in natural order of their names, then ports. Asks drivers, if any device has
// several ports. *ret_left_out are those beyond DEVICE_RAILS_MAX, first of all those that wait.
// -ENOMEM, or what the driver said.
int device_rails(
	const struct verbs_calls *calls,
	const struct device_facts *facts,
	uint32_t count,
	struct device_rail ret_rails[static DEVICE_RAILS_MAX],
	uint32_t *ret_count,
	uint32_t *ret_left_out
);
