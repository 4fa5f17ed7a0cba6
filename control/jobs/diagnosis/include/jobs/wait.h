// SPDX-License-Identifier: BSD-3-Clause
// The time that a rank waited in an operation, encoded in one byte. The range is 1 us to more than
// an hour; the resolution is one eighth.
#pragma once

#include <stdint.h>

#define JOBS_WAIT_UNKNOWN 255

// Encode a time; JOBS_TIME_UNKNOWN becomes JOBS_WAIT_UNKNOWN.
uint8_t jobs_wait_code(uint64_t wait_ns);
// Return the lower bound of a code, in microseconds.
uint64_t jobs_wait_us(uint8_t code);
