// SPDX-License-Identifier: BSD-3-Clause
// Reports to a device whether the interface under its wire is up.
#pragma once

#include "engine/engine.h"

struct port_watch;

// Start a watch for a device that has a wire, and report the first state. Returns NULL if the port
// never goes down or cannot be watched. Start and stop are called without the lock.
struct port_watch *port_watch_start(struct soft_nic *nic);
struct port_watch *port_watch_stop(struct port_watch *watch); // NULL is fine

// Report the state of the interface under the wire; call without the lock. On a change, contexts
// receive PORT_ACTIVE, PORT_ERR or DEVICE_FATAL. No event follows GONE.
void nic_port_report(struct soft_nic *nic, enum nic_port port);
// The same with the lock held, for states that the wire reports.
void nic_port_report_locked(struct soft_nic *nic, enum nic_port port);
