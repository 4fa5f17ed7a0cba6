// SPDX-License-Identifier: BSD-3-Clause
// Whether a run has warmed up: a test, not a number of samples.
//
// Of the samples so far the second half is held against the quarter before it, by ranks (Mann and
// Whitney's test). As long as one of them tends to be larger, something is still settling. Samples
// in a row that depend on each other make it say "not yet" too often, never "warm" too early.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WARMUP_SAMPLES_MIN 256u
#define WARMUP_SAMPLES_MAX 8192u
#define WARMUP_ALPHA 0.01 // of two sides

struct warmup_look {
	bool warm;
	double p; // that such halves differ so much by chance
};

// `count` from WARMUP_SAMPLES_MIN to WARMUP_SAMPLES_MAX. Returns 0 or -ENOMEM.
int warmup_look(const uint64_t *samples, uint32_t count, struct warmup_look *ret_look);
