// SPDX-License-Identifier: BSD-3-Clause
// C: what it costs on this machine, here and now, to block and be woken.
#pragma once

#include <stdint.h>

// On the thread whose cost it is to be, which is offline if it reads RCU: it blocks on an eventfd
// that a helper thread writes to after a while, and counts from that write. The lower of the
// medians for two lengths of sleep, since a deeper sleep costs more and the smaller C is the safe
// one. Takes about 20 ms. 0, or -errno of making the helper.
int block_cost_measure(uint64_t *ret_block_ns);
