// SPDX-License-Identifier: BSD-3-Clause
// Entry point of every fuzz target, called by libFuzzer or tests/fuzz/standalone.c.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Run one input. Returns 0; a finding is a crash, a sanitizer report or a failed must().
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
