// SPDX-License-Identifier: BSD-3-Clause
// Test whether a run has warmed up, instead of a fixed number of samples.
//
// The second half of the samples is compared with the quarter before it by ranks (Mann-Whitney
// test). If one of them tends to be larger, the run is still settling. Dependence between
// consecutive samples makes the test fail too often, but never pass too early.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WARMUP_SAMPLES_MIN 256u
#define WARMUP_SAMPLES_MAX 8192u
#define WARMUP_ALPHA 0.01 // two-sided

struct warmup_check {
	bool warm;
	double p; // probability of such a difference by chance
};

// Test the samples; `count` is from WARMUP_SAMPLES_MIN to WARMUP_SAMPLES_MAX. Returns 0 or -ENOMEM.
int warmup_check(const uint64_t *samples, uint32_t count, struct warmup_check *ret_look);
