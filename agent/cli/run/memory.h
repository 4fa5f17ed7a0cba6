// SPDX-License-Identifier: BSD-3-Clause
// OOM kills by the kernel.
#pragma once

#include <stdint.h>

// Return the number of OOM-killed processes in this process's control group and those below it; 0
// if unknown.
uint64_t memory_oom_kills(void);
