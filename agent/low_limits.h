// SPDX-License-Identifier: BSD-3-Clause
// Limits of this process that are too low for an agent, in words.
#pragma once

#define LOW_LIMITS_TEXT_BYTES 256

// "" where none is. Any thread.
void low_limits_tell(char ret_text[static LOW_LIMITS_TEXT_BYTES]);
