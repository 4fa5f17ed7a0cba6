// SPDX-License-Identifier: BSD-3-Clause
// The entry point every fuzz target defines; libFuzzer or tests/fuzz/standalone.c calls it.
#pragma once

#include <stddef.h>
#include <stdint.h>

// One input. Returns 0; a finding is a crash, a sanitizer report or a failed must().
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
