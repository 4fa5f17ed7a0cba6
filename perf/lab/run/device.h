// SPDX-License-Identifier: BSD-3-Clause
// Choice of the device that an end measures.
#pragma once

#include "run/why.h"

#include <dataplane/device.h>
#include <lib/cpu_set.h>
#include <lib/sockaddr.h>

// Return the name of the nearest and fastest usable device of the system, or "soft" if there is
// none.
int lab_device_choose(
	const struct device_settings *settings,
	struct lab_why *why,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// Open a device by its name. NULL chooses the nearest and fastest usable device, else the software
// device. The software device takes the local address of the control connection, so that both ends
// find each other without configuration. On one machine (local is NULL) it takes the first free
// address of 127.64.0.0/16. TOCSIN_SOFT_ADDRESS, _WIRE and _FAULTS apply. Set *ret_near to the
// processors near the device; empty if unknown.
int lab_device_open(
	const char *name,
	const struct device_settings *settings,
	const struct sock_addr *local,
	struct lab_why *why,
	struct cpu_set *ret_near,
	struct device **ret_device
);
