// SPDX-License-Identifier: BSD-3-Clause
// Which device an end measures.
#pragma once

#include "why.h"

#include <dataplane/device.h>
#include <lib/cpu_set.h>
#include <lib/sockaddr.h>

// The name of the nearest and fastest that will do, else "soft".
int lab_device_choose(
	const struct device_settings *settings,
	struct lab_why *why,
	char ret_name[static DEVICE_NAME_MAX + 1]
);
// As it was asked for; NULL: the nearest and fastest that will do, else the software device. That
// one has the address of the connection to the other end, so that both find each other without a
// word; on one machine (local is NULL) the first free one of 127.64.0.0/16.
// TOCSIN_SOFT_ADDRESS, _WIRE and _FAULTS are heeded. *ret_near are the processors near the device,
// none if that is not known.
int lab_device_open(
	const char *name,
	const struct device_settings *settings,
	const struct sock_addr *local,
	struct lab_why *why,
	struct cpu_set *ret_near,
	struct device **ret_device
);
