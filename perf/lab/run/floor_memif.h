// SPDX-License-Identifier: BSD-3-Clause
// Two connected memif ports of DPDK in this process: shared memory with one ring per direction. The
// software device's memif wire connects two processes in the same way; here the rest of the device
// is left out.
#pragma once

#include "run/why.h"

#include <lib/clock.h>

#include <stdbool.h>

struct memif_pair; // opaque

// Create the pair. Starts DPDK, which stays running in this process. Returns 0, or -errno with the
// reason in `why`.
int memif_pair_create(const struct clock *clock, struct memif_pair **ret_pair, struct lab_why *why);
// Destroy the pair; NULL is allowed. Returns NULL.
struct memif_pair *memif_pair_destroy(struct memif_pair *pair);

// Send one frame from the thread of end 0 or 1. Returns false if the ring is full.
bool memif_pair_send(struct memif_pair *pair, int end);
// Receive and free one frame. Returns false if none has arrived.
bool memif_pair_receive(struct memif_pair *pair, int end);
