// SPDX-License-Identifier: BSD-3-Clause
// Finds resource limits of this process that are too low for an agent.
#pragma once

#define LOW_LIMITS_TEXT_BYTES 256

// Describe the limits that are too low; "" if there are none. Any thread may call it.
void low_limits_describe(char ret_text[static LOW_LIMITS_TEXT_BYTES]);
