// SPDX-License-Identifier: BSD-3-Clause
// Two memif ports of DPDK in this process, joined: shared memory and a ring each way, as between
// two processes that use the software device's memif wire, with nothing of the device around it.
#pragma once

#include "why.h"

#include <lib/clock.h>

#include <stdbool.h>

struct memif_pair; // opaque

// Starts DPDK, which this process then keeps. -errno with the reason.
int memif_pair_create(const struct clock *clock, struct memif_pair **ret_pair, struct lab_why *why);
// Takes NULL. Returns NULL.
struct memif_pair *memif_pair_destroy(struct memif_pair *pair);

// One frame, by the thread of end 0 or 1. False: the ring is full.
bool memif_pair_send(struct memif_pair *pair, int end);
// Whether one came; it is given back.
bool memif_pair_receive(struct memif_pair *pair, int end);
