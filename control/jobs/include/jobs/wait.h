// SPDX-License-Identifier: BSD-3-Clause
// How long a rank waited in an operation, in one byte: to an eighth, from 1 us to more than an
// hour.
#pragma once

#include <stdint.h>

#define JOBS_WAIT_NOT_TAKEN 255

// JOBS_NOT_TAKEN becomes JOBS_WAIT_NOT_TAKEN.
uint8_t jobs_wait_code(uint64_t wait_ns);
// The least time of that code, in microseconds.
uint64_t jobs_wait_us(uint8_t code);
