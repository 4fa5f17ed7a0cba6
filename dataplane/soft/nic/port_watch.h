// SPDX-License-Identifier: BSD-3-Clause
// Tells a device whether the interface under its wire is up.
#pragma once

#include "nic/nic.h"

struct port_watch;

// Of a device whose wire is there; sees to its first state. NULL: its port never goes down, or
// nobody can be asked. Without the lock, as the other.
struct port_watch *port_watch_start(struct soft_nic *nic);
struct port_watch *port_watch_stop(struct port_watch *watch); // NULL is fine
