// SPDX-License-Identifier: BSD-3-Clause
// Reports to a device whether the interface under its wire is up.
#pragma once

#include "nic/nic.h"

struct port_watch;

// Start a watch for a device that has a wire, and report the first state. Returns NULL if the port
// never goes down or cannot be watched. Start and stop are called without the lock.
struct port_watch *port_watch_start(struct soft_nic *nic);
struct port_watch *port_watch_stop(struct port_watch *watch); // NULL is fine
