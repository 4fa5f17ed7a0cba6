// SPDX-License-Identifier: BSD-3-Clause
// Keeps the memory of a memif port mapped while frames are copied to or from it.
//
// When its peer ends, DPDK's driver unmaps the rings on EAL's interrupt thread and does not ask
// whether a burst is under way just then: a poller that lost its processor in the middle of one
// would die with its peer. The driver's call that unmaps is therefore wrapped where DPDK is linked
// (dataplane/dpdk/meson.build), and waits for the lock that bursts are made with. Any thread. The
// caller must not hold that lock when it stops or closes the port.
#pragma once

#include <stdint.h>

void memif_guard_enter(uint16_t port);
void memif_guard_leave(uint16_t port);
