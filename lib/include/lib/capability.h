// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of this process.
#pragma once

#include <stdbool.h>

// Return whether the calling thread has a capability, such as CAP_SETUID, in its effective set.
bool capability_is_effective(unsigned capability);
