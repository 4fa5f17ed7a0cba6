// SPDX-License-Identifier: BSD-3-Clause
// Measures C, the cost of one block and wake-up on this machine.
#pragma once

#include <stdint.h>

// Measure C on the calling thread, which must be offline if it is an RCU reader. The thread blocks
// on an eventfd that a helper thread writes after a delay. The cost is the time from that write to
// the wake-up. The result is the lower median of two sleep lengths: deeper sleep costs more, and
// the smaller C is the safe one. Takes about 20 ms. Returns 0, or -errno if the helper cannot be
// created.
int block_cost_measure(uint64_t *ret_block_ns);
