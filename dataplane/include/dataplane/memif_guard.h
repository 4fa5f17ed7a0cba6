// SPDX-License-Identifier: BSD-3-Clause
// Keeps the memory of a memif port mapped while frames are copied.
//
// When the peer ends, DPDK's driver unmaps the rings on EAL's interrupt thread, even during a
// burst. A poller that was preempted in the middle of a burst would then crash. Therefore
// dataplane/dpdk/meson.build wraps the driver's unmap call at link time, and it waits for the lock
// that each burst holds. Any thread may call. The caller must not hold the lock when it stops or
// closes the port.
#pragma once

#include <stdint.h>

void memif_guard_enter(uint16_t port);
void memif_guard_leave(uint16_t port);
