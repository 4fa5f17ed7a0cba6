// SPDX-License-Identifier: BSD-3-Clause
// Whether the kernel killed for want of memory.
#pragma once

#include <stdint.h>

// Processes of this process's control group, and of those below it, that it has killed; 0: not
// known.
uint64_t memory_kills(void);
